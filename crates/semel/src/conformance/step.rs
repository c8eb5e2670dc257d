//! Steps: begun, done and remembered, within one incarnation and by the run that holds the lease.

use super::answer::{Judged, end, is, ok, that};
use super::behaviour::behaviours;
use super::stage::{AGES, AT_ONCE, DONE, LEASE, Piece, RETENTION, Stage, WAITING, WHY};
use super::stage::{of_another_owner, of_other_fences};
use super::stage::{redrive, release_by_operator};
use crate::Key;
use crate::record::{Ending, Held, Lease, Operation, Settled, State, StepBegun, StepRecord};
use crate::store::{STEP_NAME_BYTES_MAX, STEP_SHOWN_BYTES_MAX, STEPS_SHOWN_MAX, StoreExt};
use bytes::Bytes;

behaviours![
    BEHAVIOURS:
    a_new_step_runs,
    a_step_begun_again_by_the_same_run_runs,
    a_step_that_is_done_is_remembered,
    a_step_is_done_once,
    a_step_that_was_never_begun_cannot_be_done,
    a_step_is_remembered_by_the_next_run,
    a_step_left_by_an_earlier_run_is_in_doubt,
    a_step_in_doubt_cannot_be_done_before_it_is_restarted,
    a_step_in_doubt_can_be_restarted,
    a_step_that_is_done_or_unknown_cannot_be_restarted,
    settled_work_has_no_steps,
    a_parked_run_begins_no_step,
    a_run_that_gave_up_begins_no_step,
    steps_end_with_an_expired_incarnation,
    steps_of_other_keys_and_names_are_apart,
    results_of_steps_are_kept_byte_for_byte,
    steps_are_shown_by_name,
    what_is_shown_of_steps_is_bounded,
];

behaviours![
    OPERATORS:
    a_stale_run_has_no_steps,
    steps_survive_a_redrive,
    steps_end_with_a_forgotten_incarnation,
    steps_of_a_forgotten_incarnation_are_not_shown,
];

const A: &str = "charge";
const B: &str = "mail";
const RUNNING: Held = Held::Applied(State::Running);

async fn begin(stage: &Stage<'_>, lease: &Lease, name: &str, expected: StepBegun) -> Judged {
    let answered = stage.store.step_begin(lease, name).await;
    is(&format!("begin step {name:?}"), expected, answered)
}

async fn done(stage: &Stage<'_>, lease: &Lease, name: &str, expected: Held) -> Judged {
    let result = Bytes::from_static(DONE);
    let answered = stage.store.step_complete(lease, name, &result).await;
    is(&format!("complete step {name:?}"), expected, answered)
}

async fn restart(stage: &Stage<'_>, lease: &Lease, name: &str, expected: Held) -> Judged {
    let answered = stage.store.step_restart(lease, name).await;
    is(&format!("restart step {name:?}"), expected, answered)
}

fn memo(by: &Lease) -> StepBegun {
    StepBegun::Memo {
        fence: by.fence,
        result: Bytes::from_static(DONE),
    }
}

/// A run that has done step A and only begun step B.
async fn halfway(stage: &Stage<'_>) -> Judged<(Piece, Lease)> {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    begin(stage, &lease, A, StepBegun::Run).await?;
    done(stage, &lease, A, RUNNING).await?;
    begin(stage, &lease, B, StepBegun::Run).await?;
    Ok((piece, lease))
}

/// The same, and the run that took over.
async fn taken_over(stage: &Stage<'_>) -> Judged<(Piece, Lease, Lease)> {
    let (piece, first) = halfway(stage).await?;
    stage.pass(LEASE).await;
    let second = piece.grant().await?;
    Ok((piece, first, second))
}

async fn a_new_step_runs(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let before = piece.record().await?;
    begin(stage, &lease, A, StepBegun::Run).await?;
    piece.is_still(&before).await
}

async fn a_step_begun_again_by_the_same_run_runs(stage: &Stage<'_>) -> Judged {
    let (_, lease) = halfway(stage).await?;
    begin(stage, &lease, B, StepBegun::Run).await?;
    done(stage, &lease, B, RUNNING).await
}

async fn a_step_that_is_done_is_remembered(stage: &Stage<'_>) -> Judged {
    let (_, lease) = halfway(stage).await?;
    begin(stage, &lease, A, memo(&lease)).await
}

async fn a_step_is_done_once(stage: &Stage<'_>) -> Judged {
    let (_, lease) = halfway(stage).await?;
    let other = Bytes::from_static(b"something else");
    let answered = stage.store.step_complete(&lease, A, &other).await;
    is("complete it again", Held::Already(State::Running), answered)?;
    begin(stage, &lease, A, memo(&lease)).await
}

async fn a_step_that_was_never_begun_cannot_be_done(stage: &Stage<'_>) -> Judged {
    let (_, lease) = stage.piece_in(State::Running).await?;
    done(stage, &lease, A, Held::Stale).await?;
    begin(stage, &lease, A, StepBegun::Run).await
}

async fn a_step_is_remembered_by_the_next_run(stage: &Stage<'_>) -> Judged {
    let (piece, first, second) = taken_over(stage).await?;
    begin(stage, &second, A, memo(&first)).await?;
    piece.fails(&second, AT_ONCE, WAITING).await?;
    let third = piece.grant().await?;
    begin(stage, &third, A, memo(&first)).await?;
    piece.releases(&third, WAITING).await?;
    let fourth = piece.grant().await?;
    begin(stage, &fourth, A, memo(&first)).await
}

async fn a_step_left_by_an_earlier_run_is_in_doubt(stage: &Stage<'_>) -> Judged {
    let (_, first, second) = taken_over(stage).await?;
    begin(stage, &second, B, StepBegun::InDoubt(first.fence)).await?;
    begin(stage, &second, B, StepBegun::InDoubt(first.fence)).await
}

async fn a_step_in_doubt_cannot_be_done_before_it_is_restarted(stage: &Stage<'_>) -> Judged {
    let (_, first, second) = taken_over(stage).await?;
    done(stage, &second, B, Held::Stale).await?;
    begin(stage, &second, B, StepBegun::InDoubt(first.fence)).await
}

async fn a_step_in_doubt_can_be_restarted(stage: &Stage<'_>) -> Judged {
    let (_, first, second) = taken_over(stage).await?;
    restart(stage, &first, B, Held::Stale).await?;
    restart(stage, &second, B, RUNNING).await?;
    restart(stage, &second, B, RUNNING).await?;
    begin(stage, &second, B, StepBegun::Run).await?;
    done(stage, &first, B, Held::Stale).await?;
    done(stage, &second, B, RUNNING).await?;
    begin(stage, &second, B, memo(&second)).await
}

async fn a_step_that_is_done_or_unknown_cannot_be_restarted(stage: &Stage<'_>) -> Judged {
    let (_, first, second) = taken_over(stage).await?;
    restart(stage, &second, A, Held::Stale).await?;
    begin(stage, &second, A, memo(&first)).await?;
    restart(stage, &second, "never begun", Held::Stale).await?;
    begin(stage, &second, "never begun", StepBegun::Run).await
}

/// No word about any step counts under this lease.
async fn no_steps(stage: &Stage<'_>, lease: &Lease) -> Judged {
    for name in [A, B, "never begun"] {
        begin(stage, lease, name, StepBegun::Stale).await?;
        restart(stage, lease, name, Held::Stale).await?;
        done(stage, lease, name, Held::Stale).await?;
    }
    Ok(())
}

async fn a_stale_run_has_no_steps(stage: &Stage<'_>) -> Judged {
    let (piece, first, second) = taken_over(stage).await?;
    let unknown = Lease {
        key: stage.piece().key,
        ..second.clone()
    };
    let owner = of_another_owner(&second);
    let [below, above] = of_other_fences(&second);
    for stale in [&first, &owner, &below, &above, &unknown] {
        no_steps(stage, stale).await?;
    }
    begin(stage, &second, A, memo(&first)).await?;
    begin(stage, &second, B, StepBegun::InDoubt(first.fence)).await?;
    piece.applies(release_by_operator).await?;
    no_steps(stage, &second).await
}

async fn settled_work_has_no_steps(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = halfway(stage).await?;
    piece.reaches(&lease, State::Succeeded).await?;
    ended(stage, &lease, &end(Ending::Succeeded, DONE)).await?;
    let (piece, lease) = halfway(stage).await?;
    piece.reaches(&lease, State::Failed).await?;
    ended(stage, &lease, &end(Ending::Failed, WHY)).await
}

async fn ended(stage: &Stage<'_>, lease: &Lease, how: &Settled) -> Judged {
    for name in [A, B] {
        begin(stage, lease, name, StepBegun::Settled(how.clone())).await?;
        restart(stage, lease, name, Held::Settled(how.clone())).await?;
        done(stage, lease, name, Held::Settled(how.clone())).await?;
    }
    Ok(())
}

async fn a_parked_run_begins_no_step(stage: &Stage<'_>) -> Judged {
    let (_, lease) = stage.piece_in(State::Parked).await?;
    begin(stage, &lease, A, StepBegun::Parked).await?;
    restart(stage, &lease, A, Held::Parked).await?;
    done(stage, &lease, A, Held::Parked).await
}

async fn a_run_that_gave_up_begins_no_step(stage: &Stage<'_>) -> Judged {
    let (_, lease) = stage.piece_in(State::Waiting).await?;
    no_steps(stage, &lease).await
}

async fn steps_survive_a_redrive(stage: &Stage<'_>) -> Judged {
    let (piece, first) = halfway(stage).await?;
    piece.reaches(&first, State::Failed).await?;
    piece.applies(redrive).await?;
    let second = piece.grant().await?;
    begin(stage, &second, A, memo(&first)).await?;
    begin(stage, &second, B, StepBegun::InDoubt(first.fence)).await
}

async fn steps_end_with_a_forgotten_incarnation(stage: &Stage<'_>) -> Judged {
    let (piece, first) = halfway(stage).await?;
    stage.pass(LEASE).await;
    piece.applies(Operation::Forget).await?;
    let second = piece.grant().await?;
    begin(stage, &second, A, StepBegun::Run).await?;
    begin(stage, &second, B, StepBegun::Run).await?;
    no_steps(stage, &first).await
}

async fn steps_end_with_an_expired_incarnation(stage: &Stage<'_>) -> Judged {
    for swept in [false, true] {
        let (piece, _) = halfway(stage).await?;
        stage.pass(LEASE + RETENTION).await;
        if swept {
            stage.pass(AGES).await;
            stage.sweep().await?;
        }
        let second = piece.grant().await?;
        begin(stage, &second, A, StepBegun::Run).await?;
        begin(stage, &second, B, StepBegun::Run).await?;
    }
    Ok(())
}

async fn steps_of_other_keys_and_names_are_apart(stage: &Stage<'_>) -> Judged {
    let (_, lease) = halfway(stage).await?;
    let longest = "n".repeat(STEP_NAME_BYTES_MAX);
    for name in ["Charge", "charge ", "charge:", "été\n%_'\\", &longest] {
        begin(stage, &lease, name, StepBegun::Run).await?;
        done(stage, &lease, name, RUNNING).await?;
        begin(stage, &lease, name, memo(&lease)).await?;
    }
    begin(stage, &lease, B, StepBegun::Run).await?;
    let (_, other) = stage.piece_in(State::Running).await?;
    begin(stage, &other, A, StepBegun::Run).await
}

async fn results_of_steps_are_kept_byte_for_byte(stage: &Stage<'_>) -> Judged {
    let (_, lease) = stage.piece_in(State::Running).await?;
    for (name, result) in super::outcome::awkward().into_iter().enumerate() {
        let (name, result) = (name.to_string(), Bytes::from(result));
        begin(stage, &lease, &name, StepBegun::Run).await?;
        let answered = stage.store.step_complete(&lease, &name, &result).await;
        is("complete step", RUNNING, answered)?;
        let fence = lease.fence;
        begin(stage, &lease, &name, StepBegun::Memo { fence, result }).await?;
    }
    Ok(())
}

async fn shows(stage: &Stage<'_>, key: &Key, expected: &[(&str, &Lease, Option<&[u8]>)]) -> Judged {
    let step = |(name, by, result): &(&str, &Lease, Option<&[u8]>)| {
        let step = StepRecord {
            fence: by.fence,
            result: result.map(Bytes::copy_from_slice),
        };
        ((*name).to_owned(), step)
    };
    let expected: Vec<_> = expected.iter().map(step).collect();
    let shown = ok("steps", stage.store.steps(key).await)?;
    that(shown == expected, &format!("{expected:?}"), &shown)
}

async fn steps_are_shown_by_name(stage: &Stage<'_>) -> Judged {
    shows(stage, &stage.piece().key, &[]).await?;
    let (piece, first) = stage.piece_in(State::Running).await?;
    shows(stage, &piece.key, &[]).await?;
    begin(stage, &first, B, StepBegun::Run).await?;
    begin(stage, &first, A, StepBegun::Run).await?;
    done(stage, &first, A, RUNNING).await?;
    begin(stage, &first, "Ärger", StepBegun::Run).await?;
    begin(stage, &first, "Zoll", StepBegun::Run).await?;
    let then = [
        ("Zoll", &first, None),
        (A, &first, Some(DONE)),
        (B, &first, None),
        ("Ärger", &first, None),
    ];
    shows(stage, &piece.key, &then).await?;

    // The next run goes on with them; what it restarts is its own.
    stage.pass(LEASE).await;
    let second = piece.grant().await?;
    shows(stage, &piece.key, &then).await?;
    restart(stage, &second, B, RUNNING).await?;
    let then = [
        ("Zoll", &first, None),
        (A, &first, Some(DONE)),
        (B, &second, None),
        ("Ärger", &first, None),
    ];
    shows(stage, &piece.key, &then).await?;
    piece.reaches(&second, State::Succeeded).await?;
    shows(stage, &piece.key, &then).await?;

    // Not those of the incarnation before.
    stage.pass(LEASE + RETENTION).await;
    shows(stage, &piece.key, &[]).await?;
    piece.grant().await?;
    shows(stage, &piece.key, &[]).await
}

async fn what_is_shown_of_steps_is_bounded(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    let name = |number: usize| format!("step {number:04}");
    for number in 0..STEPS_SHOWN_MAX + 2 {
        begin(stage, &lease, &name(number), StepBegun::Run).await?;
    }
    let long = Bytes::from(vec![7; STEP_SHOWN_BYTES_MAX + 1]);
    let kept = stage.store.step_complete(&lease, &name(0), &long).await;
    is("complete", RUNNING, kept)?;
    let shown = ok("steps", stage.store.steps(&piece.key).await)?;
    let names = shown.iter().map(|(name, _)| name.clone());
    let first = (0..STEPS_SHOWN_MAX).map(name);
    that(names.eq(first), "the first ones by name", shown.len())?;
    let result = shown.first().and_then(|(_, step)| step.result.clone());
    let so = result.as_deref() == long.get(..STEP_SHOWN_BYTES_MAX);
    that(so, "how the result begins", result)
}

async fn steps_of_a_forgotten_incarnation_are_not_shown(stage: &Stage<'_>) -> Judged {
    let (piece, lease) = stage.piece_in(State::Running).await?;
    begin(stage, &lease, A, StepBegun::Run).await?;
    piece.reaches(&lease, State::Succeeded).await?;
    piece.applies(Operation::Forget).await?;
    shows(stage, &piece.key, &[]).await
}
