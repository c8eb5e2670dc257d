//! An operator's acts: what each is for, what it leaves, and that it ends the run in hand.

use super::answer::{Judged, is, that};
use super::behaviour::behaviours;
use super::stage::{ACT, redrive, release_by_operator};
use super::stage::{AGES, DONE, LEASE, OperatorsAct, Piece, RETENTION, Stage, retryable};
use crate::Key;
use crate::record::{
    Acted, Claim, Claimed, Ending, FailKind, Fence, Finding, Held, InDoubt, Lease, Operation,
    Record, Resolution, State,
};
use crate::store::StoreExt;
use std::num::NonZeroU32;

behaviours![
    BEHAVIOURS:
    a_parked_record_is_resolved_as_a_success,
    a_parked_record_is_resolved_as_a_failure,
    a_parked_record_is_resolved_to_run_again,
    only_parked_records_are_resolved,
    a_lapsed_run_is_resolved_by_its_fence,
    a_parked_run_is_resolved_by_its_fence,
    a_fence_names_one_run_and_no_other,
    failed_and_parked_records_are_redriven,
    only_failed_and_parked_records_are_redriven,
    running_and_waiting_records_are_released_by_an_operator,
    only_running_and_waiting_records_are_released_by_an_operator,
    an_act_ends_the_run_in_hand,
    an_act_gives_retention_anew,
    a_redriven_record_at_max_attempts_runs_once_more,
];

/// Resolved to run again.
pub(super) const fn retry(key: Key) -> Operation {
    let how = Resolution::new(Finding::Retry);
    Operation::Resolve { key, how, by: ACT }
}

/// The act is for no other states than these, and leaves every other record as it is.
async fn only(stage: &Stage<'_>, act: OperatorsAct, states: &[State]) -> Judged {
    for state in State::ALL {
        let (piece, _) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        if !states.contains(&state) {
            piece.act(act, Acted::Gone(Some(state))).await?;
            piece.is_still(&before).await?;
        }
    }
    stage.piece().act(act, Acted::Gone(None)).await
}

/// Waiting, claimable at once, with a higher fence in the same incarnation.
async fn runs_again(piece: &Piece, before: &Record) -> Judged<Lease> {
    let waiting = piece.is_in(State::Waiting).await?;
    let so = waiting.fence > before.fence
        && waiting.born == before.born
        && waiting.attempts == before.attempts;
    let expected = "a higher fence, the same born and attempts";
    that(so, expected, (before, &waiting))?;
    let lease = piece.grant().await?;
    let so = lease.fence > waiting.fence
        && lease.born == before.born
        && lease.attempt == before.attempts + 1;
    let expected = "the next run of the same incarnation";
    that(so, expected, (&waiting, &lease))?;
    Ok(lease)
}

/// Resolving must settle the work, and end the run in hand.
async fn settles(
    (piece, lease): (Piece, Lease),
    how: &Resolution,
    ending: Ending,
    result: &[u8],
) -> Judged {
    let before = piece.record().await?;
    piece.resolved(how, Acted::Applied).await?;
    let after = piece.record().await?;
    let so = after.fence > before.fence && after.born == before.born;
    that(so, "a higher fence and the same born", (before, after))?;
    piece.is_replayed(ending, result).await?;
    let late = piece.complete(&lease, b"late").await;
    is("complete by the run in hand", Held::Stale, late)
}

async fn a_parked_record_is_resolved_as_a_success(stage: &Stage<'_>) -> Judged {
    for result in [&b"it did happen"[..], b"", b"\0\xff"] {
        let how = Resolution::new(Finding::Succeeded(result.into()));
        let parked = stage.piece_in(State::Parked).await?;
        settles(parked, &how, Ending::Succeeded, result).await?;
    }
    Ok(())
}

async fn a_parked_record_is_resolved_as_a_failure(stage: &Stage<'_>) -> Judged {
    let result = b"it did not";
    let how = Resolution::new(Finding::Failed(result[..].into()));
    let parked = stage.piece_in(State::Parked).await?;
    settles(parked, &how, Ending::Failed, result).await
}

async fn a_parked_record_is_resolved_to_run_again(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    let before = piece.record().await?;
    piece.applies(retry).await?;
    let late = piece.complete(&lease, b"late").await;
    is("complete by the parked run", Held::Stale, late)?;
    runs_again(&piece, &before).await?;
    Ok(())
}

async fn only_parked_records_are_resolved(stage: &Stage<'_>) -> Judged {
    only(stage, retry, &[State::Parked]).await?;
    let (piece, _) = stage.piece_in(State::Failed).await?;
    let how = Resolution::new(Finding::Succeeded(DONE.into()));
    piece.resolved(&how, Acted::Gone(Some(State::Failed))).await
}

async fn a_lapsed_run_is_resolved_by_its_fence(stage: &Stage<'_>) -> Judged {
    for (finding, ending) in [
        (Finding::Succeeded(DONE.into()), Ending::Succeeded),
        (Finding::Failed(DONE.into()), Ending::Failed),
    ] {
        let (piece, lease) = stage.piece_in(State::Running).await?;
        stage.pass(LEASE).await;
        let how = Resolution::new(finding).of_run(lease.fence);
        settles((piece, lease), &how, ending, DONE).await?;
    }
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    let before = piece.record().await?;
    let how = Resolution::new(Finding::Retry).of_run(lease.fence);
    piece.resolved(&how, Acted::Applied).await?;
    runs_again(&piece, &before).await?;
    Ok(())
}

async fn a_parked_run_is_resolved_by_its_fence(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Parked).await?;
    let how = Resolution::new(Finding::Succeeded(DONE.into())).of_run(lease.fence);
    piece.resolved(&how, Acted::Applied).await?;
    piece.is_replayed(Ending::Succeeded, DONE).await
}

async fn a_fence_names_one_run_and_no_other(stage: &Stage<'_>) -> Judged {
    let how = |fence: Fence| Resolution::new(Finding::Succeeded(DONE.into())).of_run(fence);
    for state in State::ALL {
        let (piece, lease) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        for fence in [Fence(lease.fence.0 - 1), Fence(lease.fence.0 + 1)] {
            let answered = stage.store.resolve(&piece.key, &how(fence), ACT).await;
            let call = format!("resolve of another run than the one that is {state}");
            is(&call, Acted::Gone(Some(state)), answered)?;
        }
        let expected = match state {
            State::Running => Acted::Refused,
            State::Succeeded | State::Failed | State::Waiting => Acted::Gone(Some(state)),
            State::Parked => continue,
        };
        let answered = stage
            .store
            .resolve(&piece.key, &how(before.fence), ACT)
            .await;
        let call = format!("resolve of a run that is {state}");
        is(&call, expected, answered)?;
        piece.is_still(&before).await?;
    }
    let (piece, lease) = stage.piece_in(State::Running).await?;
    stage.pass(LEASE).await;
    let retry = Resolution::new(Finding::Retry);
    let answered = stage.store.resolve(&piece.key, &retry, ACT).await;
    let gone = Acted::Gone(Some(State::Running));
    is("resolve of a lapsed run without its fence", gone, answered)?;
    let next = piece.grant().await?;
    piece.resolved(&how(lease.fence), gone).await?;
    piece.reaches(&next, State::Succeeded).await
}

async fn failed_and_parked_records_are_redriven(stage: &Stage<'_>) -> Judged {
    for state in [State::Failed, State::Parked] {
        let (piece, _) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        piece.applies(redrive).await?;
        let lease = runs_again(&piece, &before).await?;
        piece.reaches(&lease, State::Succeeded).await?;
    }
    Ok(())
}

async fn only_failed_and_parked_records_are_redriven(stage: &Stage<'_>) -> Judged {
    only(stage, redrive, &[State::Failed, State::Parked]).await
}

async fn running_and_waiting_records_are_released_by_an_operator(stage: &Stage<'_>) -> Judged {
    for state in [State::Running, State::Waiting] {
        let (piece, _) = stage.piece_in(state).await?;
        let before = piece.record().await?;
        piece.applies(release_by_operator).await?;
        runs_again(&piece, &before).await?;
    }
    Ok(())
}

async fn only_running_and_waiting_records_are_released_by_an_operator(stage: &Stage<'_>) -> Judged {
    let states = [State::Running, State::Waiting];
    only(stage, release_by_operator, &states).await
}

async fn an_act_ends_the_run_in_hand(stage: &Stage<'_>) -> Judged {
    let acts: [(OperatorsAct, State); 4] = [
        (release_by_operator, State::Running),
        (redrive, State::Parked),
        (redrive, State::Failed),
        (retry, State::Parked),
    ];
    for (act, state) in acts {
        let (piece, lease) = stage.piece_in(state).await?;
        piece.applies(act).await?;
        let before = piece.record().await?;
        piece.completes(&lease, Held::Stale).await?;
        piece.fails(&lease, FailKind::Final, Held::Stale).await?;
        piece.fails(&lease, retryable(), Held::Stale).await?;
        piece.releases(&lease, Held::Stale).await?;
        piece.is_still(&before).await?;
    }
    Ok(())
}

async fn an_act_gives_retention_anew(stage: &Stage<'_>) -> Judged {
    let acts: [OperatorsAct; 2] = [retry, redrive];
    for act in acts {
        let (piece, _) = stage.piece_in(State::Parked).await?;
        stage.pass(AGES).await;
        piece.applies(act).await?;
        let record = piece.is_in(State::Waiting).await?;
        let kept = record.expires_at.since(record.lease_until);
        that(kept >= RETENTION, "a whole retention from now on", record)?;
        stage.pass(RETENTION - LEASE).await;
        piece.is_in(State::Waiting).await?;
    }
    let (piece, _) = stage.piece_in(State::Parked).await?;
    stage.pass(AGES).await;
    let how = Resolution::new(Finding::Succeeded(DONE.into()));
    piece.resolved(&how, Acted::Applied).await?;
    stage.pass(RETENTION - LEASE).await;
    piece.is_replayed(Ending::Succeeded, DONE).await
}

async fn a_redriven_record_at_max_attempts_runs_once_more(stage: &Stage<'_>) -> Judged {
    let piece = stage.piece();
    let once = || Claim {
        max_attempts: NonZeroU32::new(1),
        in_doubt: InDoubt::Park,
        ..piece.claim()
    };
    piece.grant_to(&once()).await?;
    stage.pass(LEASE).await;
    piece.is_told(&once(), Claimed::Parked).await?;
    piece.applies(redrive).await?;
    let lease = piece.grant_to(&once()).await?;
    that(lease.attempt == 2, "attempt 2", lease)
}
