//! Words too late: what a run says that is no longer, or never was, the owner.

use super::answer::{Judged, is};
use super::behaviour::behaviours;
use super::stage::{DONE, LEASE, Piece, Stage, of_another_owner, of_other_fences, retryable};
use crate::record::{FailKind, Held, Lease, State};
use crate::store::StoreExt;

behaviours![
    BEHAVIOURS:
    a_run_that_gave_up_cannot_complete,
    a_stale_run_cannot_complete,
    a_stale_run_cannot_settle_after_the_new_run_did,
    another_owner_cannot_settle,
    another_fence_cannot_settle,
    unknown_work_cannot_be_settled,
];

async fn a_run_that_gave_up_cannot_complete(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Waiting).await?;
    let before = piece.record().await?;
    piece.completes(&lease, Held::Stale).await?;
    piece.fails(&lease, FailKind::Final, Held::Stale).await?;
    piece.is_still(&before).await
}

async fn a_stale_run_cannot_complete(stage: &Stage<'_>) -> Judged {
    let (piece, old) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    let new = piece.grant().await?;
    cannot_settle(stage, &piece, &old).await?;
    piece.completes(&new, Held::Applied(State::Succeeded)).await
}

async fn a_stale_run_cannot_settle_after_the_new_run_did(stage: &Stage<'_>) -> Judged {
    for state in [State::Succeeded, State::Failed, State::Waiting] {
        let (piece, old) = stage.piece_in(State::Running).await?;
        stage.pass(LEASE).await;
        let new = piece.grant().await?;
        let kind = match state {
            State::Failed => FailKind::Final,
            State::Running | State::Succeeded | State::Waiting | State::Parked => retryable(),
        };
        let settled = match state {
            State::Succeeded => piece.complete(&new, DONE).await,
            State::Running | State::Failed | State::Waiting | State::Parked => {
                piece.fail(&new, kind).await
            }
        };
        is("the new run's own word", Held::Applied(state), settled)?;
        cannot_settle(stage, &piece, &old).await?;
    }
    Ok(())
}

async fn another_owner_cannot_settle(stage: &Stage<'_>) -> Judged {
    for state in State::ALL {
        let (piece, lease) = stage.piece_in(state).await?;
        cannot_settle(stage, &piece, &of_another_owner(&lease)).await?;
    }
    Ok(())
}

async fn another_fence_cannot_settle(stage: &Stage<'_>) -> Judged {
    for state in State::ALL {
        let (piece, lease) = stage.piece_in(state).await?;
        for other in of_other_fences(&lease) {
            cannot_settle(stage, &piece, &other).await?;
        }
    }
    Ok(())
}

async fn unknown_work_cannot_be_settled(stage: &Stage<'_>) -> Judged {
    let (_, mut lease) = stage.piece_in(State::Running).await?;
    let unknown = stage.piece();
    lease.key = unknown.key;
    is(
        "complete",
        Held::Stale,
        unknown.complete(&lease, DONE).await,
    )?;
    is("fail", Held::Stale, unknown.fail(&lease, retryable()).await)?;
    is("release", Held::Stale, stage.store.release(&lease).await)?;
    unknown.is_absent().await
}

/// No word of this lease counts, and none changes the record.
async fn cannot_settle(stage: &Stage<'_>, piece: &Piece, lease: &Lease) -> Judged {
    let before = piece.record().await?;
    let call = |verb: &str| format!("{verb} by a stale run while {}", before.state);
    is(
        &call("complete"),
        Held::Stale,
        piece.complete(lease, b"stale").await,
    )?;
    let failed = piece.fail(lease, FailKind::Final).await;
    is(&call("fail for good"), Held::Stale, failed)?;
    is(
        &call("fail"),
        Held::Stale,
        piece.fail(lease, retryable()).await,
    )?;
    is(
        &call("release"),
        Held::Stale,
        stage.store.release(lease).await,
    )?;
    piece.is_still(&before).await
}
