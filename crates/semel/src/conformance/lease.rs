//! Keeping the right to run, and losing it.

use super::answer::{Judged, about, end, is, that};
use super::behaviour::behaviours;
use super::stage::{
    AGES, DONE, LEASE, Piece, RETENTION, Stage, WHY, of_another_owner, of_other_fences,
};
use crate::record::{Acted, Claimed, Ending, Held, Lease, Operation, State};
use crate::store::StoreExt;
use std::time::Duration;

behaviours![
    BEHAVIOURS:
    renewal_prolongs_the_lease,
    renewal_never_shortens_the_lease,
    renewal_keeps_retention_behind_the_lease,
    a_lapsed_lease_can_be_renewed_while_nobody_took_over,
    a_lapse_does_not_revoke,
    a_stale_run_cannot_renew,
    another_owner_cannot_renew,
    another_fence_cannot_renew,
    renewal_of_unknown_work_is_stale,
    renewal_of_settled_work_says_how_it_ended,
    renewal_of_a_parked_run_says_so,
    renewal_of_a_run_that_failed_is_stale,
];

behaviours![
    OPERATORS:
    renewal_after_an_operator_took_the_lease_is_stale,
];

async fn renew(stage: &Stage<'_>, lease: &Lease) -> Result<Held, crate::Error> {
    stage.store.renew(lease, LEASE, RETENTION).await
}

async fn renewal_prolongs_the_lease(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let before = piece.record().await?;
    stage.pass(LEASE / 3).await;
    let answered = renew(stage, &lease).await;
    is("renew", Held::Applied(State::Running), answered)?;
    let after = piece.is_in(State::Running).await?;
    let so = after.is_of(&lease) && after.attempts == before.attempts && after.born == before.born;
    that(so, "the same run", (before, after))?;
    stage.pass(LEASE * 5 / 6).await;
    match stage.store.claim(&piece.claim()).await {
        Ok(Claimed::Busy { retry_after }) => about("retry after", LEASE / 6, retry_after),
        other => that(false, "claim of a renewed lease: Busy", other),
    }
}

async fn renewal_never_shortens_the_lease(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let before = piece.record().await?;
    let answered = stage.store.renew(&lease, LEASE / 10, RETENTION).await;
    is("renew for less", Held::Applied(State::Running), answered)?;
    let after = piece.record().await?;
    let so = after.lease_until >= before.lease_until && after.expires_at >= before.expires_at;
    that(
        so,
        "neither lease nor retention got shorter",
        (before, after),
    )?;
    stage.pass(LEASE / 2).await;
    let answered = stage.store.claim(&piece.claim()).await;
    is("claim in the first lease", busy(), answered)
}

async fn renewal_keeps_retention_behind_the_lease(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    // Together these go far beyond the first lease and its retention.
    for _ in 0..12 {
        stage.pass(LEASE - LEASE / 10).await;
        let answered = renew(stage, &lease).await;
        is("renew", Held::Applied(State::Running), answered)?;
        let record = piece.is_in(State::Running).await?;
        let kept = record.expires_at.since(record.lease_until);
        that(
            kept >= RETENTION,
            "retention ends a whole retention after the lease",
            record,
        )?;
    }
    piece
        .completes(&lease, Held::Applied(State::Succeeded))
        .await
}

async fn a_lapsed_lease_can_be_renewed_while_nobody_took_over(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    let answered = renew(stage, &lease).await;
    is(
        "renew after the lapse",
        Held::Applied(State::Running),
        answered,
    )?;
    let answered = stage.store.claim(&piece.claim()).await;
    is("claim of the renewed lease", busy(), answered)
}

async fn a_lapse_does_not_revoke(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    piece
        .completes(&lease, Held::Applied(State::Succeeded))
        .await
}

async fn a_stale_run_cannot_renew(stage: &Stage<'_>) -> Judged {
    let (piece, old) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    piece.grant().await?;
    refused(stage, &piece, &old).await
}

async fn another_owner_cannot_renew(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    refused(stage, &piece, &of_another_owner(&lease)).await
}

async fn another_fence_cannot_renew(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    for other in of_other_fences(&lease) {
        refused(stage, &piece, &other).await?;
    }
    Ok(())
}

async fn refused(stage: &Stage<'_>, piece: &Piece, lease: &Lease) -> Judged {
    let before = piece.record().await?;
    is("renew", Held::Stale, renew(stage, lease).await)?;
    piece.is_still(&before).await
}

async fn renewal_of_unknown_work_is_stale(stage: &Stage<'_>) -> Judged {
    let (_, mut lease) = stage.piece_in(State::Running).await?;
    let unknown = stage.piece();
    lease.key = unknown.key;
    is("renew", Held::Stale, renew(stage, &lease).await)?;
    unknown.is_absent().await
}

async fn renewal_of_settled_work_says_how_it_ended(stage: &Stage<'_>) -> Judged {
    for (state, ended) in [
        (State::Succeeded, end(Ending::Succeeded, DONE)),
        (State::Failed, end(Ending::Failed, WHY)),
    ] {
        let (piece, lease) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        let answered = renew(stage, &lease).await;
        if let Ok(Held::Settled(settled)) = &answered {
            about("what is left of retention", LEASE + RETENTION, settled.keep)?;
        }
        is("renew", Held::Settled(ended), answered)?;
        piece.is_still(&before).await?;
        refused(stage, &piece, &of_another_owner(&lease)).await?;
    }
    Ok(())
}

async fn renewal_of_a_parked_run_says_so(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    let before = piece.record().await?;
    is("renew", Held::Parked, renew(stage, &lease).await)?;
    piece.is_still(&before).await?;
    stage.pass(AGES).await;
    is("renew much later", Held::Parked, renew(stage, &lease).await)
}

async fn renewal_of_a_run_that_failed_is_stale(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Waiting).await?;
    refused(stage, &piece, &lease).await
}

async fn renewal_after_an_operator_took_the_lease_is_stale(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    piece
        .act(Operation::ReleaseByOperator, Acted::Applied)
        .await?;
    refused(stage, &piece, &lease).await
}

const fn busy() -> Claimed {
    Claimed::Busy {
        retry_after: Duration::ZERO,
    }
}
