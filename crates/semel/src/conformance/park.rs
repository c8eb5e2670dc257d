//! In doubt: what is parked, what is not, and the parked run's own late word.

use super::answer::{Judged, end, is, that};
use super::behaviour::behaviours;
use super::stage::{AGES, AT_ONCE, DONE, LEASE, Piece, Stage, WAITING};
use super::stage::{failing, in_doubt, is_next_run, retryable};
use crate::record::{Claim, Claimed, Ending, Fail, FailKind, Held, InDoubt, Lease, State};
use std::num::NonZeroU32;
use std::time::Duration;

behaviours![
    BEHAVIOURS:
    a_failure_in_doubt_is_parked_under_park,
    a_failure_in_doubt_waits_under_retry,
    a_retryable_failure_waits_even_under_park,
    a_final_failure_is_final_at_max_attempts,
    a_failure_at_max_attempts_is_parked,
    a_failure_below_max_attempts_waits,
    a_parked_record_is_never_granted,
    a_parked_run_can_still_complete,
    a_parked_run_can_still_fail_for_good,
    a_parked_run_can_still_give_up,
    a_parked_run_can_still_be_released,
    a_run_that_lapsed_and_was_parked_can_still_complete,
    a_late_word_counts_once,
];

async fn a_failure_in_doubt_is_parked_under_park(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    piece.reaches(&lease, State::Parked).await?;
    let record = piece.is_in(State::Parked).await?;
    let so = record.is_of(&lease) && record.attempts == 1 && record.born == lease.born;
    that(so, "parked with the run's fence and owner", record)?;
    piece.is_told(&piece.claim(), Claimed::Parked).await
}

async fn a_failure_in_doubt_waits_under_retry(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let answered = piece.fail_with(&lease, &in_doubt(InDoubt::Retry)).await;
    is("fail in doubt", Held::Applied(State::Waiting), answered)?;
    let retry_after = Duration::ZERO;
    let not_yet = Claimed::NotYet { retry_after };
    piece.is_told(&piece.claim(), not_yet).await
}

async fn a_retryable_failure_waits_even_under_park(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let lease = piece.grant_to(&piece.parking()).await?;
    let how = Fail {
        in_doubt: InDoubt::Park,
        ..failing(retryable())
    };
    let answered = piece.fail_with(&lease, &how).await;
    is("fail", Held::Applied(State::Waiting), answered)
}

/// Fails attempt 2 of `max`, in this way, and says where that led.
async fn second_attempt(stage: &Stage<'_>, kind: FailKind, max: u32) -> Judged<(Piece, State)> {
    let (piece, first) = stage.piece_in(State::Running).await?;
    piece.fails(&first, AT_ONCE, WAITING).await?;
    let second = piece.grant().await?;
    let how = Fail {
        max_attempts: NonZeroU32::new(max),
        ..failing(kind)
    };
    match piece.fail_with(&second, &how).await {
        Ok(Held::Applied(state)) => Ok((piece, state)),
        other => super::answer::broken("fail: Applied", &super::answer::shown(&other)),
    }
}

async fn a_final_failure_is_final_at_max_attempts(stage: &Stage<'_>) -> Judged {
    let (_, state) = second_attempt(stage, FailKind::Final, 2).await?;
    is("fail attempt 2 of 2 for good", State::Failed, Ok(state))
}

async fn a_failure_at_max_attempts_is_parked(stage: &Stage<'_>) -> Judged {
    let delay = Duration::ZERO;
    for kind in [AT_ONCE, FailKind::InDoubt { delay }] {
        for max in [1, 2] {
            let (piece, state) = second_attempt(stage, kind, max).await?;
            is("fail attempt 2 of 2", State::Parked, Ok(state))?;
            piece.is_told(&piece.claim(), Claimed::Parked).await?;
        }
    }
    Ok(())
}

async fn a_failure_below_max_attempts_waits(stage: &Stage<'_>) -> Judged {
    let delay = Duration::ZERO;
    for kind in [AT_ONCE, FailKind::InDoubt { delay }] {
        let (piece, state) = second_attempt(stage, kind, 3).await?;
        is("fail attempt 2 of 3", State::Waiting, Ok(state))?;
        let third = piece.grant().await?;
        that(third.attempt == 3, "attempt 3", third)?;
    }
    Ok(())
}

async fn a_parked_record_is_never_granted(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    let again = |owner| Claim {
        owner,
        ..piece.claim()
    };
    for _ in 0..2 {
        for claim in [piece.claim(), piece.parking(), again(lease.owner)] {
            piece.is_told(&claim, Claimed::Parked).await?;
        }
        stage.pass(AGES).await;
    }
    Ok(())
}

async fn a_parked_run_can_still_complete(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    piece.reaches(&lease, State::Succeeded).await?;
    piece.is_replayed(Ending::Succeeded, DONE).await
}

async fn a_parked_run_can_still_fail_for_good(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    piece.reaches(&lease, State::Failed).await
}

async fn a_parked_run_can_still_give_up(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    piece.reaches(&lease, State::Waiting).await
}

async fn a_parked_run_can_still_be_released(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    piece.releases(&lease, WAITING).await?;
    is_next_run(&lease, &piece.grant().await?, 1)
}

/// Parks a run by a lapse.
async fn lapsed(stage: &Stage<'_>) -> Judged<(Piece, Lease)> {
    let piece = stage.piece();
    let lease = piece.grant_to(&piece.parking()).await?;
    stage.pass(LEASE).await;
    piece.is_told(&piece.parking(), Claimed::Parked).await?;
    Ok((piece, lease))
}

async fn a_run_that_lapsed_and_was_parked_can_still_complete(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = lapsed(stage).await?;
    stage.pass(AGES).await;
    piece.reaches(&lease, State::Succeeded).await?;
    piece.is_replayed(Ending::Succeeded, DONE).await
}

async fn a_late_word_counts_once(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = lapsed(stage).await?;
    piece.reaches(&lease, State::Succeeded).await?;
    let answered = piece.complete(&lease, b"other").await;
    is("complete again", Held::Already(State::Succeeded), answered)?;
    let answered = piece.fail(&lease, FailKind::Final).await;
    let settled = Held::Settled(end(Ending::Succeeded, DONE));
    is("fail for good after that", settled, answered)?;
    piece.is_replayed(Ending::Succeeded, DONE).await
}
