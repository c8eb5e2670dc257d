//! Words too late: what a run says that is no longer, or never was, the owner.

use super::answer::{Judged, is};
use super::behaviour::behaviours;
use super::stage::{LEASE, Piece, Stage, of_another_owner, of_other_fences, retryable};
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
    piece.reaches(&new, State::Succeeded).await
}

async fn a_stale_run_cannot_settle_after_the_new_run_did(stage: &Stage<'_>) -> Judged {
    for state in [State::Succeeded, State::Failed, State::Waiting] {
        let (piece, old) = stage.piece_in(State::Running).await?;
        stage.pass(LEASE).await;
        let new = piece.grant().await?;
        piece.reaches(&new, state).await?;
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
    unknown.completes(&lease, Held::Stale).await?;
    unknown.fails(&lease, retryable(), Held::Stale).await?;
    unknown.releases(&lease, Held::Stale).await?;
    unknown.is_absent().await
}

/// No word of this lease counts, and none changes the record.
async fn cannot_settle(stage: &Stage<'_>, piece: &Piece, lease: &Lease) -> Judged {
    let before = piece.record().await?;
    for (word, answered) in [
        ("complete", piece.complete(lease, b"stale").await),
        ("fail for good", piece.fail(lease, FailKind::Final).await),
        ("fail", piece.fail(lease, retryable()).await),
        ("release", stage.store.release(lease).await),
    ] {
        let call = format!("{word} by a stale run while {}", before.state);
        is(&call, Held::Stale, answered)?;
    }
    piece.is_still(&before).await
}
