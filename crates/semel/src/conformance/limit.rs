//! Limits on repeating: runs in doubt are counted, answered failures are not, and old work is parked.

use super::answer::{Judged, is, that};
use super::behaviour::behaviours;
use super::stage::{AGES, AT_ONCE, DONE, LEASE, MOMENT, Piece, Stage, WAITING, WHY};
use super::stage::{doubt_limit, failing, in_doubt, of_another_owner};
use crate::Error;
use crate::record::{
    Claim, Claimed, Ending, Fail, FailKind, Held, InDoubt, Lease, Operation, PARK_AFTER_ATTEMPTS,
    State,
};
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
    doubts_park_only_by_number_and_age_together,
    lapses_park_only_by_number_and_age_together,
    doubts_age_from_the_first,
    one_doubt_that_ages_parks_at_the_next,
    an_answered_failure_beyond_max_in_doubt_waits,
    a_new_incarnation_counts_from_none,
    old_work_is_parked_once_it_had_enough_runs,
    old_work_is_parked_by_a_release_however_few_its_runs,
    a_release_that_parks_leaves_the_doubt_as_it_was,
    a_release_parks_old_work_once,
    young_work_is_released,
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
    that(so, &expected, &record)?;
    let so = record.doubted_at.is_some() == (count > 0);
    that(so, "a time of the first doubt if there was one", record)
}

fn limited(kind: FailKind, max_in_doubt: u32, age: Duration) -> Fail {
    Fail {
        max_in_doubt: doubt_limit(max_in_doubt, age),
        ..failing(kind)
    }
}

fn limited_claim(piece: &Piece, max_in_doubt: u32, age: Duration) -> Claim {
    Claim {
        max_in_doubt: doubt_limit(max_in_doubt, age),
        ..piece.claim()
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
        let answered = piece
            .fail_with(&second, &limited(DOUBT, max, Duration::ZERO))
            .await;
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
        let claim = limited_claim(&piece, max, Duration::ZERO);
        if max > 2 {
            piece.grant_to(&claim).await?;
            continue;
        }
        piece.is_told(&claim, Claimed::Parked).await?;
        doubts(&piece, 2, true).await?;
    }
    Ok(())
}

/// Passes while a lease lasts.
const DOUBT_AGE: Duration = Duration::from_secs(LEASE.as_secs() / 2);

async fn doubts_park_only_by_number_and_age_together(stage: &Stage<'_>) -> Judged {
    for (runs, passes, expected) in [
        (2, false, WAITING),
        (3, true, WAITING),
        (2, true, PARKED),
        (1, true, PARKED),
    ] {
        let (piece, first) = stage.piece_in(State::Running).await?;
        piece.fails(&first, DOUBT, WAITING).await?;
        let second = piece.grant().await?;
        if passes {
            stage.pass(DOUBT_AGE).await;
        }
        let how = limited(DOUBT, runs, DOUBT_AGE);
        let answered = piece.fail_with(&second, &how).await;
        let call = format!("the second doubt of {runs}, the first one old: {passes}");
        is(&call, expected, answered)?;
        doubts(&piece, 2, true).await?;
    }
    Ok(())
}

async fn lapses_park_only_by_number_and_age_together(stage: &Stage<'_>) -> Judged {
    for (runs, age, parks) in [
        (2, LEASE * 2, false),
        (3, LEASE, false),
        (2, LEASE, true),
        (1, LEASE, true),
    ] {
        let (piece, _) = stage.piece_in(State::Running).await?;
        stage.pass(LEASE).await;
        // The first lapse is found now, so it is not old.
        piece
            .grant_to(&limited_claim(&piece, 1, MOMENT * 60))
            .await?;
        stage.pass(LEASE).await;
        let claim = limited_claim(&piece, runs, age);
        if parks {
            piece.is_told(&claim, Claimed::Parked).await?;
        } else {
            piece.grant_to(&claim).await?;
        }
        doubts(&piece, 2, true).await?;
    }
    Ok(())
}

/// Neither from the first run nor from the latest doubt.
async fn doubts_age_from_the_first(stage: &Stage<'_>) -> Judged {
    let how = limited(DOUBT, 1, DOUBT_AGE);
    let (piece, mut lease) = stage.piece_in(State::Running).await?;
    stage.pass(DOUBT_AGE).await;
    for expected in [WAITING, WAITING, PARKED] {
        is(
            "fail",
            expected.clone(),
            piece.fail_with(&lease, &how).await,
        )?;
        if expected == WAITING {
            lease = piece.grant().await?;
            stage.pass(DOUBT_AGE * 2 / 3).await;
        }
    }
    doubts(&piece, 3, true).await
}

/// A failure that was answered between two doubts changes nothing of the first one's age.
async fn one_doubt_that_ages_parks_at_the_next(stage: &Stage<'_>) -> Judged {
    let how = |kind| limited(kind, 2, DOUBT_AGE);
    let (piece, first) = stage.piece_in(State::Running).await?;
    piece.fails(&first, DOUBT, WAITING).await?;
    let second = piece.grant().await?;
    stage.pass(DOUBT_AGE).await;
    let answered = piece.fail_with(&second, &how(AT_ONCE)).await;
    is("an answered failure", WAITING, answered)?;
    let third = piece.grant().await?;
    let answered = piece.fail_with(&third, &how(DOUBT)).await;
    is("the second doubt", PARKED, answered)
}

async fn an_answered_failure_beyond_max_in_doubt_waits(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    piece.fails(&first, DOUBT, WAITING).await?;
    let second = piece.grant().await?;
    let answered = piece
        .fail_with(&second, &limited(AT_ONCE, 1, Duration::ZERO))
        .await;
    is("an answered failure", WAITING, answered)
}

async fn a_new_incarnation_counts_from_none(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    piece.fails(&first, DOUBT, WAITING).await?;
    stage.pass(AGES).await;
    let lease = piece.grant().await?;
    that(!lease.in_doubt, "a first run", &lease)?;
    doubts(&piece, 0, false).await?;
    // Nor is its first doubt as old as that of the one before.
    let how = limited(DOUBT, 1, MOMENT * 60);
    is("fail", WAITING, piece.fail_with(&lease, &how).await)?;
    doubts(&piece, 1, true).await
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

/// Releases under this limit on the age of the work.
async fn release_within(
    piece: &Piece,
    lease: &Lease,
    park_after: Option<Duration>,
) -> Result<Held, Error> {
    let release = Operation::Release {
        lease: lease.clone(),
        park_after,
    };
    piece.store.apply(&release).await?.held()
}

/// Its fence and owner stay: the run's own late word still counts.
async fn old_work_is_parked_by_a_release_however_few_its_runs(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    a_while(stage).await;
    let answered = release_within(&piece, &lease, Some(A_WHILE)).await;
    is("release of old work", PARKED, answered)?;
    let record = piece.is_in(State::Parked).await?;
    let so = record.is_of(&lease) && record.attempts == 0 && record.born == lease.born;
    that(so, "the run's fence and owner, no attempt", &record)?;
    let so = record.result.is_none() && record.acts_until.is_none() && record.history.is_empty();
    that(so, "no trace of a run", record)?;
    doubts(&piece, 0, false).await?;
    for _ in 0..2 {
        piece.is_told(&piece.claim(), Claimed::Parked).await?;
        stage.pass(AGES).await;
    }
    piece.reaches(&lease, State::Succeeded).await?;
    piece.is_replayed(Ending::Succeeded, DONE).await
}

async fn a_release_that_parks_leaves_the_doubt_as_it_was(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    piece.fails(&first, DOUBT, WAITING).await?;
    let second = piece.grant().await?;
    a_while(stage).await;
    let answered = release_within(&piece, &second, Some(A_WHILE)).await;
    is("release of old work", PARKED, answered)?;
    doubts(&piece, 1, true).await?;
    let record = piece.is_in(State::Parked).await?;
    let so = record.attempts == 1 && record.result.as_deref() == Some(WHY);
    that(so, "one attempt, and why it is in doubt", record)
}

async fn a_release_parks_old_work_once(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let first = piece.grant().await?;
    piece.fails(&first, AT_ONCE, WAITING).await?;
    let second = piece.grant().await?;
    a_while(stage).await;
    let answered = release_within(&piece, &second, Some(A_WHILE)).await;
    is("release of old work", PARKED, answered)?;
    let before = piece.record().await?;
    that(before.attempts == 1, "one attempt", &before)?;
    for lease in [&second, &of_another_owner(&second), &first] {
        let expected = if *lease == second {
            Held::Already(State::Parked)
        } else {
            Held::Stale
        };
        let answered = release_within(&piece, lease, Some(A_WHILE)).await;
        is("release again", expected, answered)?;
        piece.is_still(&before).await?;
    }
    Ok(())
}

async fn young_work_is_released(stage: &Stage<'_>) -> Judged {
    for (park_after, attempts) in [(None, 1), (Some(NEVER), PARK_AFTER_ATTEMPTS)] {
        let (piece, lease) = attempt(stage, attempts).await?;
        a_while(stage).await;
        let answered = release_within(&piece, &lease, park_after).await;
        is("release of young work", WAITING, answered)?;
        let record = piece.is_in(State::Waiting).await?;
        that(record.attempts + 1 == attempts, "one attempt less", record)?;
        let answered = release_within(&piece, &lease, park_after).await;
        is("release again", Held::Already(State::Waiting), answered)?;
        piece.grant().await?;
    }
    Ok(())
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
