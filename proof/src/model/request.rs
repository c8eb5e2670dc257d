//! What workers ask, in the library's own types.

use super::Semel;
use super::canonical::{DELAY, LEASE, RETENTION};
use super::world::{RunEnd, Worker, World};
use bytes::Bytes;
use semel::protocol::{Answer, Claim, Claimed, Decision, Fail, FailKind, Lease, Operation, Owner};
use semel::{Fingerprint, Key};
use std::time::Duration;

/// The one key of the model, and the one step of its runs.
pub(super) const KEY: Key = Key::from_bytes([1; 32]);
pub(super) const STEP: &str = "step";

impl Semel {
    /// The claim of this owner.
    pub(super) fn claim(&self, owner: Owner) -> Claim {
        Claim {
            key: KEY,
            fingerprint: Fingerprint::from_bytes([1; 32]),
            owner,
            lease: LEASE,
            retention: RETENTION,
            in_doubt: self.settings.in_doubt,
            max_attempts: self.settings.max_attempts,
            max_in_doubt: self.settings.max_in_doubt,
            park_after: self.settings.park_after,
            acts_for: self.settings.acts_for(),
            label: bytes::Bytes::new(),
            by: bytes::Bytes::new(),
        }
    }

    /// What a worker sends to say that its run ended.
    pub(super) fn end_operation(&self, end: RunEnd, lease: &Lease) -> Operation {
        let lease = lease.clone();
        let kind = match end {
            RunEnd::Complete => {
                let result = result(&lease, b'+');
                return Operation::Complete {
                    lease,
                    result,
                    retention: RETENTION,
                };
            }
            RunEnd::Release => {
                return Operation::Release {
                    lease,
                    park_after: self.settings.park_after,
                };
            }
            RunEnd::FailFinal => FailKind::Final,
            RunEnd::FailRetryable => FailKind::Retryable { delay: DELAY },
            RunEnd::FailInDoubt => FailKind::InDoubt {
                delay: Duration::ZERO,
            },
            RunEnd::FailStillInDoubt => FailKind::StillInDoubt {
                delay: Duration::ZERO,
            },
        };
        let result = match kind {
            FailKind::Final => result(&lease, b'-'),
            // Never replayed, so one is as good as another.
            FailKind::Retryable { .. }
            | FailKind::InDoubt { .. }
            | FailKind::StillInDoubt { .. } => Bytes::from_static(b"?"),
        };
        let how = Fail {
            kind,
            in_doubt: self.settings.in_doubt,
            max_attempts: self.settings.max_attempts,
            max_in_doubt: self.settings.max_in_doubt,
            park_after: self.settings.park_after,
            retention: RETENTION,
            result,
        };
        Operation::Fail { lease, how }
    }
}

/// A result that tells whose it is: attempt and kind.
pub(super) fn result(lease: &Lease, kind: u8) -> Bytes {
    let attempt = u8::try_from(lease.attempt).expect("there are few grants");
    Bytes::copy_from_slice(&[attempt, kind])
}

/// The lease that was granted, if one was.
pub(super) const fn granted(decision: &Decision) -> Option<&Lease> {
    let Answer::Claimed(Claimed::Granted(lease)) = &decision.answer else {
        return None;
    };
    Some(lease)
}

// === impl World ===

impl World {
    /// The owner of this worker's next claim: the same one if its last answer was lost.
    pub(super) fn owner(&self, number: usize) -> Owner {
        match self.workers.get(number) {
            Some(Worker::Asking(owner)) => *owner,
            Some(Worker::Idle | Worker::Running(_)) | None => self.fresh_owner(),
        }
    }

    /// Fresh ids are random; here the next number will do.
    fn fresh_owner(&self) -> Owner {
        let of_record = self.record.as_ref().map(|record| record.owner);
        let of_holder = self.ghost.holder.map(|(_, owner)| owner);
        let of_workers = self.workers.iter().filter_map(Worker::owner);
        let highest = of_record
            .into_iter()
            .chain(of_holder)
            .chain(of_workers)
            .max();
        Owner(highest.map_or([0; 16], |Owner([number, ..])| [number + 1; 16]))
    }
}
