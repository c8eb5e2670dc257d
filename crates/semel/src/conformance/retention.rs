//! Remembering: how long, never shorter than promised, and what comes after.

use super::answer::{Judged, is, that};
use super::behaviour::behaviours;
use super::operator::retry;
use super::stage::{AGES, DELAY, DONE, EXPIRING, LEASE, OperatorsAct, RETENTION, Stage};
use super::stage::{WHY, failing, is_next_run, retryable};
use super::stage::{redrive, release_by_operator};
use crate::record::{Acted, Claim, Claimed, Ending, Held, Operation, State};
use crate::store::StoreExt;
use bytes::Bytes;
use std::time::Duration;

behaviours![
    BEHAVIOURS:
    an_outcome_is_remembered_until_its_retention_ends,
    a_shorter_retention_does_not_shorten_the_record,
    a_shorter_retention_of_a_failure_does_not_either,
    a_run_is_remembered_for_its_retention_after_its_lease,
    a_take_over_does_not_shorten_retention,
    waiting_work_is_remembered_for_its_retention_after_it_is_due,
    parked_records_never_expire,
    sweep_leaves_what_is_not_expired,
    sweep_leaves_what_is_parked,
    sweep_leaves_a_lapsed_run_its_retention,
];

behaviours![
    OPERATORS:
    operators_find_nothing_expired,
];

async fn an_outcome_is_remembered_until_its_retention_ends(stage: &Stage<'_>) -> Judged {
    for (state, ending, result) in [
        (State::Succeeded, Ending::Succeeded, DONE),
        (State::Failed, Ending::Failed, WHY),
    ] {
        let (piece, _) = stage.piece_in(state).await?;
        stage.pass(RETENTION - LEASE).await;
        piece.is_replayed(ending, result).await?;
        stage.pass(2 * LEASE).await;
        piece.is_absent().await?;
    }
    Ok(())
}

async fn a_shorter_retention_does_not_shorten_the_record(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let result = Bytes::from_static(DONE);
    let completed = stage.store.complete(&lease, &result, LEASE).await;
    is("complete", Held::Applied(State::Succeeded), completed)?;
    stage.pass(RETENTION).await;
    piece.is_replayed(Ending::Succeeded, DONE).await
}

async fn a_shorter_retention_of_a_failure_does_not_either(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let mut how = failing(retryable());
    how.retention = LEASE;
    let failed = piece.fail_with(&lease, &how).await;
    is("fail", Held::Applied(State::Waiting), failed)?;
    stage.pass(RETENTION).await;
    piece.is_in(State::Waiting).await?;
    Ok(())
}

async fn a_run_is_remembered_for_its_retention_after_its_lease(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    // The shortest retention a lease can have.
    let claim = Claim {
        retention: LEASE,
        ..piece.claim()
    };
    let lease = piece.grant_to(&claim).await?;
    stage.pass(LEASE - LEASE / 10).await;
    piece.is_in(State::Running).await?;
    stage.pass(LEASE).await;
    piece.is_in(State::Running).await?;
    stage.sweep().await?;
    piece.reaches(&lease, State::Succeeded).await
}

async fn a_take_over_does_not_shorten_retention(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    let before = piece.record().await?;
    let short = Claim {
        lease: Duration::from_secs(60),
        retention: Duration::from_secs(60),
        ..piece.claim()
    };
    piece.grant_to(&short).await?;
    let after = piece.record().await?;
    let so = after.expires_at >= before.expires_at;
    that(so, "retention that does not fall", (before, after))
}

async fn waiting_work_is_remembered_for_its_retention_after_it_is_due(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Waiting).await?;
    stage.pass(DELAY + RETENTION - LEASE).await;
    stage.sweep().await?;
    is_next_run(&first, &piece.grant().await?, 2)
}

async fn parked_records_never_expire(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    for _ in 0..3 {
        stage.pass(AGES).await;
        stage.sweep().await?;
        let record = piece.is_in(State::Parked).await?;
        that(record.is_of(&lease), "the run's fence and owner", record)?;
        piece.is_told(&piece.claim(), Claimed::Parked).await?;
    }
    Ok(())
}

async fn operators_find_nothing_expired(stage: &Stage<'_>) -> Judged {
    let acts: [OperatorsAct; 4] = [retry, redrive, release_by_operator, Operation::Forget];
    for state in EXPIRING {
        let (piece, _) = stage.piece_in(state).await?;
        stage.pass(LEASE + DELAY + RETENTION).await;
        for act in acts {
            piece.act(act, Acted::Gone(None)).await?;
        }
        piece.is_absent().await?;
    }
    Ok(())
}

async fn sweep_leaves_what_is_not_expired(stage: &Stage<'_>) -> Judged {
    for state in State::ALL {
        let (piece, _) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        stage.sweep().await?;
        piece.is_still(&before).await?;
    }
    Ok(())
}

async fn sweep_leaves_what_is_parked(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let lease = piece.grant_to(&piece.parking()).await?;
    stage.pass(LEASE).await;
    piece.is_told(&piece.parking(), Claimed::Parked).await?;
    stage.pass(AGES).await;
    stage.sweep().await?;
    let record = piece.is_in(State::Parked).await?;
    that(record.is_of(&lease), "the run's fence and owner", record)
}

async fn sweep_leaves_a_lapsed_run_its_retention(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    stage.pass(RETENTION).await;
    stage.sweep().await?;
    is_next_run(&first, &piece.grant().await?, 2)
}
