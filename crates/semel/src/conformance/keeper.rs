//! A keeper's act: parking what nobody claims, and nothing else.

use super::answer::{Judged, is, that};
use super::behaviour::behaviours;
use super::limit::doubts;
use super::stage::ACT;
use super::stage::{DELAY, DONE, LEASE, MOMENT, Piece, Stage, of_other_fences};
use crate::record::{Acted, Claimed, Ending, Lease, State};
use crate::store::StoreExt;
use std::time::Duration;

behaviours![
    OPERATORS:
    a_record_that_nobody_claims_is_parked,
    a_lapsed_run_that_nobody_claims_is_parked,
    nothing_is_parked_before_its_time,
    only_the_run_that_was_seen_is_parked,
    settled_and_parked_records_are_left_alone,
];

const IDLE: Duration = Duration::from_secs(900);

/// Parking must be answered so; and where it is not applied, nothing is disturbed.
async fn parks(stage: &Stage<'_>, piece: &Piece, lease: &Lease, expected: Acted) -> Judged {
    let before = stage.store.look(&piece.key).await;
    let answered = stage.store.park(&piece.key, lease.fence, IDLE, ACT).await;
    is("park", expected, answered)?;
    match (expected, before) {
        (Acted::Refused | Acted::Gone(_), Ok(Some(before))) => piece.is_still(&before).await,
        (Acted::Refused | Acted::Gone(_), _) => piece.is_absent().await,
        (Acted::Applied, _) => {
            let record = piece.is_in(State::Parked).await?;
            that(record.is_of(lease), "the run's fence and owner", record)?;
            piece.is_told(&piece.claim(), Claimed::Parked).await
        }
    }
}

async fn a_record_that_nobody_claims_is_parked(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Waiting).await?;
    stage.pass(DELAY + IDLE).await;
    parks(stage, &piece, &lease, Acted::Applied).await?;
    doubts(&piece, 0, false).await?;
    piece.reaches(&lease, State::Succeeded).await?;
    piece.is_replayed(Ending::Succeeded, DONE).await
}

async fn a_lapsed_run_that_nobody_claims_is_parked(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE + IDLE).await;
    parks(stage, &piece, &lease, Acted::Applied).await?;
    doubts(&piece, 1, true).await?;
    piece.reaches(&lease, State::Succeeded).await
}

async fn nothing_is_parked_before_its_time(stage: &Stage<'_>) -> Judged {
    for (state, time) in [(State::Waiting, DELAY), (State::Running, LEASE)] {
        let (piece, lease) = stage.piece_in(state).await?;
        parks(stage, &piece, &lease, Acted::Refused).await?;
        stage.pass(time).await;
        parks(stage, &piece, &lease, Acted::Refused).await?;
        // Not MOMENT less: the calls themselves take some time.
        stage.subject.advance(IDLE / 2).await;
        parks(stage, &piece, &lease, Acted::Refused).await?;
        stage.subject.advance(IDLE / 2 + MOMENT).await;
        parks(stage, &piece, &lease, Acted::Applied).await?;
    }
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE + IDLE).await;
    piece.reaches(&lease, State::Running).await?;
    parks(stage, &piece, &lease, Acted::Refused).await
}

async fn only_the_run_that_was_seen_is_parked(stage: &Stage<'_>) -> Judged {
    for (state, time) in [(State::Waiting, DELAY), (State::Running, LEASE)] {
        let (piece, lease) = stage.piece_in(state).await?;
        stage.pass(time + IDLE).await;
        for other in of_other_fences(&lease) {
            parks(stage, &piece, &other, Acted::Gone(Some(state))).await?;
        }
        parks(stage, &piece, &lease, Acted::Applied).await?;
    }
    Ok(())
}

async fn settled_and_parked_records_are_left_alone(stage: &Stage<'_>) -> Judged {
    for state in [State::Succeeded, State::Failed, State::Parked] {
        let (piece, lease) = stage.piece_in(state).await?;
        stage.pass(IDLE).await;
        parks(stage, &piece, &lease, Acted::Gone(Some(state))).await?;
    }
    let piece = stage.piece();
    let (_, lease) = stage.piece_in(State::Waiting).await?;
    parks(stage, &piece, &lease, Acted::Gone(None)).await
}
