//! Many words and acts at once: one of them is applied, and the others are told so.

use super::super::stage::{ACT, redrive};
use super::{CROWD, TIMES, apply_at_once, at_once};
use crate::conformance::answer::{Judged, Plain, is, that};
use crate::conformance::behaviour::behaviours;
use crate::conformance::letter::letter;
use crate::conformance::stage::{LEASE, RETENTION, Stage, failing, retryable};
use crate::letter::{Mark, Marked, Put, Reason};
use crate::record::{
    Acted, Answer, Claimed, Ending, FailKind, Finding, Held, Lease, Operation, Resolution, State,
    StepBegun,
};
use crate::store::StoreExt;
use bytes::Bytes;
use std::sync::Arc;

behaviours![
    BEHAVIOURS:
    one_of_many_completions_is_applied,
    success_and_failure_cannot_both_be_applied,
    one_of_old_and_new_run_completes,
    one_of_many_step_completions_is_applied,
];

behaviours![
    OPERATORS:
    one_of_many_resolutions_is_applied,
    one_of_many_redrives_is_applied,
    one_of_many_forgets_is_applied,
];

behaviours![
    LETTERS:
    one_of_many_puts_of_a_letter_is_applied,
];

/// As many operations as there are callers.
fn crowd(operation: impl Fn(usize) -> Operation) -> Vec<Operation> {
    (0..CROWD).map(operation).collect()
}

fn complete(lease: &Lease, n: usize) -> Operation {
    Operation::Complete {
        lease: lease.clone(),
        result: numbered(n),
        retention: RETENTION,
    }
}

fn fail(lease: &Lease, kind: FailKind) -> Operation {
    Operation::Fail {
        lease: lease.clone(),
        how: failing(kind),
    }
}

const fn applied(state: State) -> Answer {
    Answer::Held(Held::Applied(state))
}

async fn one_of_many_completions_is_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, lease) = stage.piece_in(State::Running).await?;
        let told = apply_at_once(stage, crowd(|n| complete(&lease, n))).await?;
        let already = Answer::Held(Held::Already(State::Succeeded));
        one_of(&told, &applied(State::Succeeded), &already)?;
        let winner = told.iter().position(|t| *t == applied(State::Succeeded));
        let applied = numbered(winner.unwrap_or_default());
        piece.is_replayed(Ending::Succeeded, &applied).await?;
    }
    Ok(())
}

async fn success_and_failure_cannot_both_be_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, lease) = stage.piece_in(State::Running).await?;
        let words = crowd(|n| match n % 3 {
            0 => complete(&lease, n),
            1 => fail(&lease, FailKind::Final),
            _ => fail(&lease, retryable()),
        });
        let told = apply_at_once(stage, words).await?;
        let state = piece.record().await?.state;
        let is_applied = |t: &&Answer| matches!(t, Answer::Held(Held::Applied(_)));
        let so = told
            .iter()
            .filter(is_applied)
            .eq(std::iter::once(&applied(state)));
        that(so, &format!("one Applied, as {state}"), &told)?;
    }
    Ok(())
}

async fn one_of_old_and_new_run_completes(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (piece, old) = stage.piece_in(State::Running).await?;
        stage.pass(LEASE).await;
        // The old run's late word races with the claim that makes it stale.
        let words = vec![complete(&old, 0), Operation::Claim(piece.claim())];
        let told = apply_at_once(stage, words).await?;
        let completed = told.contains(&applied(State::Succeeded));
        let granted = |t: &Answer| matches!(t, Answer::Claimed(Claimed::Granted(_)));
        let granted = told.iter().any(granted);
        let so = completed != granted;
        that(so, "either the late word or the new run", &told)?;
        let state = if granted {
            State::Running
        } else {
            State::Succeeded
        };
        piece.is_in(state).await?;
    }
    Ok(())
}

/// Of many equal acts on a record in this state one is applied, and the others find it in the next.
async fn one_of_many_acts(
    stage: &Stage<'_>,
    state: State,
    act: impl Fn(crate::Key) -> Operation,
    then: Option<State>,
) -> Judged {
    for _ in 0..TIMES {
        let (piece, _) = stage.piece_in(state).await?;
        let told = apply_at_once(stage, crowd(|_| act(piece.key))).await?;
        let gone = Answer::Acted(Acted::Gone(then));
        one_of(&told, &Answer::Acted(Acted::Applied), &gone)?;
    }
    Ok(())
}

async fn one_of_many_resolutions_is_applied(stage: &Stage<'_>) -> Judged {
    let resolve = |key| Operation::Resolve {
        key,
        how: Resolution::new(Finding::Succeeded(numbered(0))),
        by: ACT,
    };
    one_of_many_acts(stage, State::Parked, resolve, Some(State::Succeeded)).await
}

async fn one_of_many_redrives_is_applied(stage: &Stage<'_>) -> Judged {
    one_of_many_acts(stage, State::Failed, redrive, Some(State::Waiting)).await
}

async fn one_of_many_forgets_is_applied(stage: &Stage<'_>) -> Judged {
    one_of_many_acts(stage, State::Succeeded, Operation::Forget, None).await
}

async fn one_of_many_step_completions_is_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let (_, lease) = stage.piece_in(State::Running).await?;
        let begun = stage.store.step_begin(&lease, "step").await;
        is("begin step", StepBegun::Run, begun)?;
        let complete = |n| Operation::StepComplete {
            lease: lease.clone(),
            name: "step".into(),
            result: numbered(n),
        };
        let told = apply_at_once(stage, crowd(complete)).await?;
        let already = Answer::Held(Held::Already(State::Running));
        one_of(&told, &applied(State::Running), &already)?;
    }
    Ok(())
}

async fn one_of_many_puts_of_a_letter_is_applied(stage: &Stage<'_>) -> Judged {
    for _ in 0..TIMES {
        let letter = letter(Reason::Failed, b"why");
        let put = |_| {
            let (letters, letter) = (Arc::clone(stage.letters()), letter.clone());
            async move { letters.put(&letter).await }
        };
        let told = at_once((0..CROWD).map(put)).await?;
        one_of(&told, &Put::Applied, &Put::Already)?;
        let closed = stage.letters().mark(&letter.id, Mark::Closed).await;
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
