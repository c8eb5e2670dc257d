//! Acknowledgements, refusals and extensions, by ack id.

use super::backlog::{AckOutcome, DeliveryEnd, EndedDelivery, Sequence};
use super::errors::{invalid, invalid_ack_ids, malformed_ack_ids};
use super::registry::Registry;
use super::resources::Subscription;
use super::rows;
use crate::clock::Time;
use crate::history;
use crate::proto::pubsub as wire;
use crate::storage::Batch;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use prost::encoding::{decode_varint, encode_varint};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

const EXTENSION_SECONDS_MAX: i32 = 600;

/// Names one delivery: its backlog, the message's sequence there, and the delivery's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckId {
    pub(super) backlog: u64,
    pub(super) sequence: Sequence,
    pub(super) delivery: u64,
}

// === impl AckId ===

/// Short, because refusals name many of them: three numbers of seven bits a byte and a check, in base64.
impl fmt::Display for AckId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::new();
        for number in [self.backlog, self.sequence, self.delivery] {
            encode_varint(number, &mut bytes);
        }
        bytes.extend(check_bytes(&bytes));
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for AckId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| ())?;
        let mut bytes = bytes.as_slice();
        let mut number = || decode_varint(&mut bytes).map_err(|_| ());
        let id = Self {
            backlog: number()?,
            sequence: number()?,
            delivery: number()?,
        };
        // There is one way to write an id: clients look for the very text in a refusal.
        match id.to_string() == text {
            true => Ok(id),
            false => Err(()),
        }
    }
}

// === impl Registry ===

impl Registry {
    pub(super) async fn acknowledge(
        self: Arc<Self>,
        request: wire::AcknowledgeRequest,
    ) -> Result<(), Status> {
        let subscription = self.subscription(&request.subscription)?;
        if request.ack_ids.is_empty() {
            return Err(Status::invalid_argument("No ack ids specified."));
        }
        let invalid = self
            .acknowledge_ids(&subscription, &request.ack_ids)
            .await?;
        all_valid(&invalid)
    }

    /// Answers those that did not count, which only happens with exactly-once delivery.
    pub(super) async fn acknowledge_ids(
        &self,
        subscription: &Subscription,
        ids: &[String],
    ) -> Result<Vec<String>, Status> {
        let exactly_once = subscription.state().backlog.policy().exactly_once;
        let mut known = Vec::with_capacity(ids.len());
        let mut invalid = Vec::new();
        for id in ids {
            match AckId::from_str(id) {
                Ok(parsed) => known.push(parsed),
                Err(()) if exactly_once => invalid.push(id.clone()),
                Err(()) => return Err(malformed_ack_ids()),
            }
        }
        let _shared = self.topology.read().await;
        let refused = self.settle(subscription, &known).await?;
        invalid.extend(refused.iter().map(ToString::to_string));
        Ok(invalid)
    }

    /// Writes acknowledgements down, then makes them. The caller holds the topology lock.
    pub(super) async fn settle(
        &self,
        subscription: &Subscription,
        ids: &[AckId],
    ) -> Result<Vec<AckId>, Status> {
        let mut batch = Batch::default();
        let (leaving, invalid, number) = self.begin_settling(subscription, ids, &mut batch);
        if subscription.state().backlog.policy().exactly_once {
            self.commit(batch).await?;
        } else {
            self.write(batch).await?;
        }
        {
            let mut state = subscription.state();
            if state.number == number {
                for sequence in leaving {
                    state.backlog.acknowledged(sequence);
                }
            }
        }
        self.notify(subscription);
        Ok(invalid)
    }

    fn begin_settling(
        &self,
        subscription: &Subscription,
        ids: &[AckId],
        batch: &mut Batch,
    ) -> (Vec<Sequence>, Vec<AckId>, u64) {
        let now = self.context.clock.now();
        let mut state = subscription.state();
        let (number, exactly_once) = (state.number, state.backlog.policy().exactly_once);
        let (mut leaving, mut invalid) = (Vec::new(), Vec::new());
        for id in ids {
            if id.backlog != number {
                invalid.extend(exactly_once.then_some(*id));
                continue;
            }
            let (outcome, ended) = state.backlog.acknowledge(id.sequence, id.delivery, now);
            self.note(ended, now);
            match outcome {
                AckOutcome::Acknowledging => leaving.push(id.sequence),
                AckOutcome::Done => {}
                AckOutcome::Invalid => invalid.push(*id),
            }
        }
        let retain = state.backlog.policy().retain_acked;
        for sequence in &leaving {
            let attempts = state.backlog.attempts(*sequence);
            rows::end_message(batch, number, *sequence, attempts, retain);
        }
        (leaving, invalid, number)
    }

    pub(super) fn modify_ack_deadline(
        &self,
        request: &wire::ModifyAckDeadlineRequest,
    ) -> Result<(), Status> {
        let subscription = self.subscription(&request.subscription)?;
        if request.ack_ids.is_empty() {
            return Err(Status::invalid_argument("No ack ids specified."));
        }
        let seconds = request.ack_deadline_seconds;
        let ids = request.ack_ids.iter().map(|id| (id, seconds));
        let invalid = self.modify_ids(&subscription, ids)?;
        all_valid(&invalid)
    }

    /// Extends deliveries, or refuses them with 0 seconds. Answers those that did not count.
    pub(super) fn modify_ids<'a>(
        &self,
        subscription: &Subscription,
        ids: impl Iterator<Item = (&'a String, i32)>,
    ) -> Result<Vec<String>, Status> {
        let exactly_once = subscription.state().backlog.policy().exactly_once;
        let (mut known, mut invalid_ids) = (Vec::new(), Vec::new());
        for (id, seconds) in ids {
            if !(0..=EXTENSION_SECONDS_MAX).contains(&seconds) {
                return Err(invalid(
                    "ack_deadline_seconds",
                    seconds,
                    "it is from 0 to 600",
                ));
            }
            match AckId::from_str(id) {
                Ok(parsed) => known.push((parsed, seconds)),
                Err(()) if exactly_once => invalid_ids.push(id.clone()),
                Err(()) => return Err(malformed_ack_ids()),
            }
        }
        for (id, seconds) in known {
            if self.modify(subscription, id, seconds) == AckOutcome::Invalid {
                invalid_ids.push(id.to_string());
            }
        }
        self.notify(subscription);
        Ok(invalid_ids)
    }

    fn modify(&self, subscription: &Subscription, id: AckId, seconds: i32) -> AckOutcome {
        let now = self.context.clock.now();
        let mut state = subscription.state();
        if id.backlog != state.number {
            return match state.backlog.policy().exactly_once {
                true => AckOutcome::Invalid,
                false => AckOutcome::Done,
            };
        }
        if seconds == 0 {
            let (outcome, ended) = state.backlog.refuse(id.sequence, id.delivery, now);
            self.note(ended, now);
            return outcome;
        }
        let span = Duration::from_secs(u64::from(seconds.unsigned_abs()));
        state.backlog.extend(id.sequence, id.delivery, span, now)
    }

    /// Tells the history how deliveries ended.
    pub(super) fn note(&self, all: impl IntoIterator<Item = EndedDelivery>, now: Time) {
        for ended in all {
            let took = now.since(ended.since);
            for dispatch in ended.dispatches {
                let result = match ended.end {
                    DeliveryEnd::Acknowledged => history::DispatchResult::Acknowledged,
                    DeliveryEnd::AckLost => history::DispatchResult::AnswerLost { status: 200 },
                    DeliveryEnd::Refused => history::DispatchResult::Refused,
                    DeliveryEnd::Expired => history::DispatchResult::TimedOut,
                };
                self.context.history.end(dispatch, result, took);
            }
        }
    }
}

/// By which an id is told from other base64 (FNV-1a).
fn check_bytes(bytes: &[u8]) -> [u8; 2] {
    let fold = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(16_777_619);
    let [first, second, _, _] = bytes.iter().fold(2_166_136_261, fold).to_be_bytes();
    [first, second]
}

fn all_valid(invalid: &[String]) -> Result<(), Status> {
    match invalid.is_empty() {
        true => Ok(()),
        false => Err(invalid_ack_ids(invalid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::rpc;
    use crate::status::DETAILS_BYTES_MAX;
    use prost::Message;

    #[test]
    fn an_ack_id_names_one_delivery() {
        let id = AckId {
            backlog: 7,
            sequence: 300,
            delivery: u64::MAX,
        };
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "AQ", "AQID", "AQIDAAA", "nonsense", "x-2-3"] {
            assert_eq!(AckId::from_str(text), Err(()), "{text}");
        }
    }
    #[test]
    fn a_refusal_of_many_ack_ids_is_short_enough_for_clients() {
        let id = |sequence| AckId {
            backlog: 7,
            sequence,
            delivery: 1 << 40,
        };
        let mut ids: Vec<_> = (1..=1000).map(|it| id(it).to_string()).collect();
        ids.insert(1, "x".repeat(10_000));
        let refused = all_valid(&ids).expect_err("some are invalid");
        assert!(refused.details().len() <= DETAILS_BYTES_MAX);
        let details = rpc::Status::decode(refused.details()).expect("it was encoded");
        let info = &details.details.first().expect("it names ids").value;
        let info = rpc::ErrorInfo::decode(info.as_slice()).expect("it was encoded");
        assert!(info.metadata.len() > 50, "{}", info.metadata.len());
        assert!(info.metadata.contains_key(&id(1).to_string()));
    }
}
