//! Handing messages out to whoever pulls.

use super::backlog::{Place, Room, Take, Taken, Taker};
use super::errors::{detached, invalid, not_for_push, not_found, unwritten};
use super::house::House;
use super::rows;
use super::settle::AckId;
use super::things::{Inside, Subscription};
use crate::clock::Time;
use crate::history::Begun;
use crate::proto::pubsub as wire;
use crate::storage::Batch;
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

/// How long a Pull waits for a first message.
const PATIENCE: Duration = Duration::from_secs(20);

/// A response with more than one message has no more than this: gRPC clients refuse more than 4 MiB
/// unless they are told otherwise.
pub(super) const RESPONSE_BYTES_MAX: usize = 3_500_000;

const PULL_MESSAGES_MAX: usize = 1000;

/// What the history calls a delivery to one who pulls.
const PULL: &str = "pull";

// === impl House ===

impl House {
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
        let room = Room {
            messages,
            bytes: RESPONSE_BYTES_MAX,
        };
        let taker = Taker::Pull(self.taker());
        let mut wake = subscription.wake.subscribe();
        let mut patience = std::pin::pin!(tokio::time::sleep(PATIENCE));
        loop {
            wake.borrow_and_update();
            let received_messages = self.hand_out(&subscription, taker, None, room)?;
            let response = wire::PullResponse { received_messages };
            if request.return_immediately || !response.received_messages.is_empty() {
                return Ok(response);
            }
            tokio::select! {
                _ = wake.changed() => {}
                () = &mut patience => return Ok(response),
                () = self.closed.cancelled() => return Err(Status::unavailable("The broker stops.")),
            }
        }
    }

    /// Takes messages and reads them. The deadline is the subscription's unless another is given.
    pub(super) fn hand_out(
        &self,
        subscription: &Subscription,
        taker: Taker,
        deadline: Option<Duration>,
        room: Room,
    ) -> Result<Vec<wire::ReceivedMessage>, Status> {
        let now = self.context.clock.now();
        let mut inside = subscription.inside();
        inside.may_be_pulled(&subscription.name)?;
        let deadline = deadline.unwrap_or(inside.backlog.rules().ack_deadline);
        let take = self.take(subscription, &mut inside, taker, deadline, room, now);
        for taken in &take {
            let id = subscription.message_id(taken.place);
            for _ in taken.deliveries() {
                let dispatch = self.context.history.begin(Begun {
                    at: now,
                    resource: &subscription.name,
                    id: &id,
                    attempt: taken.attempt,
                    target: PULL,
                    faults: taken.plan.names(),
                });
                inside.backlog.note(taken.place, dispatch);
            }
        }
        let number = inside.number;
        let counted = inside.settings.dead_letter_policy.is_some();
        drop(inside);
        if !take.is_empty() {
            // Its deadlines are new to the keeper.
            self.touch(subscription);
        }
        let received = take
            .iter()
            .map(|taken| self.receive(number, taken, counted));
        Ok(received.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Takes messages, tidies up after what was too old, and notes attempts that count.
    pub(super) fn take(
        &self,
        subscription: &Subscription,
        inside: &mut Inside,
        taker: Taker,
        deadline: Duration,
        room: Room,
        now: Time,
    ) -> Vec<Taken> {
        let topic = inside.settings.topic.clone();
        let resources = [subscription.name.as_str(), topic.as_str()];
        let faults = &self.context.faults;
        let mut plan = |place, attempt| faults.plan(&resources, place, attempt);
        let Take { taken, dropped } = inside.backlog.take(now, taker, deadline, room, &mut plan);
        self.throw_away(subscription, inside.number, &dropped);
        let mut batch = Batch::default();
        let rules = inside.backlog.rules();
        if rules.attempts_max.is_some() && !rules.retain_acked {
            for taken in taken.iter().filter(|taken| taken.attempt > 1) {
                let standing = wire::KeptStanding {
                    attempts: taken.attempt,
                    acknowledged: false,
                };
                rows::put_standing(&mut batch, inside.number, taken.place, &standing);
            }
        }
        self.commit_behind(batch);
        taken
    }

    /// Takes what was too old out of storage, too.
    pub(super) fn throw_away(&self, subscription: &Subscription, number: u64, dropped: &[Place]) {
        if dropped.is_empty() {
            return;
        }
        let mut batch = Batch::default();
        for place in dropped {
            rows::delete_message(&mut batch, number, *place);
        }
        self.commit_behind(batch);
        self.touch(subscription);
    }

    fn receive(
        &self,
        number: u64,
        taken: &Taken,
        counted: bool,
    ) -> Result<Vec<wire::ReceivedMessage>, Status> {
        let message = rows::message(&self.context.storage, number, taken.place);
        let Some(message) = message.map_err(|error| unwritten(&error))? else {
            return Ok(Vec::new());
        };
        let attempt = i32::try_from(taken.attempt).unwrap_or(i32::MAX);
        let received = taken.deliveries().map(|delivery| wire::ReceivedMessage {
            ack_id: AckId {
                backlog: number,
                place: taken.place,
                delivery,
            }
            .to_string(),
            message: Some(message.clone()),
            delivery_attempt: if counted { attempt } else { 0 },
        });
        Ok(received.collect())
    }
}

// === impl Inside ===

impl Inside {
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

// === impl Taken ===

impl Taken {
    /// The number of its delivery, or of both.
    pub(super) fn deliveries(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.delivery).chain(self.twin)
    }
}
