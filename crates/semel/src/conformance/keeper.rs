//! A keeper's act: prolonging the retention of unfinished work, and nothing else.

use super::answer::{Judged, invalid, is, that};
use super::behaviour::behaviours;
use super::stage::{AGES, DELAY, DONE, LEASE, MOMENT, Piece, RETENTION, Stage, WHY, is_next_run};
use crate::record::{Acted, Ending, Record, State};
use crate::store::{RETENTION_MAX, StoreExt};
use std::time::Duration;

behaviours![
    OPERATORS:
    an_unfinished_record_is_retained,
    an_unfinished_record_expires_unless_it_is_retained,
    retaining_never_shortens,
    retaining_disturbs_no_run,
    retaining_writes_no_history,
    succeeded_and_parked_records_are_left_alone,
    what_is_gone_is_not_retained,
    retaining_for_too_long_is_invalid,
];

/// The states that a keeper retains.
const UNFINISHED: [State; 3] = [State::Running, State::Waiting, State::Failed];

/// Beyond the retention that any record here has by itself.
const LONG: Duration = AGES;

/// Retaining must be answered so.
async fn retains(piece: &Piece, retention: Duration, expected: Acted) -> Judged {
    let answered = piece.store.retain(&piece.key, retention).await;
    is("retain", expected, answered)
}

/// Longer than the record of a piece lasts in any state that expires.
const EXPIRED: Duration =
    Duration::from_secs(RETENTION.as_secs() + LEASE.as_secs() + DELAY.as_secs() + MOMENT.as_secs());

async fn an_unfinished_record_is_retained(stage: &Stage<'_>) -> Judged {
    for state in UNFINISHED {
        let (piece, _) = stage.piece_in(state).await?;
        retains(&piece, LONG, Acted::Applied).await?;
        stage.pass(EXPIRED).await;
        stage.sweep().await?;
        piece.is_in(state).await?;
        // Each time it begins anew.
        retains(&piece, LONG, Acted::Applied).await?;
        stage.pass(LONG - EXPIRED / 2).await;
        piece.is_in(state).await?;
        stage.pass(EXPIRED / 2).await;
        piece.is_absent().await?;
    }
    Ok(())
}

async fn an_unfinished_record_expires_unless_it_is_retained(stage: &Stage<'_>) -> Judged {
    for state in UNFINISHED {
        let (piece, _) = stage.piece_in(state).await?;
        stage.pass(EXPIRED).await;
        piece.is_absent().await?;
    }
    Ok(())
}

async fn retaining_never_shortens(stage: &Stage<'_>) -> Judged {
    for state in UNFINISHED {
        let (piece, _) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        for retention in [MOMENT, RETENTION / 2] {
            retains(&piece, retention, Acted::Applied).await?;
            piece.is_still(&before).await?;
        }
    }
    Ok(())
}

async fn retaining_disturbs_no_run(stage: &Stage<'_>) -> Judged {
    for state in UNFINISHED {
        let (piece, lease) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        retains(&piece, LONG, Acted::Applied).await?;
        let after = piece.record().await?;
        let only_longer = Record {
            expires_at: after.expires_at,
            ..before.clone()
        };
        let so = after == only_longer && after.expires_at > before.expires_at;
        that(
            so,
            "a later end of retention, nothing else",
            (before, after),
        )?;
        match state {
            State::Running => piece.reaches(&lease, State::Succeeded).await?,
            State::Waiting => {
                stage.pass(DELAY).await;
                is_next_run(&lease, &piece.grant().await?, 2)?;
            }
            State::Succeeded | State::Failed | State::Parked => {
                piece.is_replayed(Ending::Failed, WHY).await?
            }
        }
    }
    // A lapsed run, too, may still end.
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    retains(&piece, LONG, Acted::Applied).await?;
    piece.reaches(&lease, State::Succeeded).await?;
    piece.is_replayed(Ending::Succeeded, DONE).await
}

async fn retaining_writes_no_history(stage: &Stage<'_>) -> Judged {
    for state in UNFINISHED {
        let (piece, _) = stage.piece_in(state).await?;
        retains(&piece, LONG, Acted::Applied).await?;
        let record = piece.record().await?;
        that(record.history.is_empty(), "no history", record)?;
    }
    Ok(())
}

async fn succeeded_and_parked_records_are_left_alone(stage: &Stage<'_>) -> Judged {
    for state in [State::Succeeded, State::Parked] {
        let (piece, _) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        retains(&piece, LONG, Acted::Gone(Some(state))).await?;
        piece.is_still(&before).await?;
    }
    Ok(())
}

async fn what_is_gone_is_not_retained(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    retains(&piece, LONG, Acted::Gone(None)).await?;
    piece.is_absent().await?;
    for state in UNFINISHED {
        let (piece, _) = stage.piece_in(state).await?;
        stage.pass(EXPIRED).await;
        retains(&piece, LONG, Acted::Gone(None)).await?;
        piece.is_absent().await?;
    }
    Ok(())
}

async fn retaining_for_too_long_is_invalid(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Waiting).await?;
    let before = piece.record().await?;
    let answered = piece.store.retain(&piece.key, RETENTION_MAX + MOMENT).await;
    invalid("retain for too long", "retention", &answered)?;
    piece.is_still(&before).await
}
