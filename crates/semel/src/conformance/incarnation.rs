//! How one incarnation of a key ends, by an operator or by time, and the next one begins.

use super::answer::{Judged, that};
use super::behaviour::behaviours;
use super::stage::release_by_operator;
use super::stage::{AGES, DELAY, EXPIRING, LEASE, RETENTION, Stage};
use crate::Fingerprint;
use crate::record::{Acted, Claim, Claimed, Held, Lease, Operation, State};
use std::time::Duration;

behaviours![
    BEHAVIOURS:
    an_expired_key_is_granted_anew,
    an_expired_key_takes_another_fingerprint,
];

behaviours![
    OPERATORS:
    a_live_lease_is_not_forgotten,
    everything_else_is_forgotten,
    a_forgotten_run_is_stale,
    fences_rise_across_expiry,
    fences_rise_across_forget,
    fences_rise_across_sweep,
    fences_rise_across_forget_and_sweep,
];

async fn a_live_lease_is_not_forgotten(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let before = piece.record().await?;
    piece.act(Operation::Forget, Acted::Refused).await?;
    piece.is_still(&before).await?;
    piece.reaches(&lease, State::Succeeded).await
}

async fn everything_else_is_forgotten(stage: &Stage<'_>) -> Judged {
    for state in State::ALL {
        let (piece, old) = stage.piece_in(state).await?;
        if state == State::Running {
            stage.pass(LEASE).await;
        }
        piece.applies(Operation::Forget).await?;
        piece.is_absent().await?;
        piece.act(Operation::Forget, Acted::Gone(None)).await?;
        let new = piece.grant().await?;
        anew(&old, &new)?;
    }
    Ok(())
}

async fn a_forgotten_run_is_stale(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    piece.applies(Operation::Forget).await?;
    piece.completes(&lease, Held::Stale).await?;
    piece.renews(&lease, Held::Stale).await?;
    piece.is_absent().await
}

async fn an_expired_key_is_granted_anew(stage: &Stage<'_>) -> Judged {
    for state in EXPIRING {
        let (piece, old) = stage.piece_in(state).await?;
        stage.pass(LEASE + DELAY + RETENTION).await;
        piece.is_absent().await?;
        let new = piece.grant().await?;
        anew(&old, &new)?;
        let record = piece.is_in(State::Running).await?;
        let so = record.result.is_none() && record.attempts == 1 && record.born == new.born;
        that(so, "nothing of the old incarnation", record)?;
        piece.completes(&old, Held::Stale).await?;
    }
    Ok(())
}

async fn an_expired_key_takes_another_fingerprint(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Succeeded).await?;
    stage.pass(LEASE + RETENTION).await;
    let other = Claim {
        fingerprint: Fingerprint::of(b"another payload"),
        ..piece.claim()
    };
    piece.grant_to(&other).await?;
    piece.is_told(&piece.claim(), Claimed::Mismatched).await
}

async fn fences_rise_across_expiry(stage: &Stage<'_>) -> Judged {
    rise(stage, false, LEASE + RETENTION, false).await
}

async fn fences_rise_across_forget(stage: &Stage<'_>) -> Judged {
    rise(stage, true, Duration::ZERO, false).await
}

async fn fences_rise_across_sweep(stage: &Stage<'_>) -> Judged {
    rise(stage, false, AGES, true).await
}

/// Also at once, when a store without a grace would have lost the fence.
async fn fences_rise_across_forget_and_sweep(stage: &Stage<'_>) -> Judged {
    rise(stage, true, Duration::ZERO, true).await?;
    rise(stage, true, AGES, true).await
}

/// Attempt 1 of a new incarnation, above every fence of the old one.
fn anew(old: &Lease, new: &Lease) -> Judged {
    let so = new.fence > old.fence && new.born == new.fence && new.attempt == 1;
    let expected = "attempt 1 of a new incarnation, a higher fence";
    that(so, expected, (old, new))
}

/// Fences of many grants, with an operator's act in each to push them ahead of the clock.
async fn rise(stage: &Stage<'_>, forget: bool, pass: Duration, sweep: bool) -> Judged {
    let piece = stage.piece();
    let mut last: Option<Lease> = None;
    for _ in 0..4 {
        let lease = piece.grant().await?;
        last.as_ref().map_or(Ok(()), |old| anew(old, &lease))?;
        piece.applies(release_by_operator).await?;
        let lease = piece.grant().await?;
        piece.reaches(&lease, State::Succeeded).await?;
        if forget {
            piece.applies(Operation::Forget).await?;
        }
        if !pass.is_zero() {
            stage.pass(pass).await;
        }
        if sweep {
            stage.sweep().await?;
        }
        last = Some(lease);
    }
    Ok(())
}
