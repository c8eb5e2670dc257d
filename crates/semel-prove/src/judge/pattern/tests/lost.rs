//! Mistakes that lose an effect, or refuse it, or end the process.

use super::*;

#[test]
fn crashes_show_on_which_side_the_marker_is() {
    let mark = "INSERT INTO seen VALUES ($1)";
    let steps = ["POST /charge", "UPDATE t SET step = 3"];
    let of = |how, before: &[&str], after: &[&str]| {
        let clues = one(CrashSweep, how, crash(before, after));
        named(&baseline(clues, &steps), CrashSweep)
    };
    let looked = ["SELECT 1 FROM seen"];
    assert_eq!(
        of(EffectLost, &[mark], &looked),
        "seen-marker before the work"
    );
    assert_eq!(
        of(EffectLost, &["POST /charge"], &[steps[1]]),
        "resumes at the wrong step"
    );
    // A line about the duplicate is not one of the steps.
    let noted = ["INSERT INTO duplicates VALUES ($1)"];
    assert_eq!(
        of(EffectLost, &[mark], &noted),
        "seen-marker before the work"
    );
    assert_eq!(
        of(EffectTwice, &["POST /charge"], &["POST /charge"]),
        "call without a key"
    );
    assert_eq!(
        of(EffectTwice, &["POST /charge"], &["POST /refund"]),
        UNRECOGNISED
    );
}

#[test]
fn step_that_was_noted_and_not_done_is_left_out() {
    let (note, charge, mail) = ("UPDATE t SET step = $1", "POST /charge", "POST /mail");
    let of = |before: &[&str], after: &[&str]| {
        let clues = one(CrashSweep, EffectLost, crash(before, after));
        named(&baseline(clues, &[note, charge, note, mail]), CrashSweep)
    };
    let wrong_step = "resumes at the wrong step";
    assert_eq!(of(&[note], &[note, mail]), wrong_step);
    // Behind the note of the last step there is none to go on with.
    assert_eq!(
        of(&[note, charge, note], &["SELECT step FROM t"]),
        wrong_step
    );
    // One mark for everything is not a note of a step.
    assert_eq!(
        of(&[note], &["SELECT step FROM t"]),
        "seen-marker before the work"
    );
}

#[test]
fn answer_before_the_crash_is_an_early_one() {
    let timeline = vec![
        sent("a1", 1),
        answered("a1", 1, 200),
        event(What::Killed),
        event(What::Started),
    ];
    let clues = one(CrashSweep, EffectLost, timeline);
    assert_eq!(named(&clues, CrashSweep), "acknowledged early");
}

#[test]
fn duplicate_that_is_refused_is_told_from_a_claim_that_stays() {
    let refused = |first: u32| {
        [
            sent("a1", first),
            answered("a1", first, 503),
            sent("a1", 9),
            answered("a1", 9, 503),
        ]
    };
    let stuck = |attack, count| {
        let mut timeline = refused(2).to_vec();
        timeline.push(counted("a1", count));
        (attack, broken(Stuck, timeline))
    };
    let mut clues = Clues {
        broken: vec![stuck(AtOnce, 1), stuck(CrashSweep, 1)],
        ..Clues::default()
    };
    let duplicate = "duplicate answered with an error";
    assert_eq!(named(&clues, AtOnce), duplicate);
    assert_eq!(named(&clues, CrashSweep), "claim never taken over");
    let evidence = name(CrashSweep, &clues).unwrap().evidence;
    assert!(
        evidence.contains("8 attempts were refused within 0.0 s; set lease_ms"),
        "{evidence}"
    );
    clues.broken.push(stuck(Repeat, 1));
    assert_eq!(named(&clues, CrashSweep), duplicate);
    clues.broken = vec![stuck(AtOnce, 0)];
    assert_eq!(named(&clues, AtOnce), "failure never retried");
}

#[test]
fn failure_is_remembered_where_a_later_attempt_does_nothing() {
    let failed = [
        sent("a1", 1),
        answered("a1", 1, 500),
        sent("a1", 2),
        answered("a1", 2, 200),
    ];
    let clues = Clues::default();
    let kept = "failure remembered as success";
    assert_eq!(
        named_by(&clues, Fault::DependencyFails, EffectLost, &failed),
        kept
    );
    let swallowed = [sent("a1", 1), answered("a1", 1, 200)];
    assert_eq!(
        named_by(&clues, Fault::DependencyFails, EffectLost, &swallowed),
        kept
    );
    assert_eq!(
        named_by(&clues, Fault::Race, EffectLost, &swallowed),
        UNRECOGNISED
    );
    // Who comes after the kill may be refused by the claim of the one that was killed.
    let mut lock = crash(&["SET lock:a1 1 NX"], &["SET lock:a1 1 NX"]);
    assert_eq!(
        named_by(&clues, Fault::Crash, EffectLost, &lock),
        "seen-marker before the work"
    );
    lock.insert(6, answered("a1", 2, 503));
    assert_eq!(
        named_by(&clues, Fault::Crash, EffectLost, &lock),
        "seen-marker before the work"
    );
}

/// A first attempt in which a dependency fails, answered with this status, and a second one.
fn failure(before: &[&str], after: &[&str], status: u16) -> Vec<Event> {
    let asked = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| says(true, text))
            .collect::<Vec<_>>()
    };
    let fails = event(What::Fails {
        how: "hangs up".to_owned(),
    });
    let mut timeline = vec![sent("a1", 1)];
    timeline.extend(asked(before));
    timeline.push(fails);
    timeline.extend(asked(after));
    timeline.push(answered("a1", 1, status));
    timeline.extend([sent("a1", 2), answered("a1", 2, 200)]);
    timeline
}

#[test]
fn mark_before_the_failure_is_told_from_one_after_it() {
    let mark = "SET seen:a1 1";
    let of = |before: &[&str], after: &[&str], status| {
        let timeline = failure(before, after, status);
        named_by(
            &Clues::default(),
            Fault::DependencyFails,
            EffectLost,
            &timeline,
        )
    };
    let kept = "failure remembered as success";
    assert_eq!(
        of(&[mark, "POST /mail"], &[], 503),
        "seen-marker before the work"
    );
    assert_eq!(of(&["POST /mail"], &[mark], 503), kept);
    assert_eq!(of(&[mark, "POST /mail"], &[], 200), kept);
}

#[test]
fn work_is_lost_by_the_process_that_took_it() {
    let crash = |victim: &str| {
        let mut timeline = vec![sent("a1", 1), answered("a1", 1, 200), event(What::Killed)];
        if let What::Sent { to, .. } = &mut timeline[0].what {
            *to = Some("web".to_owned());
        }
        timeline[2].lane = victim.to_owned();
        named_by(&Clues::default(), Fault::Crash, EffectLost, &timeline)
    };
    assert_eq!(crash("worker"), "taken off before it was done");
    assert_eq!(crash("web"), "acknowledged early");
}

#[test]
fn failure_after_the_answer_shows_an_early_one() {
    let timeline = failure(&["POST /mail"], &[], 200);
    let early = Clues {
        after_answer: Some("POST /mail".to_owned()),
        ..Clues::default()
    };
    let named = |clues: &Clues| named_by(clues, Fault::DependencyFails, EffectLost, &timeline);
    assert_eq!(named(&early), "acknowledged early");
    assert_eq!(named(&Clues::default()), "failure remembered as success");
}

#[test]
fn claim_that_a_kill_leaves_behind_is_left_behind_by_a_failure_too() {
    let refused = [
        sent("a1", 1),
        answered("a1", 1, 503),
        sent("a1", 2),
        answered("a1", 2, 503),
    ];
    let named = |clues: &Clues| named_by(clues, Fault::DependencyFails, Stuck, &refused);
    assert_eq!(named(&Clues::default()), "failure never retried");
    let killed = one(CrashSweep, Stuck, Vec::new());
    assert_eq!(named(&killed), "claim never taken over");
}

#[test]
fn only_a_duplicate_ends_a_process_at_a_duplicate() {
    let died = |attempt| vec![sent("a1", attempt), event(What::Ended)];
    let of = |attempt| named(&one(Repeat, Died, died(attempt)), Repeat);
    assert_eq!(
        [of(1), of(2)],
        [UNRECOGNISED, "process ends at a duplicate"]
    );
}

#[test]
fn error_of_another_constraint_is_no_narrow_key() {
    let error = says(
        false,
        "error: duplicate key value violates unique constraint",
    );
    let timeline = [sent("a1", 1), error, answered("a1", 1, 200)];
    let named =
        |timeline: &[Event]| named_by(&Clues::default(), Fault::Others, EffectLost, timeline);
    assert_eq!(named(&timeline), "failure remembered as success");
}
