//! Pushing: as many calls at a time as the pace allows, each message until its handler accepts it.

mod envelope;
mod pace;

pub(super) use pace::Pace;

use super::backlog::{Room, Taken, Taker};
use super::house::House;
use super::rows;
use super::settle::AckId;
use super::things::Subscription;
use crate::clock::Time;
use crate::history::{self, Begun};
use crate::http_client::{Answer, OutgoingRequest, Redirects};
use crate::proto::pubsub as wire;
use crate::proto::pubsub::push_config::AuthenticationMethod;
use envelope::Envelope;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The only answers that acknowledge.
const ACCEPTED: [u16; 5] = [102, 200, 201, 202, 204];

/// One message on its way to a handler.
#[derive(Debug)]
struct Push {
    house: Arc<House>,
    subscription: Arc<Subscription>,
    settings: Arc<wire::Subscription>,
    taken: Taken,
    id: AckId,
    deadline: Duration,
    since: Time,
}

/// What a push came to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Accepted,
    Refused,
}

// === impl House ===

impl House {
    /// Sends what may be sent now; answers when to look again, if it has to pause.
    pub(super) fn push(self: &Arc<Self>, subscription: &Arc<Subscription>) -> Option<Time> {
        let now = self.context.clock.now();
        let mut inside = subscription.inside();
        if !inside.pushes() || inside.settings.detached || inside.deleted {
            return None;
        }
        if let Some(until) = inside.pace.pause(now) {
            return Some(until);
        }
        let room = Room {
            messages: inside.pace.room(),
            bytes: usize::MAX,
        };
        let deadline = inside.backlog.rules().ack_deadline;
        let taken = self.take(subscription, &mut inside, Taker::Push, deadline, room, now);
        if taken.is_empty() {
            return None;
        }
        let settings = Arc::new(inside.settings.clone());
        let backlog = inside.number;
        for taken in taken {
            for delivery in taken.deliveries() {
                inside.pace.begin();
                let place = taken.place;
                let push = Push {
                    house: Arc::clone(self),
                    subscription: Arc::clone(subscription),
                    settings: Arc::clone(&settings),
                    taken: taken.clone(),
                    id: AckId {
                        backlog,
                        place,
                        delivery,
                    },
                    deadline,
                    since: now,
                };
                tokio::spawn(push.run());
            }
        }
        None
    }
}

// === impl Push ===

impl Push {
    async fn run(self) {
        let closed = self.house.closed.clone();
        tokio::select! {
            outcome = self.send() => self.settle(outcome).await,
            () = closed.cancelled() => {}
        }
    }

    async fn send(&self) -> Outcome {
        let context = &self.house.context;
        let push = self.settings.push_config.clone().unwrap_or_default();
        let name = &self.subscription.name;
        let begun = context.clock.now();
        let dispatch = context.history.begin(Begun {
            at: begun,
            resource: name,
            id: &self.subscription.message_id(self.id.place),
            attempt: self.taken.attempt,
            target: &push.push_endpoint,
            faults: self.taken.plan.names(),
        });
        let answer = match self.call(&push).await {
            Ok(call) => self.deliver(call).await,
            Err(why) => Answer::Unreachable(why),
        };
        let (result, outcome) = judge(answer, self.taken.plan.lose_answer);
        let took = context.clock.now().since(begun);
        context.history.end(dispatch, result, took);
        outcome
    }

    async fn call(&self, push: &wire::PushConfig) -> Result<OutgoingRequest, String> {
        let house = &self.house;
        let context = &house.context;
        let message = rows::message(&context.storage, self.id.backlog, self.id.place);
        let message = message.map_err(|error| error.to_string())?;
        let message = message.ok_or("the message is gone")?;
        let counted = self.settings.dead_letter_policy.as_ref();
        let attempt = counted.map(|_| self.taken.attempt);
        let name = &self.subscription.name;
        let mut envelope = Envelope::new(&message, name, attempt, push.wrapper.as_ref());
        if let Some(AuthenticationMethod::OidcToken(token)) = &push.authentication_method {
            let audience = match token.audience.as_str() {
                "" => push.push_endpoint.as_str(),
                audience => audience,
            };
            let email = &token.service_account_email;
            let token = context.issuer.token(email, audience).await;
            let token = token.map_err(|error| error.to_string())?;
            let bearer = HeaderValue::try_from(format!("Bearer {token}"));
            let bearer = bearer.map_err(|error| error.to_string())?;
            envelope.headers.insert(AUTHORIZATION, bearer);
        }
        Ok(OutgoingRequest {
            method: Method::POST,
            url: Url::parse(&push.push_endpoint).map_err(|error| error.to_string())?,
            headers: envelope.headers,
            body: envelope.body,
            deadline: self.deadline,
            redirects: Redirects::Answer,
            cut: self.taken.plan.cut,
        })
    }

    /// With the fault `overlap` the call goes on, but nobody waits for it any more.
    async fn deliver(&self, call: OutgoingRequest) -> Answer {
        let context = Arc::clone(&self.house.context);
        let Some(span) = self.taken.plan.overlap else {
            return context.http_client.deliver(call).await;
        };
        let clock = context.clock.clone();
        let running = tokio::spawn(async move { context.http_client.deliver(call).await });
        tokio::select! {
            answer = running => answer.unwrap_or(Answer::TimedOut),
            () = clock.sleep(span) => Answer::TimedOut,
        }
    }

    async fn settle(self, outcome: Outcome) {
        let house = &self.house;
        match outcome {
            Outcome::Accepted => {
                let _shared = house.floor.read().await;
                let settled = house.settle(&self.subscription, &[self.id]).await;
                if let Err(error) = settled {
                    tracing::warn!(%error, "pubsub could not acknowledge a push");
                }
                self.subscription.inside().pace.accepted();
            }
            Outcome::Refused => {
                let now = house.context.clock.now();
                let mut inside = self.subscription.inside();
                if inside.number == self.id.backlog {
                    drop(inside.backlog.refuse(self.id.place, self.id.delivery, now));
                }
                inside.pace.refused(self.since, now);
            }
        }
        house.touch(&self.subscription);
    }
}

/// What the history says of an answer, and whether it acknowledges.
fn judge(answer: Answer, unheard: bool) -> (history::Result, Outcome) {
    match answer {
        Answer::Status { code, .. } if unheard => (
            history::Result::AnswerLost { status: code },
            Outcome::Refused,
        ),
        Answer::Status { code, .. } => {
            let success = ACCEPTED.contains(&code);
            let outcome = match success {
                true => Outcome::Accepted,
                false => Outcome::Refused,
            };
            let status = code;
            (history::Result::Answered { status, success }, outcome)
        }
        Answer::TimedOut => (history::Result::TimedOut, Outcome::Refused),
        Answer::Unreachable(why) => (history::Result::Unreachable { why }, Outcome::Refused),
        Answer::Cut => (history::Result::Cut, Outcome::Refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_five_codes_acknowledge() {
        let accepts = |code: &u16| {
            let answer = Answer::Status {
                code: *code,
                retry_after: None,
            };
            judge(answer, false).1 == Outcome::Accepted
        };
        let accepted: Vec<u16> = (100..600).filter(accepts).collect();
        assert_eq!(accepted, ACCEPTED);
    }
}
