//! In doubt: what is parked, what is not, and the parked run's own late word.

use super::answer::{Judged, end, is, that};
use super::behaviour::behaviours;
use super::stage::{AGES, DONE, LEASE, Piece, Stage, failing, in_doubt, retryable};
use crate::record::{Claim, Claimed, Ending, Fail, FailKind, Held, InDoubt, Lease, State};
use crate::store::StoreExt;
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
    let answered = piece.fail_with(&lease, &in_doubt(InDoubt::Park)).await;
    is("fail in doubt", Held::Applied(State::Parked), answered)?;
    let record = piece.is_in(State::Parked).await?;
    let so = record.is_of(&lease) && record.attempts == 1 && record.born == lease.born;
    that(so, "parked with the run's fence and owner", record)?;
    piece.is_told(&piece.claim(), Claimed::Parked).await
}

async fn a_failure_in_doubt_waits_under_retry(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let answered = piece.fail_with(&lease, &in_doubt(InDoubt::Retry)).await;
    is("fail in doubt", Held::Applied(State::Waiting), answered)?;
    let answered = stage.store.claim(&piece.claim()).await;
    let retry_after = Duration::ZERO;
    is("claim", Claimed::NotYet { retry_after }, answered)
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
    let delay = Duration::ZERO;
    let answered = piece.fail(&first, FailKind::Retryable { delay }).await;
    is("fail attempt 1", Held::Applied(State::Waiting), answered)?;
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
    for kind in [FailKind::Retryable { delay }, FailKind::InDoubt { delay }] {
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
    for kind in [FailKind::Retryable { delay }, FailKind::InDoubt { delay }] {
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
    piece
        .completes(&lease, Held::Applied(State::Succeeded))
        .await?;
    replays_success(stage, &piece).await
}

async fn a_parked_run_can_still_fail_for_good(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    piece
        .fails(&lease, FailKind::Final, Held::Applied(State::Failed))
        .await
}

async fn a_parked_run_can_still_give_up(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    piece
        .fails(&lease, retryable(), Held::Applied(State::Waiting))
        .await
}

async fn a_parked_run_can_still_be_released(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    let answered = stage.store.release(&lease).await;
    is("release", Held::Applied(State::Waiting), answered)?;
    let second = piece.grant().await?;
    let so = second.attempt == 1 && second.fence > lease.fence && second.born == lease.born;
    that(so, "attempt 1 again, a higher fence, the same born", second)
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
    piece
        .completes(&lease, Held::Applied(State::Succeeded))
        .await?;
    replays_success(stage, &piece).await
}

async fn a_late_word_counts_once(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = lapsed(stage).await?;
    piece
        .completes(&lease, Held::Applied(State::Succeeded))
        .await?;
    let answered = piece.complete(&lease, b"other").await;
    is("complete again", Held::Already(State::Succeeded), answered)?;
    let answered = piece.fail(&lease, FailKind::Final).await;
    let settled = Held::Settled(end(Ending::Succeeded, DONE));
    is("fail for good after that", settled, answered)?;
    replays_success(stage, &piece).await
}

async fn replays_success(stage: &Stage<'_>, piece: &Piece) -> Judged {
    let answered = stage.store.claim(&piece.claim()).await;
    let expected = Claimed::Replayed(end(Ending::Succeeded, DONE));
    is("claim after the late word", expected, answered)
}
