//! Keeping the right to run, and losing it.

use super::answer::{Judged, about, end, is, that};
use super::behaviour::behaviours;
use super::stage::release_by_operator;
use super::stage::{AGES, BUSY, DONE, LEASE, Piece, RETENTION, Stage, WHY};
use super::stage::{of_another_owner, of_other_fences};
use crate::record::{Claimed, Ending, Held, Lease, State};
use crate::store::StoreExt;

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

async fn renewal_prolongs_the_lease(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let before = piece.record().await?;
    stage.pass(LEASE / 3).await;
    piece.reaches(&lease, State::Running).await?;
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
    let expected = "neither lease nor retention got shorter";
    that(so, expected, (before, after))?;
    stage.pass(LEASE / 2).await;
    piece.is_told(&piece.claim(), BUSY).await
}

async fn renewal_keeps_retention_behind_the_lease(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    // Together these go far beyond the first lease and its retention.
    for _ in 0..12 {
        stage.pass(LEASE - LEASE / 10).await;
        piece.reaches(&lease, State::Running).await?;
        let record = piece.is_in(State::Running).await?;
        let kept = record.expires_at.since(record.lease_until);
        let expected = "retention ends a whole retention after the lease";
        that(kept >= RETENTION, expected, record)?;
    }
    piece.reaches(&lease, State::Succeeded).await
}

async fn a_lapsed_lease_can_be_renewed_while_nobody_took_over(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    piece.reaches(&lease, State::Running).await?;
    piece.is_told(&piece.claim(), BUSY).await
}

async fn a_lapse_does_not_revoke(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    piece.reaches(&lease, State::Succeeded).await
}

async fn a_stale_run_cannot_renew(stage: &Stage<'_>) -> Judged {
    let (piece, old) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    piece.grant().await?;
    refused(&piece, &old).await
}

async fn another_owner_cannot_renew(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    refused(&piece, &of_another_owner(&lease)).await
}

async fn another_fence_cannot_renew(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    for other in of_other_fences(&lease) {
        refused(&piece, &other).await?;
    }
    Ok(())
}

async fn refused(piece: &Piece, lease: &Lease) -> Judged {
    let before = piece.record().await?;
    piece.renews(lease, Held::Stale).await?;
    piece.is_still(&before).await
}

async fn renewal_of_unknown_work_is_stale(stage: &Stage<'_>) -> Judged {
    let (_, mut lease) = stage.piece_in(State::Running).await?;
    let unknown = stage.piece();
    lease.key = unknown.key;
    unknown.renews(&lease, Held::Stale).await?;
    unknown.is_absent().await
}

async fn renewal_of_settled_work_says_how_it_ended(stage: &Stage<'_>) -> Judged {
    for (state, ended) in [
        (State::Succeeded, end(Ending::Succeeded, DONE)),
        (State::Failed, end(Ending::Failed, WHY)),
    ] {
        let (piece, lease) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        let answered = piece.renew(&lease).await;
        if let Ok(Held::Settled(settled)) = &answered {
            about("what is left of retention", LEASE + RETENTION, settled.keep)?;
        }
        is("renew", Held::Settled(ended), answered)?;
        piece.is_still(&before).await?;
        refused(&piece, &of_another_owner(&lease)).await?;
    }
    Ok(())
}

async fn renewal_of_a_parked_run_says_so(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    let before = piece.record().await?;
    piece.renews(&lease, Held::Parked).await?;
    piece.is_still(&before).await?;
    stage.pass(AGES).await;
    piece.renews(&lease, Held::Parked).await
}

async fn renewal_of_a_run_that_failed_is_stale(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Waiting).await?;
    refused(&piece, &lease).await
}

async fn renewal_after_an_operator_took_the_lease_is_stale(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    piece.applies(release_by_operator).await?;
    refused(&piece, &lease).await
}
