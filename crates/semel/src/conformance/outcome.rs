//! How a run ends: complete, fail, release; said once, said again, said too late.

use super::answer::{Judged, end, is, that};
use super::behaviour::behaviours;
use super::stage::release_by_operator;
use super::stage::{DONE, Piece, RETENTION, Stage, WAITING, WHY};
use super::stage::{failing, is_next_run, retryable};
use crate::record::{Ending, FailKind, Held, State};
use std::time::Duration;

behaviours![
    BEHAVIOURS:
    a_run_succeeds,
    a_repeated_completion_landed_already,
    a_run_fails_for_good,
    a_repeated_final_failure_landed_already,
    a_run_fails_and_waits,
    a_repeated_retryable_failure_landed_already,
    a_run_is_released,
    a_repeated_release_landed_already,
    what_settled_first_stands,
    results_are_replayed_byte_for_byte,
    failures_are_kept_byte_for_byte,
];

behaviours![
    OPERATORS:
    a_failure_is_shown_while_it_waits,
];

async fn a_run_succeeds(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    piece.reaches(&lease, State::Succeeded).await?;
    let record = piece.is_in(State::Succeeded).await?;
    let so = record.is_of(&lease)
        && record.born == lease.born
        && record.attempts == 1
        && record.result.as_deref() == Some(DONE);
    that(so, "the run's fence, owner and result", record)
}

async fn a_repeated_completion_landed_already(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Succeeded).await?;
    let before = piece.record().await?;
    for result in [DONE, b"something else"] {
        let answered = piece.complete(&lease, result).await;
        is("complete again", Held::Already(State::Succeeded), answered)?;
    }
    piece.is_still(&before).await
}

async fn a_run_fails_for_good(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    piece.reaches(&lease, State::Failed).await?;
    let record = piece.is_in(State::Failed).await?;
    let so = record.is_of(&lease) && record.result.as_deref() == Some(WHY);
    that(so, "the run's fence, owner and result", record)
}

async fn a_repeated_final_failure_landed_already(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Failed).await?;
    let before = piece.record().await?;
    piece
        .fails(&lease, FailKind::Final, Held::Already(State::Failed))
        .await?;
    piece.is_still(&before).await
}

async fn a_run_fails_and_waits(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    piece.reaches(&lease, State::Waiting).await?;
    let record = piece.is_in(State::Waiting).await?;
    let so = record.is_of(&lease) && record.attempts == 1 && record.born == lease.born;
    that(so, "the run's fence and owner, attempts 1", &record)?;
    let so = record.expires_at.since(record.lease_until) >= RETENTION;
    let expected = "remembered a whole retention after it is due";
    that(so, expected, record)
}

async fn a_repeated_retryable_failure_landed_already(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Waiting).await?;
    let before = piece.record().await?;
    let delay = Duration::ZERO;
    for kind in [
        retryable(),
        FailKind::Retryable { delay },
        FailKind::InDoubt { delay },
    ] {
        let answered = piece.fail(&lease, kind).await;
        is("fail again", Held::Already(State::Waiting), answered)?;
    }
    piece.is_still(&before).await
}

async fn a_run_is_released(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    piece.releases(&first, WAITING).await?;
    let record = piece.is_in(State::Waiting).await?;
    let so = record.attempts == 0 && record.result.is_none() && record.is_of(&first);
    let expected = "the attempt does not count, and there is no result";
    that(so, expected, record)?;
    is_next_run(&first, &piece.grant().await?, 1)
}

async fn a_repeated_release_landed_already(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    piece.releases(&lease, WAITING).await?;
    let before = piece.record().await?;
    piece
        .releases(&lease, Held::Already(State::Waiting))
        .await?;
    piece.is_still(&before).await
}

async fn what_settled_first_stands(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Succeeded).await?;
    let before = piece.record().await?;
    let success = || Held::Settled(end(Ending::Succeeded, DONE));
    piece.fails(&lease, FailKind::Final, success()).await?;
    piece.fails(&lease, retryable(), success()).await?;
    piece.releases(&lease, success()).await?;
    piece.is_still(&before).await?;

    let (piece, lease) = stage.piece_in(State::Failed).await?;
    let before = piece.record().await?;
    let failure = || Held::Settled(end(Ending::Failed, WHY));
    piece.completes(&lease, failure()).await?;
    piece.fails(&lease, retryable(), failure()).await?;
    piece.releases(&lease, failure()).await?;
    piece.is_still(&before).await
}

/// Results that text columns, C strings and separators get wrong.
pub(super) fn awkward() -> [Vec<u8>; 5] {
    let large = (0..1_048_576_u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0]);
    [
        Vec::new(),
        vec![0],
        (0..=255).collect(),
        b"\xff\xfe '\\x00' ':\r\n\0".to_vec(),
        large.collect(),
    ]
}

async fn results_are_replayed_byte_for_byte(stage: &Stage<'_>) -> Judged {
    for result in awkward() {
        let (piece, lease) = stage.piece_in(State::Running).await?;
        let answered = piece.complete(&lease, &result).await;
        is("complete", Held::Applied(State::Succeeded), answered)?;
        piece.is_replayed(Ending::Succeeded, &result).await?;
        let success = end(Ending::Succeeded, &result);
        piece.renews(&lease, Held::Settled(success)).await?;
        let shown = piece.record().await?.result;
        let so = shown.as_deref() == Some(&result[..]);
        that(so, "look shows the result", shown)?;
    }
    Ok(())
}

async fn failures_are_kept_byte_for_byte(stage: &Stage<'_>) -> Judged {
    for result in awkward() {
        let (piece, lease) = stage.piece_in(State::Running).await?;
        let mut how = failing(FailKind::Final);
        how.result = result.clone().into();
        let answered = piece.fail_with(&lease, &how).await;
        is("fail for good", Held::Applied(State::Failed), answered)?;
        piece.is_replayed(Ending::Failed, &result).await?;
    }
    Ok(())
}

async fn a_failure_is_shown_while_it_waits(stage: &Stage<'_>) -> Judged {
    for state in [State::Waiting, State::Parked] {
        let (piece, _) = stage.piece_in(state).await?;
        shows_the_failure(&piece).await?;
    }
    let (piece, _) = stage.piece_in(State::Waiting).await?;
    piece.applies(release_by_operator).await?;
    shows_the_failure(&piece).await
}

async fn shows_the_failure(piece: &Piece) -> Judged {
    let record = piece.record().await?;
    let so = record.result.as_deref() == Some(WHY);
    that(so, "look shows the last failure", record)
}
