//! History: the attempts that others have superseded, kept as long as their incarnation, and decided by never.

use super::answer::{Judged, granted, invalid, that};
use super::behaviour::behaviours;
use super::stage::{ACT, AGES, DELAY, DONE, LEASE, Piece, RETENTION, Stage, WAITING, WHY};
use super::stage::{redrive, release_by_operator, retryable};
use crate::clock::Time;
use crate::record::{
    Acted, BY_BYTES_MAX, Claim, Claimed, FailKind, Finding, HISTORY_ITEMS_MAX,
    HISTORY_RESULT_BYTES_MAX, Held, InDoubt, Lease, Operation, Record, Resolution, State,
    StepBegun, Superseded,
};
use crate::store::StoreExt;
use bytes::Bytes;
use std::time::Duration;

behaviours![
    BEHAVIOURS:
    a_first_run_has_no_history,
    a_run_writes_no_history_of_its_own,
    a_failed_run_is_superseded_by_the_next,
    a_lapsed_run_is_superseded_by_the_next,
    a_released_run_is_superseded_by_the_next,
    a_grant_told_twice_supersedes_once,
    a_claim_that_parks_supersedes_nothing,
    history_keeps_how_a_result_begins,
    history_keeps_the_latest_attempts,
    history_ends_with_an_expired_incarnation,
    who_claims_is_bounded,
];

behaviours![
    OPERATORS:
    an_act_supersedes_what_it_acts_on,
    an_act_that_does_nothing_is_not_remembered,
    history_ends_with_a_forgotten_incarnation,
    who_acts_is_bounded,
];

/// Clocks of stores are read more than once in a call, and a fence may run ahead of them.
const SOON: Duration = Duration::from_secs(1);

const GATE: Bytes = Bytes::from_static(b"gate \xff a");

/// A claim by a new owner of this gate.
fn claim(piece: &Piece) -> Claim {
    Claim {
        by: GATE,
        ..piece.claim()
    }
}

/// The history must have one entry for each of these fences, in this order.
async fn superseded(piece: &Piece, leases: &[&Lease]) -> Judged<Record> {
    let record = piece.record().await?;
    let fences: Vec<_> = record.history.iter().map(|it| it.fence).collect();
    let expected: Vec<_> = leases.iter().map(|lease| lease.fence).collect();
    let so = fences == expected;
    that(so, &format!("a history of {expected:?}"), &record)?;
    Ok(record)
}

/// The last entry must say this of the record as it stood.
fn tells(after: &Record, before: &Record, by: &Bytes, result: &[u8]) -> Judged {
    let last = after.history.last();
    let so = last.is_some_and(|last| {
        let Superseded {
            fence,
            state,
            in_doubt,
            until,
            at,
            by: who,
            result: kept,
        } = last;
        // Ageing moves records, not their histories; a moment passes between.
        (*fence, *state, *in_doubt) == (before.fence, before.state, before.ended_in_doubt())
            && (who, kept.as_ref()) == (by, result)
            && *until <= before.lease_until.plus(SOON)
            && at.plus(SOON) >= Time(fence.0)
    });
    let state = before.state;
    that(
        so,
        &format!("how the {state} one ended, by {by:?}, with {result:?}"),
        (before, last),
    )
}

async fn a_first_run_has_no_history(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    piece.grant_to(&claim(&piece)).await?;
    superseded(&piece, &[]).await.map(drop)
}

async fn a_run_writes_no_history_of_its_own(stage: &Stage<'_>) -> Judged {
    for state in State::ALL {
        let piece = stage.piece();
        let lease = piece.grant_to(&claim(&piece)).await?;
        let begun = stage.store.step_begin(&lease, "charge").await;
        super::answer::is("begin", StepBegun::Run, begun)?;
        piece.renews(&lease, Held::Applied(State::Running)).await?;
        piece.reaches(&lease, state).await?;
        superseded(&piece, &[]).await?;
    }
    // Nor does the second run, beside what it superseded.
    let (piece, first) = stage.piece_in(State::Waiting).await?;
    stage.pass(DELAY).await;
    let second = piece.grant_to(&claim(&piece)).await?;
    piece.renews(&second, Held::Applied(State::Running)).await?;
    piece.reaches(&second, State::Succeeded).await?;
    superseded(&piece, &[&first]).await.map(drop)
}

async fn a_failed_run_is_superseded_by_the_next(stage: &Stage<'_>) -> Judged {
    for kind in [retryable(), FailKind::InDoubt { delay: DELAY }] {
        let (piece, lease) = stage.piece_in(State::Running).await?;
        piece.fails(&lease, kind, WAITING).await?;
        let before = piece.record().await?;
        stage.pass(DELAY).await;
        piece.grant_to(&claim(&piece)).await?;
        let after = superseded(&piece, &[&lease]).await?;
        tells(&after, &before, &GATE, WHY)?;
    }
    Ok(())
}

async fn a_lapsed_run_is_superseded_by_the_next(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    let before = piece.record().await?;
    stage.pass(LEASE).await;
    let second = piece.grant_to(&claim(&piece)).await?;
    let after = superseded(&piece, &[&first]).await?;
    tells(&after, &before, &GATE, b"")?;

    // One that was renewed, after a run that left a word.
    piece
        .fails(&second, FailKind::InDoubt { delay: DELAY }, WAITING)
        .await?;
    stage.pass(DELAY).await;
    let third = piece.grant_to(&claim(&piece)).await?;
    piece.renews(&third, Held::Applied(State::Running)).await?;
    let before = piece.record().await?;
    stage.pass(LEASE).await;
    piece.grant_to(&claim(&piece)).await?;
    let after = superseded(&piece, &[&first, &second, &third]).await?;
    tells(&after, &before, &GATE, b"")
}

async fn a_released_run_is_superseded_by_the_next(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    piece.releases(&lease, WAITING).await?;
    let before = piece.record().await?;
    piece.grant_to(&claim(&piece)).await?;
    let after = superseded(&piece, &[&lease]).await?;
    tells(&after, &before, &GATE, b"")
}

async fn a_grant_told_twice_supersedes_once(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    let again = claim(&piece);
    for _ in 0..2 {
        granted("the same claim", stage.store.claim(&again).await)?;
        superseded(&piece, &[&first]).await?;
    }
    Ok(())
}

async fn a_claim_that_parks_supersedes_nothing(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    let parking = Claim {
        in_doubt: InDoubt::Park,
        ..claim(&piece)
    };
    piece.is_told(&parking, Claimed::Parked).await?;
    superseded(&piece, &[]).await?;
    // Its late word still counts.
    piece
        .completes(&lease, Held::Applied(State::Succeeded))
        .await?;
    superseded(&piece, &[]).await.map(drop)
}

async fn history_keeps_how_a_result_begins(stage: &Stage<'_>) -> Judged {
    let every: Vec<u8> = (0..=u8::MAX).cycle().take(100_000).collect();
    for length in [
        0,
        1,
        HISTORY_RESULT_BYTES_MAX,
        HISTORY_RESULT_BYTES_MAX + 1,
        every.len(),
    ] {
        let result = every.get(..length).unwrap_or_default();
        let (piece, lease) = stage.piece_in(State::Running).await?;
        let how = crate::record::Fail {
            result: Bytes::copy_from_slice(result),
            ..super::stage::failing(retryable())
        };
        let failed = piece.fail_with(&lease, &how).await;
        super::answer::is("fail", WAITING, failed)?;
        let before = piece.record().await?;
        stage.pass(DELAY).await;
        piece.grant_to(&claim(&piece)).await?;
        let after = superseded(&piece, &[&lease]).await?;
        let kept = result.get(..HISTORY_RESULT_BYTES_MAX).unwrap_or(result);
        tells(&after, &before, &GATE, kept)?;
    }
    Ok(())
}

async fn history_keeps_the_latest_attempts(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let mut leases = Vec::new();
    for number in 0..HISTORY_ITEMS_MAX + 3 {
        let by = Bytes::from(format!("gate {number}"));
        let claim = Claim {
            by,
            ..piece.claim()
        };
        let lease = piece.grant_to(&claim).await?;
        let over = leases.len().saturating_sub(HISTORY_ITEMS_MAX);
        let latest: Vec<_> = leases.iter().skip(over).collect();
        let record = superseded(&piece, &latest).await?;
        let last = record.history.last();
        let so = last.is_none_or(|last| last.by == claim.by);
        that(so, &format!("the last by {:?}", claim.by), last)?;
        leases.push(lease);
        stage.pass(LEASE).await;
    }
    Ok(())
}

async fn history_ends_with_an_expired_incarnation(stage: &Stage<'_>) -> Judged {
    for sweep in [false, true] {
        let (piece, first) = stage.piece_in(State::Waiting).await?;
        stage.pass(DELAY).await;
        let lease = piece.grant_to(&claim(&piece)).await?;
        piece.reaches(&lease, State::Succeeded).await?;
        superseded(&piece, &[&first]).await?;
        stage
            .pass(if sweep { AGES } else { LEASE + RETENTION })
            .await;
        if sweep {
            stage.sweep().await?;
        }
        piece.is_absent().await?;
        let lease = piece.grant_to(&claim(&piece)).await?;
        superseded(&piece, &[]).await?;
        stage.pass(LEASE).await;
        piece.grant_to(&claim(&piece)).await?;
        superseded(&piece, &[&lease]).await?;
    }
    Ok(())
}

async fn who_claims_is_bounded(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    let longest: Bytes = (0..=u8::MAX).take(BY_BYTES_MAX).collect();
    let too_long = Claim {
        by: vec![b'x'; BY_BYTES_MAX + 1].into(),
        ..piece.claim()
    };
    let refused = stage.store.claim(&too_long).await;
    invalid("claim by a long name", "by", &refused)?;
    superseded(&piece, &[]).await?;
    let longest = Claim {
        by: longest,
        ..piece.claim()
    };
    piece.grant_to(&longest).await?;
    let record = superseded(&piece, &[&lease]).await?;
    let last = record.history.last();
    let so = last.is_some_and(|last| last.by == longest.by);
    that(so, "every byte of who claimed", last)
}

async fn an_act_supersedes_what_it_acts_on(stage: &Stage<'_>) -> Judged {
    let retry: fn(crate::Key) -> Operation = super::operator::retry;
    for (state, act, result) in [
        (State::Parked, retry, WHY),
        (State::Parked, redrive, WHY),
        (State::Failed, redrive, WHY),
        (State::Running, release_by_operator, b""),
        (State::Waiting, release_by_operator, WHY),
    ] {
        let (piece, lease) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        piece.applies(act).await?;
        let after = superseded(&piece, &[&lease]).await?;
        tells(&after, &before, &ACT, result)?;
        // The act is superseded in its turn.
        piece.grant_to(&claim(&piece)).await?;
        let granted = piece.record().await?;
        that(granted.history.len() == 2, "two entries", &granted)?;
        tells(&granted, &after, &GATE, result)?;
    }
    for finding in [
        Finding::Succeeded(DONE.into()),
        Finding::Failed(DONE.into()),
    ] {
        let (piece, lease) = stage.piece_in(State::Parked).await?;
        let before = piece.record().await?;
        let how = Resolution::new(finding);
        piece.resolved(&how, Acted::Applied).await?;
        let after = superseded(&piece, &[&lease]).await?;
        tells(&after, &before, &ACT, WHY)?;
    }
    Ok(())
}

async fn an_act_that_does_nothing_is_not_remembered(stage: &Stage<'_>) -> Judged {
    for (state, act) in [
        (State::Running, redrive as fn(crate::Key) -> Operation),
        (State::Succeeded, redrive),
        (State::Parked, release_by_operator),
    ] {
        let (piece, _) = stage.piece_in(state).await?;
        piece.act(act, Acted::Gone(Some(state))).await?;
        superseded(&piece, &[]).await?;
    }
    Ok(())
}

async fn history_ends_with_a_forgotten_incarnation(stage: &Stage<'_>) -> Judged {
    let (piece, first) = stage.piece_in(State::Parked).await?;
    piece.applies(redrive).await?;
    let lease = piece.grant_to(&claim(&piece)).await?;
    let record = piece.record().await?;
    let so = record.history.first().map(|it| it.fence) == Some(first.fence);
    that(so, "the first run in the history", &record)?;
    piece.reaches(&lease, State::Succeeded).await?;
    piece.applies(Operation::Forget).await?;
    piece.is_absent().await?;
    piece.grant_to(&claim(&piece)).await?;
    superseded(&piece, &[]).await.map(drop)
}

async fn who_acts_is_bounded(stage: &Stage<'_>) -> Judged {
    let (piece, _) = stage.piece_in(State::Parked).await?;
    let long = Bytes::from(vec![b'x'; BY_BYTES_MAX + 1]);
    let refused = stage.store.redrive(&piece.key, long).await;
    invalid("redrive by a long name", "by", &refused)?;
    superseded(&piece, &[]).await.map(drop)
}
