//! Limits on repeating: runs in doubt are counted, answered failures are not, and old work is parked.

use super::answer::{Judged, is, that};
use super::behaviour::behaviours;
use super::stage::{AGES, AT_ONCE, LEASE, Piece, Stage, WAITING, failing, in_doubt};
use crate::record::{
    Claim, Claimed, Fail, FailKind, Held, InDoubt, Lease, PARK_AFTER_ATTEMPTS, State,
};
use std::num::NonZeroU32;
use std::time::Duration;

behaviours![
    BEHAVIOURS:
    a_failure_in_doubt_is_counted,
    a_lapse_is_counted_when_it_is_found,
    a_run_after_one_in_doubt_can_read_why_and_nobody_else_later,
    answered_failures_and_releases_are_not_counted,
    a_repeated_failure_is_counted_once,
    a_failure_in_doubt_at_max_in_doubt_is_parked,
    a_lapse_at_max_in_doubt_is_parked,
    an_answered_failure_beyond_max_in_doubt_waits,
    a_new_incarnation_counts_from_none,
    old_work_is_parked_once_it_had_enough_runs,
    young_work_is_not_parked,
];

/// A failure in doubt that may be tried again at once.
const DOUBT: FailKind = FailKind::InDoubt {
    delay: Duration::ZERO,
};

const PARKED: Held = Held::Applied(State::Parked);

/// Older than any work of the suite can be, whichever way its time passes.
const NEVER: Duration = Duration::from_secs(1_000 * 24 * 3_600);

/// Longer than work takes that has no time to pass, and short enough to wait for.
const A_WHILE: Duration = Duration::from_millis(5);

/// So many runs were counted as in doubt, and the last one is, or is not.
pub(super) async fn doubts(piece: &Piece, count: u32, in_doubt: bool) -> Judged {
    let record = piece.record().await?;
    let so = (record.doubts, record.in_doubt) == (count, in_doubt);
    let expected = format!("doubts {count}, in doubt {in_doubt}");
    that(so, &expected, record)
}

fn limited(kind: FailKind, max_in_doubt: u32) -> Fail {
    Fail {
        max_in_doubt: NonZeroU32::new(max_in_doubt),
        ..failing(kind)
    }
}

async fn a_failure_in_doubt_is_counted(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    doubts(&piece, 0, false).await?;
    piece.fails(&first, DOUBT, WAITING).await?;
    doubts(&piece, 1, true).await?;
    let second = piece.grant().await?;
    that(second.in_doubt, "a run after one in doubt", &second)?;
    piece.fails(&second, DOUBT, WAITING).await?;
    doubts(&piece, 2, true).await
}

async fn a_lapse_is_counted_when_it_is_found(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    doubts(&piece, 0, false).await?;
    let second = piece.grant().await?;
    that(second.in_doubt, "a run after one in doubt", second)?;
    doubts(&piece, 1, true).await?;
    stage.pass(LEASE).await;
    piece.is_told(&piece.parking(), Claimed::Parked).await?;
    doubts(&piece, 2, true).await
}

/// What the record has while another runs is the last word of the run before it, if that ended in doubt.
async fn a_run_after_one_in_doubt_can_read_why_and_nobody_else_later(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    piece.fails(&first, DOUBT, WAITING).await?;
    let second = piece.grant().await?;
    has_result(&piece, true).await?;
    piece.releases(&second, WAITING).await?;
    piece.grant().await?;
    has_result(&piece, true).await?;
    stage.pass(LEASE).await;
    let third = piece.grant().await?;
    has_result(&piece, false).await?;
    piece.fails(&third, AT_ONCE, WAITING).await?;
    piece.grant().await?;
    has_result(&piece, false).await
}

async fn has_result(piece: &Piece, has: bool) -> Judged {
    let record = piece.record().await?;
    let expected = format!("a running record whose result is there: {has}");
    that(record.result.is_some() == has, &expected, record)
}

async fn answered_failures_and_releases_are_not_counted(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    piece.fails(&first, AT_ONCE, WAITING).await?;
    doubts(&piece, 0, false).await?;
    let second = piece.grant().await?;
    that(!second.in_doubt, "a run after a known failure", &second)?;
    piece.releases(&second, WAITING).await?;
    doubts(&piece, 0, false).await?;
    let third = piece.grant().await?;
    piece.fails(&third, DOUBT, WAITING).await?;
    let fourth = piece.grant().await?;
    piece.fails(&fourth, AT_ONCE, WAITING).await?;
    doubts(&piece, 1, false).await
}

async fn a_repeated_failure_is_counted_once(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    for _ in 0..3 {
        let answered = piece.fail_with(&lease, &in_doubt(InDoubt::Park)).await;
        is("fail in doubt", PARKED, answered)?;
        doubts(&piece, 1, true).await?;
    }
    Ok(())
}

async fn a_failure_in_doubt_at_max_in_doubt_is_parked(stage: &Stage<'_>) -> Judged {
    for (max, expected) in [(0, WAITING), (1, PARKED), (2, PARKED), (3, WAITING)] {
        let (piece, first) = stage.piece_in(State::Running).await?;
        piece.fails(&first, DOUBT, WAITING).await?;
        let second = piece.grant().await?;
        let answered = piece.fail_with(&second, &limited(DOUBT, max)).await;
        is(&format!("the second doubt of {max}"), expected, answered)?;
    }
    Ok(())
}

async fn a_lapse_at_max_in_doubt_is_parked(stage: &Stage<'_>) -> Judged {
    for max in 1..=3 {
        let (piece, first) = stage.piece_in(State::Running).await?;
        piece.fails(&first, DOUBT, WAITING).await?;
        piece.grant().await?;
        stage.pass(LEASE).await;
        let claim = Claim {
            max_in_doubt: NonZeroU32::new(max),
            ..piece.claim()
        };
        if max > 2 {
            piece.grant_to(&claim).await?;
            continue;
        }
        piece.is_told(&claim, Claimed::Parked).await?;
        doubts(&piece, 2, true).await?;
    }
    Ok(())
}

async fn an_answered_failure_beyond_max_in_doubt_waits(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    piece.fails(&first, DOUBT, WAITING).await?;
    let second = piece.grant().await?;
    let answered = piece.fail_with(&second, &limited(AT_ONCE, 1)).await;
    is("an answered failure", WAITING, answered)
}

async fn a_new_incarnation_counts_from_none(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    piece.fails(&first, DOUBT, WAITING).await?;
    stage.pass(AGES).await;
    let lease = piece.grant().await?;
    that(!lease.in_doubt, "a first run", lease)?;
    doubts(&piece, 0, false).await
}

/// The run with this attempt, after failures that were answered.
async fn attempt(stage: &Stage<'_>, attempt: u32) -> Judged<(Piece, Lease)> {
    let piece = stage.piece();
    let mut lease = piece.grant().await?;
    while lease.attempt < attempt {
        piece.fails(&lease, AT_ONCE, WAITING).await?;
        lease = piece.grant().await?;
    }
    Ok((piece, lease))
}

/// Lets a while pass, on the store's own clock if it cannot be moved: `born`, being a fence, does not age.
async fn a_while(stage: &Stage<'_>) {
    stage.subject.advance(A_WHILE).await;
    tokio::time::sleep(A_WHILE).await;
}

async fn old_work_is_parked_once_it_had_enough_runs(stage: &Stage<'_>) -> Judged {
    let old = |kind| Fail {
        park_after: Some(A_WHILE),
        ..failing(kind)
    };
    for kind in [AT_ONCE, DOUBT] {
        let (piece, fourth) = attempt(stage, PARK_AFTER_ATTEMPTS - 1).await?;
        a_while(stage).await;
        let answered = piece.fail_with(&fourth, &old(kind)).await;
        is("fail with too few runs", WAITING, answered)?;
        let fifth = piece.grant().await?;
        let answered = piece.fail_with(&fifth, &old(kind)).await;
        is("fail with enough runs", PARKED, answered)?;
    }
    let (piece, _) = attempt(stage, PARK_AFTER_ATTEMPTS).await?;
    a_while(stage).await;
    stage.pass(LEASE).await;
    let claim = Claim {
        park_after: Some(A_WHILE),
        ..piece.claim()
    };
    piece.is_told(&claim, Claimed::Parked).await
}

async fn young_work_is_not_parked(stage: &Stage<'_>) -> Judged {
    let (piece, fifth) = attempt(stage, PARK_AFTER_ATTEMPTS).await?;
    let how = Fail {
        park_after: Some(NEVER),
        ..failing(AT_ONCE)
    };
    is("fail young", WAITING, piece.fail_with(&fifth, &how).await)?;
    piece.grant().await?;
    stage.pass(LEASE).await;
    let claim = Claim {
        park_after: Some(NEVER),
        ..piece.claim()
    };
    piece.grant_to(&claim).await.map(drop)
}
