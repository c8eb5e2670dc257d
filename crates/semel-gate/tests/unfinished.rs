//! Work that its sender may give up: it becomes a letter at the moment from which it could be lost, and not before.

mod once;
mod uncounted;
mod counted;
mod unlimited;
mod other_work;
mod invalid;
mod room;
mod unreachable;
mod doubts;

use crate::support::prelude::*;
use semel::letter::Letter;
use semel_gate::settings::{OnExhausted, SenderAttempts, Webhook};

/// A sender, and the number of attempts that its route knows of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declared {
    source: Source,
    key: &'static str,
    attempts: SenderAttempts,
    form: fn(&str, &str) -> Ask,
}

/// Senders that deliver once.
pub(crate) const ONCE: [Declared; 4] = [
    Declared::webhook(Webhook::GitHub, "github", Some(1), |id, body| {
        Ask::post("/work")
            .header("X-GitHub-Delivery", id)
            .body(body.to_owned())
    }),
    Declared::new(Source::CloudTasks, "cloud-tasks", Some(1), task),
    Declared::new(Source::PubSub, "pubsub", Some(1), push),
    Declared::new(Source::CloudEvents, "cloudevents", Some(1), event),
];

/// Senders whose deliveries do not say which attempt they are.
pub(crate) const UNCOUNTED: [Declared; 7] = [
    Declared::webhook(Webhook::Stripe, "stripe", None, |id, body| {
        let body = json!({"id": id, "object": "event", "data": body});
        Ask::post("/work").body(body.to_string())
    }),
    Declared::webhook(Webhook::Shopify, "shopify", None, |id, body| {
        Ask::post("/work")
            .header("X-Shopify-Webhook-Id", id)
            .body(body.to_owned())
    }),
    Declared::webhook(Webhook::Standard, "standard-webhooks", None, |id, body| {
        Ask::post("/work")
            .header("webhook-id", id)
            .body(body.to_owned())
    }),
    Declared {
        attempts: undeclared(None),
        ..Declared::new(Source::PubSub, "pubsub", None, unwrapped)
    },
    // These count, as a rule, and this delivery does not say so.
    Declared::new(Source::CloudTasks, "cloud-tasks", Some(100), task),
    Declared::new(Source::PubSub, "pubsub", Some(5), push),
    Declared::new(Source::CloudEvents, "cloudevents", Some(5), event),
];

/// A sender whose deliveries say which attempt they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    declared: Declared,
    most: u32,
    attempt: fn(&str, &str, u32) -> Ask,
}

pub(crate) const COUNTED: [Counted; 2] = [
    Counted {
        declared: Declared::new(Source::CloudTasks, "cloud-tasks", Some(10), task),
        most: 10,
        attempt: |id, body, number| {
            let before = (number - 1).to_string();
            task(id, body).header("X-CloudTasks-TaskRetryCount", &before)
        },
    },
    Counted {
        declared: Declared::new(Source::PubSub, "pubsub", Some(10), push),
        most: 10,
        attempt: counted_push,
    },
];

/// Its subscription has a dead-letter policy, and the route does not say how many deliveries that allows: five at least.
pub(crate) const UNDECLARED: Counted = Counted {
    declared: Declared {
        attempts: undeclared(None),
        ..Declared::new(Source::PubSub, "pubsub", None, push)
    },
    most: 5,
    attempt: counted_push,
};

const fn undeclared(most: Option<u32>) -> SenderAttempts {
    SenderAttempts {
        most,
        declared: false,
    }
}

fn task(id: &str, body: &str) -> Ask {
    Sender::Task.sends(id, body)
}

fn event(id: &str, body: &str) -> Ask {
    Sender::Event.sends(id, body)
}

fn push(id: &str, body: &str) -> Ask {
    let ask = Sender::Push.sends(id, body);
    let mut envelope: Value = serde_json::from_slice(&ask.body).unwrap();
    envelope
        .as_object_mut()
        .unwrap()
        .remove("deliveryAttempt")
        .unwrap();
    ask.body(envelope.to_string())
}

fn counted_push(id: &str, body: &str, number: u32) -> Ask {
    let ask = Sender::Push.sends(id, body);
    let mut envelope: Value = serde_json::from_slice(&ask.body).unwrap();
    envelope["deliveryAttempt"] = number.into();
    ask.body(envelope.to_string())
}

fn unwrapped(id: &str, body: &str) -> Ask {
    Ask::post("/work")
        .header("x-goog-pubsub-subscription-name", "orders")
        .header("x-goog-pubsub-message-id", id)
        .body(body.to_owned())
}

/// The letter of this work, and no other.
async fn only_letter(bed: &Bed) -> Letter {
    let letters = bed.letters().await;
    assert_eq!(letters.len(), 1, "{letters:?}");
    letters[0].clone()
}

/// The one letter is of unfinished work, and an operator was alerted or not.
#[track_caller]
fn unfinished(letters: &[Letter], alarmed: bool) {
    assert_eq!(letters.len(), 1, "{letters:?}");
    let is = (letters[0].reason, letters[0].alarmed);
    assert_eq!(is, (Reason::Unfinished, alarmed), "{letters:?}");
}

async fn alarms(bed: &Bed, count: u32) {
    let line = format!("semel_letters_alarmed_total{{route=\"work\"}} {count}\n");
    bed.counts(&line).await;
}

async fn unkept(bed: &Bed, count: u32) {
    let line = format!("semel_work_unkept_total{{route=\"work\"}} {count}\n");
    bed.counts(&line).await;
}

fn nacks(route: &mut Route) {
    route.on_exhausted = OnExhausted::Nack;
}

/// One slot, and no place to wait for it.
fn one_slot(route: &mut Route) {
    (route.concurrency, route.queue) = (1, 0);
}

// === impl Declared ===

impl Declared {
    const fn new(
        source: Source,
        key: &'static str,
        most: Option<u32>,
        form: fn(&str, &str) -> Ask,
    ) -> Self {
        Self {
            source,
            key,
            attempts: SenderAttempts {
                most,
                declared: true,
            },
            form,
        }
    }

    const fn webhook(
        sender: Webhook,
        key: &'static str,
        most: Option<u32>,
        form: fn(&str, &str) -> Ask,
    ) -> Self {
        Self {
            attempts: undeclared(most),
            ..Self::new(Source::Webhook(sender), key, most, form)
        }
    }

    /// An empty object under this name.
    pub(crate) fn sends(&self, id: &str) -> Ask {
        (self.form)(id, "{}")
    }

    fn declares(&self, route: &mut Route) {
        route.sources = vec![self.source];
        if let Source::Webhook(_) = self.source {
            route.caller = None;
        }
        keyed_by(route, self.key);
        terms_of(route, |terms| terms.sender_attempts = self.attempts);
    }

    /// A gate with a route for this sender.
    async fn bed(&self, change: impl FnOnce(&mut Route)) -> Bed {
        Bed::route(|route| {
            self.declares(route);
            change(route);
        })
        .await
    }

    /// The same on another gate's store.
    async fn beside(&self, bed: &Bed, change: impl FnOnce(&mut Settings)) -> Bed {
        Bed::on(Arc::clone(&bed.store), Handler::start().await, |settings| {
            self.declares(&mut settings.routes[0]);
            change(settings);
        })
        .await
    }
}

// === impl Counted ===

impl Counted {
    /// An attempt, from 1.
    fn sends(&self, id: &str, number: u32) -> Ask {
        (self.attempt)(id, "{}", number)
    }

    fn last(&self, id: &str) -> Ask {
        self.sends(id, self.most)
    }

    async fn bed(&self, change: impl FnOnce(&mut Route)) -> Bed {
        self.declared.bed(change).await
    }
}
