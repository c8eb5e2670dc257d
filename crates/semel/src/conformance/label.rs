//! Labels: what the claim said that began the incarnation, kept as long as that, and decided by never.

use super::answer::{Judged, granted, invalid, is, ok, that};
use super::behaviour::behaviours;
use super::stage::{AGES, DELAY, DONE, LEASE, Piece, RETENTION, Stage, WAITING};
use super::stage::{redrive, release_by_operator};
use crate::record::{Acted, Claim, Claimed, Finding, Held, InDoubt, Lease, Operation};
use crate::record::{Resolution, State, StepBegun};
use crate::store::{LABEL_BYTES_MAX, StoreExt};
use bytes::Bytes;

behaviours![
    BEHAVIOURS:
    a_label_is_kept_with_the_grant_that_begins,
    no_label_is_none,
    any_bytes_are_a_label,
    a_run_leaves_its_label_as_it_was,
    later_grants_leave_a_label_as_it_was,
    a_label_that_comes_later_is_not_kept,
    a_label_that_is_too_long_is_refused,
    nothing_is_decided_by_a_label,
];

behaviours![
    OPERATORS:
    an_operator_leaves_a_label_as_it_was,
    a_label_ends_with_its_incarnation,
];

const FIRST: Bytes = Bytes::from_static(b"{\"order\": 7}");
const OTHER: Bytes = Bytes::from_static(b"{\"order\": 8}");

/// A claim by a new owner, with a label.
fn claim(piece: &Piece, label: Bytes) -> Claim {
    Claim {
        label,
        ..piece.claim()
    }
}

/// Work that runs under [`FIRST`].
async fn running(stage: &Stage<'_>) -> Judged<(Piece, Lease)> {
    let piece = stage.piece();
    let lease = piece.grant_to(&claim(&piece, FIRST)).await?;
    Ok((piece, lease))
}

/// Look must show this label.
async fn labelled(piece: &Piece, label: &Bytes) -> Judged {
    let record = piece.record().await?;
    that(record.label == *label, &format!("label {label:?}"), record)
}

async fn a_label_is_kept_with_the_grant_that_begins(stage: &Stage<'_>) -> Judged {
    let (piece, _) = running(stage).await?;
    labelled(&piece, &FIRST).await
}

async fn no_label_is_none(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Running).await?;
    labelled(&piece, &Bytes::new()).await
}

async fn any_bytes_are_a_label(stage: &Stage<'_>) -> Judged {
    let every_byte = (0..=u8::MAX).cycle().take(LABEL_BYTES_MAX).collect();
    for label in [
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"7:\n"),
        every_byte,
    ] {
        let piece = stage.piece();
        piece.grant_to(&claim(&piece, label.clone())).await?;
        labelled(&piece, &label).await?;
    }
    Ok(())
}

async fn a_run_leaves_its_label_as_it_was(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = running(stage).await?;
    piece.reaches(&lease, State::Running).await?;
    let begun = stage.store.step_begin(&lease, "charge").await;
    is("begin", StepBegun::Run, begun)?;
    labelled(&piece, &FIRST).await?;
    piece.reaches(&lease, State::Succeeded).await?;
    labelled(&piece, &FIRST).await?;

    for state in [State::Failed, State::Waiting, State::Parked] {
        let (piece, lease) = running(stage).await?;
        piece.reaches(&lease, state).await?;
        labelled(&piece, &FIRST).await?;
    }

    let (piece, lease) = running(stage).await?;
    piece.releases(&lease, WAITING).await?;
    labelled(&piece, &FIRST).await
}

async fn an_operator_leaves_a_label_as_it_was(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = running(stage).await?;
    piece.applies(release_by_operator).await?;
    labelled(&piece, &FIRST).await?;
    piece.completes(&lease, Held::Stale).await?;

    let lease = piece.grant().await?;
    piece.reaches(&lease, State::Parked).await?;
    piece.applies(redrive).await?;
    labelled(&piece, &FIRST).await?;

    let lease = piece.grant().await?;
    piece.reaches(&lease, State::Parked).await?;
    let how = Resolution::new(Finding::Succeeded(DONE.into()));
    piece.resolved(&how, Acted::Applied).await?;
    labelled(&piece, &FIRST).await
}

async fn later_grants_leave_a_label_as_it_was(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = running(stage).await?;
    let again = Claim {
        owner: lease.owner,
        ..claim(&piece, OTHER)
    };
    let same = granted("the same claim again", stage.store.claim(&again).await)?;
    that(same == lease, "the same lease", same)?;
    labelled(&piece, &FIRST).await?;

    // A take-over, and a run after a failure.
    stage.pass(LEASE).await;
    let lease = piece.grant_to(&claim(&piece, OTHER)).await?;
    labelled(&piece, &FIRST).await?;
    piece.reaches(&lease, State::Waiting).await?;
    stage.pass(DELAY).await;
    piece.grant_to(&claim(&piece, OTHER)).await?;
    labelled(&piece, &FIRST).await?;

    // A lapse that parks.
    stage.pass(LEASE).await;
    let parking = Claim {
        in_doubt: InDoubt::Park,
        ..claim(&piece, OTHER)
    };
    piece.is_told(&parking, Claimed::Parked).await?;
    piece.is_in(State::Parked).await?;
    labelled(&piece, &FIRST).await
}

async fn a_label_that_comes_later_is_not_kept(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    piece.grant_to(&claim(&piece, OTHER)).await?;
    labelled(&piece, &Bytes::new()).await
}

async fn a_label_ends_with_its_incarnation(stage: &Stage<'_>) -> Judged {
    for next in [Bytes::new(), OTHER] {
        for (forget, pass, sweep) in [
            (true, LEASE, false),
            (true, AGES, true),
            (false, LEASE + RETENTION, false),
            (false, AGES, true),
        ] {
            let (piece, lease) = running(stage).await?;
            if forget {
                piece.reaches(&lease, State::Succeeded).await?;
                piece.applies(Operation::Forget).await?;
            }
            stage.pass(pass).await;
            if sweep {
                stage.sweep().await?;
            }
            piece.is_absent().await?;
            piece.grant_to(&claim(&piece, next.clone())).await?;
            labelled(&piece, &next).await?;
        }
    }
    Ok(())
}

async fn a_label_that_is_too_long_is_refused(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let long = claim(&piece, vec![b'x'; LABEL_BYTES_MAX + 1].into());
    let answered = stage.store.claim(&long).await;
    let limit = LABEL_BYTES_MAX.to_string();
    for names in ["label", limit.as_str()] {
        invalid("claim with a long label", names, &answered)?;
    }
    piece.is_absent().await
}

/// The oracle judges the same for every operation; here, the answers of one key in every state.
async fn nothing_is_decided_by_a_label(stage: &Stage<'_>) -> Judged {
    for state in State::ALL {
        let (piece, _) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        let plain = ok("claim", stage.store.claim(&piece.claim()).await)?;
        let answered = stage.store.claim(&claim(&piece, OTHER)).await;
        is("the claim with a label", plain, answered)?;
        piece.is_still(&before).await?;
    }
    Ok(())
}
