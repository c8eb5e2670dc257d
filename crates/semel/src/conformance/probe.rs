//! Probing: a run in doubt is followed by one that is told so, once the first acts no more.

use super::answer::{Judged, about, is, that};
use super::behaviour::behaviours;
use super::limit::doubts;
use super::stage::doubt_limit;
use super::stage::{AT_ONCE, BUSY, LEASE, Piece, Stage, WAITING, failing, in_doubt};
use super::stage::{redrive, release_by_operator};
use crate::record::{
    Claim, Claimed, Ending, Fail, FailKind, Finding, Held, InDoubt, Lease, Resolution, State,
};
use crate::store::StoreExt;
use std::time::Duration;

behaviours![
    BEHAVIOURS:
    a_first_run_is_not_in_doubt,
    a_lapsed_run_is_busy_while_it_may_act,
    a_run_that_failed_in_doubt_is_not_due_while_it_may_act,
    only_who_probes_waits_for_the_end_of_acts,
    a_prober_is_alone,
    a_prober_that_dies_is_followed_by_the_next,
    a_prober_whose_answer_was_lost_is_told_again,
    a_prober_completes_what_had_happened,
    an_answered_failure_ends_the_doubt,
    who_could_not_find_out_leaves_the_doubt_as_it_was,
    who_could_not_find_out_is_parked_at_a_limit,
    a_released_prober_leaves_the_doubt_as_it_was,
    a_prober_may_park,
];

behaviours![
    OPERATORS:
    a_redriven_run_in_doubt_is_probed,
    a_run_that_an_operator_took_away_is_probed,
    a_run_that_was_found_out_about_is_not_probed,
];

/// For how long a run may act: beyond its lease, within its retention.
const ACTS: Duration = Duration::from_secs(2 * LEASE.as_secs());

const DOUBT: FailKind = FailKind::InDoubt {
    delay: Duration::ZERO,
};

const STILL: FailKind = FailKind::StillInDoubt { delay: LEASE };

fn probing(piece: &Piece) -> Claim {
    Claim {
        in_doubt: InDoubt::Probe,
        acts_for: Some(ACTS),
        ..piece.claim()
    }
}

/// What the work is told while a run may act, and for how long.
async fn waits(piece: &Piece, expected: &str, left: Duration) -> Judged {
    let answered = piece.store.claim(&probing(piece)).await;
    let (word, retry_after) = match answered {
        Ok(Claimed::Busy { retry_after }) => ("busy", retry_after),
        Ok(Claimed::NotYet { retry_after }) => ("not yet", retry_after),
        other => return super::answer::broken(expected, &super::answer::shown(&other)),
    };
    that(word == expected, expected, word)?;
    about("retry_after", left, retry_after)
}

/// A first run under probe.
async fn first(stage: &Stage<'_>) -> Judged<(Piece, Lease)> {
    let piece = stage.piece();
    let lease = piece.grant_to(&probing(&piece)).await?;
    Ok((piece, lease))
}

/// The next run, which must be told so.
async fn prober(piece: &Piece, attempt: u32) -> Judged<Lease> {
    let lease = piece.grant_to(&probing(piece)).await?;
    let so = lease.in_doubt && lease.attempt == attempt;
    that(
        so,
        &format!("attempt {attempt}, after one in doubt"),
        &lease,
    )?;
    Ok(lease)
}

/// A run after one that lapsed.
async fn probed(stage: &Stage<'_>) -> Judged<(Piece, Lease)> {
    let (piece, _) = first(stage).await?;
    stage.pass(ACTS).await;
    let lease = prober(&piece, 2).await?;
    Ok((piece, lease))
}

async fn a_first_run_is_not_in_doubt(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = first(stage).await?;
    that(!lease.in_doubt, "a run after none", &lease)?;
    let record = piece.record().await?;
    let acts_for = record.acts_until.map(|end| end.since(record.lease_until));
    let so = acts_for == Some(ACTS.saturating_sub(LEASE));
    that(so, "when it acts no more", record)
}

async fn a_lapsed_run_is_busy_while_it_may_act(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = first(stage).await?;
    waits(&piece, "busy", LEASE).await?;
    stage.pass(LEASE).await;
    waits(&piece, "busy", ACTS.saturating_sub(LEASE)).await?;
    // It may also speak.
    piece.renews(&lease, Held::Applied(State::Running)).await?;
    stage.pass(LEASE).await;
    let second = prober(&piece, 2).await?;
    that(second.fence > lease.fence, "a higher fence", second)?;
    doubts(&piece, 1, true).await
}

async fn a_run_that_failed_in_doubt_is_not_due_while_it_may_act(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = first(stage).await?;
    let answered = piece.fail_with(&lease, &in_doubt_at_once()).await;
    is("fail in doubt", WAITING, answered)?;
    waits(&piece, "not yet", ACTS).await?;
    stage.pass(LEASE).await;
    waits(&piece, "not yet", ACTS.saturating_sub(LEASE)).await?;
    stage.pass(LEASE).await;
    prober(&piece, 2).await.map(drop)
}

fn in_doubt_at_once() -> Fail {
    Fail {
        in_doubt: InDoubt::Probe,
        ..failing(DOUBT)
    }
}

async fn only_who_probes_waits_for_the_end_of_acts(stage: &Stage<'_>) -> Judged {
    let (piece, _) = first(stage).await?;
    stage.pass(LEASE).await;
    let lease = piece.grant().await?;
    that(lease.in_doubt, "a run after one in doubt", lease)?;
    let record = piece.record().await?;
    let so = record.acts_until.is_none();
    that(so, "as long as it may act: not said", record)
}

async fn a_prober_is_alone(stage: &Stage<'_>) -> Judged {
    let (piece, _) = probed(stage).await?;
    piece.is_told(&probing(&piece), BUSY).await
}

async fn a_prober_that_dies_is_followed_by_the_next(stage: &Stage<'_>) -> Judged {
    let (piece, _) = probed(stage).await?;
    stage.pass(LEASE).await;
    waits(&piece, "busy", ACTS.saturating_sub(LEASE)).await?;
    stage.pass(LEASE).await;
    prober(&piece, 3).await?;
    doubts(&piece, 2, true).await
}

async fn a_prober_whose_answer_was_lost_is_told_again(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = probed(stage).await?;
    let again = Claim {
        owner: lease.owner,
        ..probing(&piece)
    };
    piece.is_told(&again, Claimed::Granted(lease)).await
}

async fn a_prober_completes_what_had_happened(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = probed(stage).await?;
    piece.reaches(&lease, State::Succeeded).await?;
    piece
        .is_replayed(Ending::Succeeded, super::stage::DONE)
        .await
}

async fn an_answered_failure_ends_the_doubt(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = probed(stage).await?;
    piece.fails(&lease, AT_ONCE, WAITING).await?;
    doubts(&piece, 1, false).await?;
    let third = piece.grant_to(&probing(&piece)).await?;
    that(!third.in_doubt, "a run after a known failure", third)
}

async fn who_could_not_find_out_leaves_the_doubt_as_it_was(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = probed(stage).await?;
    piece.fails(&lease, STILL, WAITING).await?;
    doubts(&piece, 1, true).await?;
    // It began nothing, so only its own pause counts.
    waits(&piece, "not yet", LEASE).await?;
    stage.pass(LEASE).await;
    let third = prober(&piece, 3).await?;
    // Of a run that is no prober, it is a failure like another.
    piece.fails(&third, AT_ONCE, WAITING).await?;
    let fourth = piece.grant_to(&probing(&piece)).await?;
    piece.fails(&fourth, STILL, WAITING).await?;
    doubts(&piece, 1, false).await
}

async fn who_could_not_find_out_is_parked_at_a_limit(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = probed(stage).await?;
    let how = Fail {
        max_in_doubt: doubt_limit(1, Duration::ZERO),
        ..failing(STILL)
    };
    let answered = piece.fail_with(&lease, &how).await;
    is("fail", Held::Applied(State::Parked), answered)?;
    doubts(&piece, 1, true).await
}

async fn a_released_prober_leaves_the_doubt_as_it_was(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = probed(stage).await?;
    piece.releases(&lease, WAITING).await?;
    doubts(&piece, 1, true).await?;
    prober(&piece, 2).await.map(drop)
}

async fn a_prober_may_park(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = probed(stage).await?;
    let answered = piece.fail_with(&lease, &in_doubt(InDoubt::Park)).await;
    is("fail", Held::Applied(State::Parked), answered)?;
    piece.is_told(&probing(&piece), Claimed::Parked).await
}

async fn a_redriven_run_in_doubt_is_probed(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = first(stage).await?;
    let answered = piece.fail_with(&lease, &in_doubt(InDoubt::Park)).await;
    is("fail", Held::Applied(State::Parked), answered)?;
    piece.applies(redrive).await?;
    waits(&piece, "not yet", ACTS).await?;
    stage.pass(ACTS).await;
    let second = prober(&piece, 2).await?;
    piece.reaches(&second, State::Failed).await?;
    piece.applies(redrive).await?;
    let third = piece.grant_to(&probing(&piece)).await?;
    that(!third.in_doubt, "a run after a final failure", third)
}

async fn a_run_that_an_operator_took_away_is_probed(stage: &Stage<'_>) -> Judged {
    let (piece, _) = first(stage).await?;
    piece.applies(release_by_operator).await?;
    doubts(&piece, 0, true).await?;
    waits(&piece, "not yet", ACTS).await?;
    stage.pass(ACTS).await;
    let second = prober(&piece, 2).await?;
    piece.fails(&second, AT_ONCE, WAITING).await?;
    piece.applies(release_by_operator).await?;
    let third = piece.grant_to(&probing(&piece)).await?;
    that(!third.in_doubt, "a run after a known failure", third)
}

async fn a_run_that_was_found_out_about_is_not_probed(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = first(stage).await?;
    let answered = piece.fail_with(&lease, &in_doubt(InDoubt::Park)).await;
    is("fail", Held::Applied(State::Parked), answered)?;
    let how = Resolution::new(Finding::Retry);
    piece.resolved(&how, crate::record::Acted::Applied).await?;
    let second = piece.grant_to(&probing(&piece)).await?;
    that(
        !second.in_doubt,
        "a run after one that did not happen",
        second,
    )
}
