//! Pushing: as many calls at a time as the pace allows, each message until its handler accepts it.

mod envelope;
mod window;

pub(super) use window::PushWindow;

use super::acknowledge::AckId;
use super::backlog::{Capacity, Consumer, Lease};
use super::registry::Registry;
use super::resources::Subscription;
use super::rows;
use crate::clock::Time;
use crate::history::{DispatchResult, DispatchStart};
use crate::http_client::{Answer, OutgoingRequest, Redirects};
use crate::proto::pubsub as wire;
use crate::proto::pubsub::push_config::AuthenticationMethod;
use envelope::Envelope;
use http::Method;
use http::header::AUTHORIZATION;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The only answers that acknowledge.
const ACCEPTED: [u16; 5] = [102, 200, 201, 202, 204];

/// One message on its way to a handler.
#[derive(Debug)]
struct Push {
    registry: Arc<Registry>,
    subscription: Arc<Subscription>,
    settings: Arc<wire::Subscription>,
    leased: Lease,
    id: AckId,
    deadline: Duration,
    since: Time,
}

/// What a push came to.
#[derive(Debug, PartialEq, Eq)]
enum PushOutcome {
    Accepted,
    Refused,
}

// === impl Registry ===

impl Registry {
    /// Sends what may be sent now; answers when to look again, if it has to pause.
    pub(super) fn push(self: &Arc<Self>, subscription: &Arc<Subscription>) -> Option<Time> {
        let now = self.context.clock.now();
        let mut state = subscription.state();
        if !state.pushes() || state.settings.detached || state.deleted {
            return None;
        }
        if let Some(until) = state.push_window.pause(now) {
            return Some(until);
        }
        let capacity = Capacity {
            messages: state.push_window.capacity(),
            bytes: usize::MAX,
        };
        let (consumer, deadline) = (Consumer::Push, state.backlog.policy().ack_deadline);
        let leased = self.take(subscription, &mut state, consumer, deadline, capacity, now);
        if leased.is_empty() {
            return None;
        }
        let settings = Arc::new(state.settings.clone());
        let backlog = state.number;
        for leased in leased {
            for delivery in leased.deliveries() {
                state.push_window.begin();
                let sequence = leased.sequence;
                let push = Push {
                    registry: Arc::clone(self),
                    subscription: Arc::clone(subscription),
                    settings: Arc::clone(&settings),
                    leased: leased.clone(),
                    id: AckId {
                        backlog,
                        sequence,
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
        let closed = self.registry.closed.clone();
        tokio::select! {
            outcome = self.send() => self.settle(outcome).await,
            () = closed.cancelled() => {}
        }
    }

    async fn send(&self) -> PushOutcome {
        let context = &self.registry.context;
        let push = self.settings.push_config.clone().unwrap_or_default();
        let name = &self.subscription.name;
        let begun = context.clock.now();
        let dispatch = context.history.begin(DispatchStart {
            at: begun,
            resource: name,
            id: &self.subscription.message_id(self.id.sequence),
            attempt: self.leased.attempt,
            target: &push.push_endpoint,
            faults: self.leased.plan.names(),
        });
        let answer = match self.call(&push).await {
            Ok(call) => self.deliver(call).await,
            Err(why) => Answer::Unreachable(why),
        };
        let (result, outcome) = judge(&answer, self.leased.plan.lose_answer);
        let took = context.clock.now().since(begun);
        context.history.end(dispatch, result, took);
        outcome
    }

    async fn call(&self, push: &wire::PushConfig) -> Result<OutgoingRequest, String> {
        let registry = &self.registry;
        let context = &registry.context;
        let message = rows::message(&context.storage, self.id.backlog, self.id.sequence);
        let message = message.map_err(|error| error.to_string())?;
        let message = message.ok_or("the message is gone")?;
        let counted = self.settings.dead_letter_policy.as_ref();
        let attempt = counted.map(|_| self.leased.attempt);
        let name = &self.subscription.name;
        let mut envelope = Envelope::new(&message, name, attempt, push.wrapper.as_ref());
        if let Some(AuthenticationMethod::OidcToken(token)) = &push.authentication_method {
            let audience = match token.audience.as_str() {
                "" => push.push_endpoint.as_str(),
                audience => audience,
            };
            let email = &token.service_account_email;
            let bearer = context.issuer.bearer(email, audience).await?;
            envelope.headers.insert(AUTHORIZATION, bearer);
        }
        Ok(OutgoingRequest {
            method: Method::POST,
            url: Url::parse(&push.push_endpoint).map_err(|error| error.to_string())?,
            headers: envelope.headers,
            body: envelope.body,
            deadline: self.deadline,
            redirects: Redirects::Answer,
            cut: self.leased.plan.cut,
        })
    }

    /// With the fault `overlap` the call goes on, but nobody waits for it any more.
    async fn deliver(&self, call: OutgoingRequest) -> Answer {
        let context = Arc::clone(&self.registry.context);
        let Some(span) = self.leased.plan.overlap else {
            return context.http_client.deliver(call).await;
        };
        let clock = context.clock.clone();
        let running = tokio::spawn(async move { context.http_client.deliver(call).await });
        tokio::select! {
            answer = running => answer.unwrap_or(Answer::TimedOut),
            () = clock.sleep(span) => Answer::TimedOut,
        }
    }

    async fn settle(self, outcome: PushOutcome) {
        let registry = &self.registry;
        match outcome {
            PushOutcome::Accepted => {
                let _shared = registry.topology.read().await;
                let settled = registry.settle(&self.subscription, &[self.id]).await;
                if let Err(error) = settled {
                    tracing::warn!(%error, "pubsub could not acknowledge a push");
                }
                self.subscription.state().push_window.accepted();
            }
            PushOutcome::Refused => {
                let now = registry.context.clock.now();
                let mut state = self.subscription.state();
                if state.number == self.id.backlog {
                    let (sequence, delivery) = (self.id.sequence, self.id.delivery);
                    drop(state.backlog.refuse(sequence, delivery, now));
                }
                state.push_window.refused(self.since, now);
            }
        }
        registry.notify(&self.subscription);
    }
}

/// What the history says of an answer, and whether it acknowledges.
fn judge(answer: &Answer, lost: bool) -> (DispatchResult, PushOutcome) {
    let success = matches!(answer, Answer::Status { code, .. } if ACCEPTED.contains(code));
    let outcome = match success && !lost {
        true => PushOutcome::Accepted,
        false => PushOutcome::Refused,
    };
    (DispatchResult::of(answer, success, lost), outcome)
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
            judge(&answer, false).1 == PushOutcome::Accepted
        };
        let accepted: Vec<u16> = (100..600).filter(accepts).collect();
        assert_eq!(accepted, ACCEPTED);
    }
}
