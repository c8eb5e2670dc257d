//! Durability by need: which answers must be on disk before they are given.
//!
//! Losing a claim in a power cut is the same event as a lapsed lease; losing a completion repeats
//! an effect. So nobody is told of an end, a step, a letter or an operator's act that a power cut
//! could still take back, while a grant under `retry` is given once the operating system has it.

use semel::protocol::{Acted, Answer, Claimed, Held, InDoubt, Operation, StepBegun};

/// Whether a caller may hear this answer only once what it rests on is on disk.
pub(crate) const fn waits_for_disk(operation: &Operation, answer: &Answer) -> bool {
    match answer {
        Answer::Claimed(Claimed::Granted(_)) => grants_at_most_once(operation),
        Answer::Claimed(Claimed::Replayed(_) | Claimed::Parked) => true,
        Answer::Claimed(Claimed::Busy { .. } | Claimed::NotYet { .. } | Claimed::Mismatched) => {
            false
        }
        // A lost renewal is a lease that ends earlier.
        Answer::Held(Held::Applied(_)) => !matches!(operation, Operation::Renew { .. }),
        Answer::Held(Held::Already(_) | Held::Settled(_) | Held::Parked) => true,
        Answer::Held(Held::Stale) => false,
        Answer::Looked(_) => true,
        Answer::StepBegun(
            StepBegun::Run
            | StepBegun::Memo { .. }
            | StepBegun::InDoubt(_)
            | StepBegun::Settled(_)
            | StepBegun::Parked,
        ) => true,
        Answer::StepBegun(StepBegun::Stale) => false,
        Answer::Acted(Acted::Applied | Acted::Gone(_)) => true,
        Answer::Acted(Acted::Refused) => false,
        // Found again is found later: no claim reads the index, and steps are shown to people.
        Answer::Steps(_) | Answer::Indexed | Answer::Found(_) => false,
        Answer::Ready => true,
    }
}

/// Under `park` a forgotten grant would be granted a second time, and under `probe` nobody would ask about it.
const fn grants_at_most_once(operation: &Operation) -> bool {
    matches!(operation, Operation::Claim(claim) if matches!(claim.in_doubt, InDoubt::Park | InDoubt::Probe))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use semel::protocol::{Claim, Fence, Lease, Owner, State};
    use semel::{Fingerprint, Key};
    use std::time::Duration;

    const KEY: Key = Key::from_bytes([1; 32]);
    const LEASE: Lease = Lease {
        key: KEY,
        owner: Owner([2; 16]),
        fence: Fence(3),
        born: Fence(3),
        attempt: 1,
        in_doubt: false,
    };

    fn claim(in_doubt: InDoubt) -> Operation {
        Operation::Claim(Claim {
            owner: LEASE.owner,
            lease: Duration::from_secs(1),
            retention: Duration::from_secs(1),
            in_doubt,
            ..Claim::new(KEY, Fingerprint::off())
        })
    }

    #[test]
    fn only_a_grant_under_retry_and_a_renewal_are_answered_before_the_sync() {
        let granted = Answer::Claimed(Claimed::Granted(LEASE));
        assert!(!waits_for_disk(&claim(InDoubt::Retry), &granted));
        assert!(waits_for_disk(&claim(InDoubt::Park), &granted));
        assert!(waits_for_disk(&claim(InDoubt::Probe), &granted));

        let applied = |state| Answer::Held(Held::Applied(state));
        let renew = Operation::Renew {
            lease: LEASE,
            lease_for: Duration::ZERO,
            retention: Duration::ZERO,
        };
        assert!(!waits_for_disk(&renew, &applied(State::Running)));
        let complete = Operation::Complete {
            lease: LEASE,
            result: Bytes::new(),
            retention: Duration::ZERO,
        };
        assert!(waits_for_disk(&complete, &applied(State::Succeeded)));
        let release = Operation::Release {
            lease: LEASE,
            park_after: None,
        };
        assert!(waits_for_disk(&release, &applied(State::Waiting)));
    }
}
