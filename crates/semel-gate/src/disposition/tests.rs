use super::*;
use crate::rates::Became;
use bytes::Bytes;
use semel::work::Failure;

const SOON: Duration = Duration::from_secs(1);

fn recorded(ending: Ending) -> Arc<Recorded> {
    let outcome = Outcome::new(200, Bytes::new());
    Arc::new(Recorded { ending, outcome })
}

fn failed() -> Arc<Failed> {
    let failure = Failure {
        kind: FailureKind::Retryable,
        outcome: Outcome::new(500, Bytes::new()),
        after: None,
    };
    let state = State::Waiting;
    Arc::new(Failed { failure, state })
}

fn exhausted(it: Disposition) -> Disposition {
    Disposition::Letter(Undelivered::Exhausted(Box::new(it)))
}

#[test]
fn only_what_was_answered_from_a_success_is_an_effect_that_was_not_repeated() {
    let all = [
        Disposition::Replayed(recorded(Ending::Succeeded)),
        Disposition::Replayed(recorded(Ending::Failed)),
        Disposition::Letter(Undelivered::FailedBefore(recorded(Ending::Failed))),
        Disposition::Busy { retry_after: SOON },
        Disposition::NotYet { retry_after: SOON },
        Disposition::Mismatched,
        Disposition::Letter(Undelivered::Mismatched),
        Disposition::Ran(recorded(Ending::Succeeded)),
        exhausted(Disposition::Busy { retry_after: SOON }),
    ];
    let spared = all.map(|it| Became::of(&it) == Became::Replayed);
    assert_eq!(spared.iter().position(|it| *it), Some(0));
    assert_eq!(spared.iter().filter(|it| **it).count(), 1);
}

#[test]
fn duplicates_ran_nothing_because_the_same_work_is_known() {
    let again = [
        Disposition::Replayed(recorded(Ending::Succeeded)),
        Disposition::Replayed(recorded(Ending::Failed)),
        Disposition::Letter(Undelivered::FailedBefore(recorded(Ending::Failed))),
        Disposition::Busy { retry_after: SOON },
        Disposition::NotYet { retry_after: SOON },
        exhausted(Disposition::NotYet { retry_after: SOON }),
        Disposition::NotKept(
            Undelivered::FailedBefore(recorded(Ending::Failed)),
            NotKept::Store,
        ),
    ];
    for it in again {
        assert!(it.is_duplicate(), "{it:?}");
        assert!(!it.is_mismatched(), "{it:?}");
    }
    let other = [
        Disposition::Ran(recorded(Ending::Succeeded)),
        Disposition::Ran(recorded(Ending::Failed)),
        Disposition::Unrecorded(recorded(Ending::Succeeded)),
        Disposition::Unread,
        Disposition::Retryable(failed()),
        Disposition::Running { retry_after: SOON },
        Disposition::Full { retry_after: SOON },
        Disposition::Stale,
        Disposition::Parked,
        Disposition::Store(Error::Unavailable("down".into())),
        Disposition::NoRoom,
        Disposition::Letter(Undelivered::Failed(recorded(Ending::Failed))),
        Disposition::Letter(Undelivered::Parked(failed())),
        Disposition::Letter(Undelivered::ParkedBefore),
        exhausted(Disposition::Retryable(failed())),
    ];
    for it in other {
        assert!(!it.is_duplicate() && !it.is_mismatched(), "{it:?}");
    }
}

#[test]
fn other_work_under_the_key_is_no_duplicate() {
    let mismatched = [
        Disposition::Mismatched,
        Disposition::Letter(Undelivered::Mismatched),
        Disposition::NotKept(Undelivered::Mismatched, NotKept::Unsettled),
        exhausted(Disposition::Mismatched),
    ];
    for it in mismatched {
        assert!(it.is_mismatched() && !it.is_duplicate(), "{it:?}");
    }
}
