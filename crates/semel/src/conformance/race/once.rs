//! Many words and acts at once: one of them is applied, and the others are told so.

use super::{CROWD, TIMES, at_once};
use crate::Fingerprint;
use crate::Store;
use crate::conformance::answer::{Judged, Plain, end, is, that};
use crate::conformance::behaviour::behaviours;
use crate::conformance::stage::{LEASE, RETENTION, Stage, WHY, failing, retryable};
use crate::letter::{Letter, LetterId, Mark, Marked, Put, Reason};
use crate::record::{
    Acted, Claimed, Ending, FailKind, Fence, Finding, Held, Resolution, State, StepBegun,
};
use bytes::Bytes;
use std::sync::Arc;

behaviours![
    one_of_many_completions_is_applied,
    success_and_failure_cannot_both_be_applied,
    one_of_old_and_new_run_completes,
    one_of_many_resolutions_is_applied,
    one_of_many_redrives_is_applied,
    one_of_many_forgets_is_applied,
    one_of_many_step_completions_is_applied,
    one_of_many_puts_of_a_letter_is_applied,
];

async fn one_of_many_completions_is_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, lease) = stage.piece_in(State::Running).await?;
        let call = |n| {
            let lease = lease.clone();
            move |store: Arc<dyn Store>| async move {
                Ok((n, store.complete(&lease, &numbered(n), RETENTION).await?))
            }
        };
        let told = at_once(stage, (0..CROWD).map(call)).await?;
        let (numbers, held): (Vec<_>, Vec<_>) = told.into_iter().unzip();
        let (applied, already) = (
            Held::Applied(State::Succeeded),
            Held::Already(State::Succeeded),
        );
        one_of(&held, &applied, &already)?;
        let mut both = numbers.iter().zip(&held);
        let winner = both.find(|(_, held)| **held == applied);
        let winner = winner.map(|(n, _)| numbered(*n));
        let replayed = end(Ending::Succeeded, &winner.unwrap_or_default());
        let answered = stage.store.claim(&piece.claim()).await;
        is(
            "claim: what was applied",
            Claimed::Replayed(replayed),
            answered,
        )?;
    }
    Ok(())
}

async fn success_and_failure_cannot_both_be_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, lease) = stage.piece_in(State::Running).await?;
        let call = |n: usize| {
            let lease = lease.clone();
            move |store: Arc<dyn Store>| async move {
                match n % 3 {
                    0 => store.complete(&lease, &numbered(n), RETENTION).await,
                    1 => store.fail(&lease, &failing(FailKind::Final)).await,
                    _ => store.fail(&lease, &failing(retryable())).await,
                }
            }
        };
        let told = at_once(stage, (0..CROWD).map(call)).await?;
        let applied = told.iter().filter(|held| matches!(held, Held::Applied(_)));
        let applied: Vec<_> = applied.collect();
        let state = piece.record().await?.state;
        let so = applied == [&Held::Applied(state)];
        that(so, &format!("one Applied, as {state}"), &told)?;
    }
    Ok(())
}

async fn one_of_old_and_new_run_completes(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, old) = stage.piece_in(State::Running).await?;
        stage.pass(LEASE).await;
        // The old run's late word races with the claim that makes it stale.
        let late = {
            let claim = piece.claim();
            move |n: usize| {
                let (old, claim) = (old.clone(), claim.clone());
                move |store: Arc<dyn Store>| async move {
                    match n {
                        0 => store.complete(&old, &numbered(0), RETENTION).await.map(Err),
                        _ => store.claim(&claim).await.map(Ok),
                    }
                }
            }
        };
        let told = at_once(stage, (0..2).map(late)).await?;
        let completed = told
            .iter()
            .any(|t| *t == Err(Held::Applied(State::Succeeded)));
        let granted = told.iter().any(|t| matches!(t, Ok(Claimed::Granted(_))));
        that(
            completed != granted,
            "either the late word or the new run",
            &told,
        )?;
        piece
            .is_in(if granted {
                State::Running
            } else {
                State::Succeeded
            })
            .await?;
    }
    Ok(())
}

async fn one_of_many_resolutions_is_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, _) = stage.piece_in(State::Parked).await?;
        let key = piece.key;
        let call = |n| {
            move |store: Arc<dyn Store>| async move {
                store
                    .resolve(&key, &Resolution::new(Finding::Succeeded(numbered(n))))
                    .await
            }
        };
        let told = at_once(stage, (0..CROWD).map(call)).await?;
        one_of(&told, &Acted::Applied, &Acted::Gone(Some(State::Succeeded)))?;
    }
    Ok(())
}

async fn one_of_many_redrives_is_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, _) = stage.piece_in(State::Failed).await?;
        let key = piece.key;
        let call = |_| move |store: Arc<dyn Store>| async move { store.redrive(&key).await };
        let told = at_once(stage, (0..CROWD).map(call)).await?;
        one_of(&told, &Acted::Applied, &Acted::Gone(Some(State::Waiting)))?;
    }
    Ok(())
}

async fn one_of_many_forgets_is_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, _) = stage.piece_in(State::Succeeded).await?;
        let key = piece.key;
        let call = |_| move |store: Arc<dyn Store>| async move { store.forget(&key).await };
        let told = at_once(stage, (0..CROWD).map(call)).await?;
        one_of(&told, &Acted::Applied, &Acted::Gone(None))?;
    }
    Ok(())
}

async fn one_of_many_step_completions_is_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (_, lease) = stage.piece_in(State::Running).await?;
        let begun = stage.store.step_begin(&lease, "step").await;
        is("begin step", StepBegun::Run, begun)?;
        let call = |n| {
            let lease = lease.clone();
            move |store: Arc<dyn Store>| async move {
                store.step_complete(&lease, "step", &numbered(n)).await
            }
        };
        let told = at_once(stage, (0..CROWD).map(call)).await?;
        let (applied, already) = (Held::Applied(State::Running), Held::Already(State::Running));
        one_of(&told, &applied, &already)?;
    }
    Ok(())
}

async fn one_of_many_puts_of_a_letter_is_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let key = stage.piece().key;
        let letter = Letter {
            id: LetterId::of_key(Reason::Failed, &key, &Fingerprint::of(WHY)),
            key: Some(key),
            route: "orders".into(),
            reason: Reason::Failed,
            fence: Fence(1),
            retention: RETENTION,
            redriven: false,
            delivery: Bytes::from_static(WHY),
        };
        let id = letter.id;
        let call = |_| {
            let letter = letter.clone();
            move |store: Arc<dyn Store>| async move { store.letter_put(&letter).await }
        };
        let told = at_once(stage, (0..CROWD).map(call)).await?;
        one_of(&told, &Put::Applied, &Put::Already)?;
        let closed = stage.store.letter_mark(&id, Mark::Closed).await;
        is("close the letter", Marked::Applied, closed)?;
    }
    Ok(())
}

/// One answer is `one`, and all others are `other`.
fn one_of<T: Plain + PartialEq + std::fmt::Debug + Clone>(
    told: &[T],
    one: &T,
    other: &T,
) -> Judged {
    let plain: Vec<_> = told.iter().cloned().map(Plain::plain).collect();
    let count = |what: &T| plain.iter().filter(|told| *told == what).count();
    let so = count(one) == 1 && count(other) == told.len() - 1;
    that(so, &format!("one {one:?}, the others {other:?}"), &plain)
}

fn numbered(n: usize) -> Bytes {
    Bytes::from(format!("result {n}"))
}
