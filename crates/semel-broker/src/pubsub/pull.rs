//! Handing messages out to whoever pulls.

use super::acknowledge::AckId;
use super::backlog::{Capacity, Consumer, Lease, LeaseResult, Sequence};
use super::errors::{detached, invalid, not_for_push, not_found};
use super::registry::Registry;
use super::resources::{Subscription, SubscriptionState};
use super::rows;
use crate::clock::Time;
use crate::history::DispatchStart;
use crate::proto::pubsub as wire;
use crate::storage::Batch;
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

/// How long a Pull waits for a first message.
const PULL_WAIT_MAX: Duration = Duration::from_secs(20);

/// A response with more than one message has no more than this: gRPC clients refuse more than 4 MiB
/// unless they are told otherwise.
pub(super) const RESPONSE_BYTES_MAX: usize = 3_500_000;

const PULL_MESSAGES_MAX: usize = 1000;

/// What the history calls a delivery to one who pulls.
const PULL: &str = "pull";

// === impl Registry ===

impl Registry {
    pub(super) async fn pull(
        self: Arc<Self>,
        request: wire::PullRequest,
    ) -> Result<wire::PullResponse, Status> {
        let subscription = self.subscription(&request.subscription)?;
        let messages = match usize::try_from(request.max_messages) {
            Ok(messages) if messages > 0 => messages.min(PULL_MESSAGES_MAX),
            Ok(_) | Err(_) => {
                return Err(invalid(
                    "max_messages",
                    request.max_messages,
                    "it is at least 1",
                ));
            }
        };
        let capacity = Capacity {
            messages,
            bytes: RESPONSE_BYTES_MAX,
        };
        let consumer = Consumer::Pull(self.consumer());
        let mut wake = subscription.wake.subscribe();
        let mut wait_max = std::pin::pin!(tokio::time::sleep(PULL_WAIT_MAX));
        loop {
            wake.borrow_and_update();
            let received_messages = self.lease_messages(&subscription, consumer, None, capacity)?;
            let response = wire::PullResponse { received_messages };
            if request.return_immediately || !response.received_messages.is_empty() {
                return Ok(response);
            }
            tokio::select! {
                _ = wake.changed() => {}
                () = &mut wait_max => return Ok(response),
                () = self.closed.cancelled() => return Err(Status::unavailable("The broker stops.")),
            }
        }
    }

    /// Takes messages and reads them. The deadline is the subscription's unless another is given.
    pub(super) fn lease_messages(
        &self,
        subscription: &Subscription,
        consumer: Consumer,
        deadline: Option<Duration>,
        capacity: Capacity,
    ) -> Result<Vec<wire::ReceivedMessage>, Status> {
        let now = self.context.clock.now();
        let mut state = subscription.state();
        state.may_be_pulled(&subscription.name)?;
        let deadline = deadline.unwrap_or(state.backlog.policy().ack_deadline);
        let take = self.take(subscription, &mut state, consumer, deadline, capacity, now);
        for leased in &take {
            let id = subscription.message_id(leased.sequence);
            for _ in leased.deliveries() {
                let dispatch = self.context.history.begin(DispatchStart {
                    at: now,
                    resource: &subscription.name,
                    id: &id,
                    attempt: leased.attempt,
                    target: PULL,
                    faults: leased.plan.names(),
                });
                state.backlog.note(leased.sequence, dispatch);
            }
        }
        let number = state.number;
        let counted = state.settings.dead_letter_policy.is_some();
        drop(state);
        if !take.is_empty() {
            // Its deadlines are new to the worker.
            self.notify(subscription);
        }
        let received = take
            .iter()
            .map(|leased| self.receive(number, leased, counted));
        Ok(received.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Takes messages, tidies up after what was too old, and notes attempts that count.
    pub(super) fn take(
        &self,
        subscription: &Subscription,
        state: &mut SubscriptionState,
        consumer: Consumer,
        deadline: Duration,
        capacity: Capacity,
        now: Time,
    ) -> Vec<Lease> {
        let topic = state.settings.topic.clone();
        let resources = [subscription.name.as_str(), topic.as_str()];
        let faults = &self.context.faults;
        let mut plan = |sequence, attempt| faults.plan(&resources, sequence, attempt);
        let LeaseResult { leased, dropped } = state
            .backlog
            .take(now, consumer, deadline, capacity, &mut plan);
        self.delete_dropped(subscription, state.number, &dropped);
        let mut batch = Batch::default();
        let policy = state.backlog.policy();
        if policy.attempts_max.is_some() && !policy.retain_acked {
            for leased in leased.iter().filter(|leased| leased.attempt > 1) {
                let stored = wire::StoredState {
                    attempts: leased.attempt,
                    acknowledged: false,
                };
                rows::put_state(&mut batch, state.number, leased.sequence, &stored);
            }
        }
        self.commit_behind(batch);
        leased
    }

    /// Takes what was too old out of storage, too.
    pub(super) fn delete_dropped(
        &self,
        subscription: &Subscription,
        number: u64,
        dropped: &[Sequence],
    ) {
        if dropped.is_empty() {
            return;
        }
        let mut batch = Batch::default();
        for sequence in dropped {
            rows::delete_message(&mut batch, number, *sequence);
        }
        self.commit_behind(batch);
        self.notify(subscription);
    }

    fn receive(
        &self,
        number: u64,
        leased: &Lease,
        counted: bool,
    ) -> Result<Vec<wire::ReceivedMessage>, Status> {
        let message = rows::message(&self.context.storage, number, leased.sequence)?;
        let Some(message) = message else {
            return Ok(Vec::new());
        };
        let attempt = i32::try_from(leased.attempt).unwrap_or(i32::MAX);
        let received = leased.deliveries().map(|delivery| wire::ReceivedMessage {
            ack_id: AckId {
                backlog: number,
                sequence: leased.sequence,
                delivery,
            }
            .to_string(),
            message: Some(message.clone()),
            delivery_attempt: if counted { attempt } else { 0 },
        });
        Ok(received.collect())
    }
}

// === impl SubscriptionState ===

impl SubscriptionState {
    fn may_be_pulled(&self, name: &str) -> Result<(), Status> {
        if self.deleted {
            return Err(not_found(name));
        }
        if self.settings.detached {
            return Err(detached(name));
        }
        match self.pushes() {
            true => Err(not_for_push()),
            false => Ok(()),
        }
    }
}

// === impl Lease ===

impl Lease {
    /// The number of its delivery, or of both.
    pub(super) fn deliveries(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.delivery).chain(self.duplicate_delivery)
    }
}
