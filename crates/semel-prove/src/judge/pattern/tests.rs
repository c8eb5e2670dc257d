use super::catalogue::KnownMistake;
use super::statements::adds;
use super::*;
use crate::judge::samples::{answered, counted, event, says, says_with, sent, unanswered};
use crate::judge::timeline::What;
use Attack::{AtOnce, BadKey, CrashSweep, OtherPayload, Pause, Repeat, TwoProcesses};
use BreachKind::{Died, EffectLost, EffectTwice, OldWins, Stuck};

const UNRECOGNISED: &str = "";

fn broken(how: BreachKind, timeline: Vec<Event>) -> Broken {
    Broken {
        how,
        seen: "what was seen".to_owned(),
        timeline,
        pattern: None,
    }
}

fn named(clues: &Clues, attack: Attack) -> &'static str {
    name(attack, clues).map_or(UNRECOGNISED, |pattern| pattern.name)
}

/// What an attack is called that does not exist yet, or whose name does not matter.
fn named_by(clues: &Clues, fault: Fault, how: BreachKind, timeline: &[Event]) -> &'static str {
    let attack = BrokenAttack {
        fault,
        how,
        seen: "what was seen",
        timeline,
        clues,
    };
    attack.named().map_or(UNRECOGNISED, |pattern| pattern.name)
}

fn one(attack: Attack, how: BreachKind, timeline: Vec<Event>) -> Clues {
    Clues {
        broken: vec![(attack, broken(how, timeline))],
        ..Clues::default()
    }
}

/// Clues by which a plain repeat is recognised.
fn repeat_held(mut clues: Clues) -> Clues {
    clues.held.push(Repeat);
    clues
}

/// One attempt after the other, each with what it asks.
fn attempts(asked: &[&[Event]]) -> Vec<Event> {
    let turns = (1..).zip(asked);
    let turns = turns.flat_map(|(n, asked)| {
        let mut turn = vec![sent("a1", n)];
        turn.extend_from_slice(asked);
        turn.push(answered("a1", n, 200));
        turn
    });
    turns.collect()
}

/// A first attempt that is killed, and a second one.
fn crash(before: &[&str], after: &[&str]) -> Vec<Event> {
    let asked = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| says(true, text))
            .collect::<Vec<_>>()
    };
    let mut timeline = vec![sent("a1", 1)];
    timeline.extend(asked(before));
    timeline.extend([
        event(What::Killed),
        unanswered("a1", 1),
        event(What::Started),
        sent("a1", 2),
    ]);
    timeline.extend(asked(after));
    timeline.push(answered("a1", 2, 200));
    timeline
}

fn baseline(clues: Clues, said: &[&str]) -> Clues {
    let baseline = said.iter().map(|&said| said.to_owned()).collect();
    Clues { baseline, ..clues }
}

#[test]
fn documentation_names_every_pattern() {
    let documentation = include_str!("../../../../../docs/prove.md");
    for KnownMistake { name, .. } in CATALOGUE {
        assert!(documentation.contains(&format!("| {name} |")), "{name}");
    }
}

#[test]
fn additions_are_recognised() {
    assert!(adds("UPDATE players SET score = score + $1 WHERE id = $2"));
    assert!(adds("update p set a = $1, stock=stock-1"));
    assert!(adds(
        "INSERT INTO s VALUES ($1) ON CONFLICT (id) DO UPDATE SET n = s.n + 1"
    ));
    assert!(!adds("UPDATE players SET score = $1"));
    assert!(!adds("UPDATE players SET score = bonus + 1"));
}

#[test]
fn plain_repeats_are_told_apart() {
    let repeat = |first: Event, then: Event| {
        let clues = one(Repeat, EffectTwice, attempts(&[&[first], &[then]]));
        named(&clues, Repeat)
    };
    let insert = |value: &str| says_with(true, "INSERT INTO t VALUES ($1, $2)", &["a1", value]);
    assert_eq!(repeat(insert("9"), insert("9")), "no key");
    let (one_id, other_id) = (insert("6fa459ea-ee8a-4ca4"), insert("16fd2706-8baf-433b"));
    assert_eq!(repeat(one_id, other_id), "random id per attempt");
    // When it was written is no id.
    let (one_time, other_time) = (
        insert("2026-11-17 20:00:01.5"),
        insert("2026-11-17 20:00:02.5"),
    );
    assert_eq!(repeat(one_time, other_time), "no key");
    let add = || says(true, "UPDATE t SET n = n + 1");
    assert_eq!(repeat(add(), add()), "counter update");
}

#[test]
fn other_rows_of_one_attempt_are_no_random_ids() {
    let line = |n: &str| says_with(true, "INSERT INTO lines VALUES ($1)", &[n]);
    let lines = [line("line-0001"), line("line-0002")];
    let clues = one(Repeat, EffectTwice, attempts(&[&lines, &lines]));
    assert_eq!(named(&clues, Repeat), "no key");
}

#[test]
fn counter_beside_other_writes_is_not_the_whole_mistake() {
    let both = [
        says(true, "UPDATE t SET n = n + 1"),
        says(true, "INSERT INTO orders VALUES ($1)"),
    ];
    let clues = one(Repeat, EffectTwice, attempts(&[&both, &both]));
    assert_eq!(named(&clues, Repeat), "no key");
}

#[test]
fn effect_outside_the_guard_is_seen_beside_one_inside() {
    let counted = |effect: &str, count| {
        Event::effects(
            std::time::Duration::ZERO,
            effect.to_owned(),
            "a1".to_owned(),
            count,
        )
    };
    let mut timeline = attempts(&[&[], &[]]);
    timeline.extend([counted("mail", 2), counted("row", 1)]);
    let mut clues = one(Repeat, EffectTwice, timeline);
    assert_eq!(named(&clues, Repeat), "effect not guarded (others are)");
    clues.expected.insert("row".to_owned(), 2);
    assert_eq!(named(&clues, Repeat), "no key");
}

#[test]
fn races_are_check_then_act_unless_a_lock_lapsed() {
    let race = |asked: &[&str]| {
        let asked = asked.iter().map(|text| says(true, text));
        [sent("a1", 1), sent("a1", 2)]
            .into_iter()
            .chain(asked)
            .collect::<Vec<_>>()
    };
    let (look, insert) = ("SELECT 1 FROM t", "INSERT INTO t VALUES ($1)");
    let both_look = one(AtOnce, EffectTwice, race(&[look, look, insert, insert]));
    assert_eq!(named(&both_look, AtOnce), "check-then-act");
    // Nobody has looked, and whether a plain repeat is recognised is not known.
    let unknown = one(AtOnce, EffectTwice, race(&[look, insert, look, insert]));
    assert_eq!(named(&unknown, AtOnce), UNRECOGNISED);
    assert_eq!(named(&repeat_held(unknown), AtOnce), "check-then-act");
    let lock = "SET lock:a1 x PX 200 NX";
    let clues = baseline(one(AtOnce, EffectTwice, race(&[lock, lock])), &[lock]);
    assert_eq!(named(&clues, AtOnce), "unfenced lock release");
}

#[test]
fn handler_that_never_looks_has_no_key() {
    let insert = ["BEGIN", "INSERT INTO t VALUES ($1)"];
    let clues = baseline(one(AtOnce, EffectTwice, Vec::new()), &insert);
    assert_eq!(named(&clues, AtOnce), "no key");
    // It looks in its memory, then.
    assert_eq!(named(&repeat_held(clues), AtOnce), "check-then-act");
}

#[test]
fn another_process_with_another_key_is_seen_when_they_take_turns() {
    let (sent, answered) = (|n| sent("a1", n), |n| answered("a1", n, 200));
    let turns = vec![sent(1), answered(1), sent(2), answered(2)];
    let clues = one(TwoProcesses, EffectTwice, turns);
    // A plain repeat might take effect as well.
    assert_eq!(named(&clues, TwoProcesses), UNRECOGNISED);
    let differs = "key differs between processes";
    assert_eq!(named(&repeat_held(clues), TwoProcesses), differs);
    let together = vec![sent(1), sent(2), answered(1), answered(2)];
    let clues = one(TwoProcesses, EffectTwice, together);
    assert_eq!(named(&repeat_held(clues), TwoProcesses), "check-then-act");
}

#[test]
fn memory_that_a_crash_takes_away_is_told_from_a_marker() {
    let answered_first = vec![
        sent("a1", 1),
        answered("a1", 1, 200),
        event(What::Killed),
        event(What::Started),
        sent("a1", 2),
        answered("a1", 2, 200),
    ];
    let clues = repeat_held(one(CrashSweep, EffectTwice, answered_first));
    assert_eq!(named(&clues, CrashSweep), "key differs between processes");
    let insert = "INSERT INTO t VALUES ($1)";
    let at_work = one(CrashSweep, EffectTwice, crash(&[insert], &[insert]));
    let silent = baseline(repeat_held(at_work.clone()), &[insert]);
    assert_eq!(named(&silent, CrashSweep), UNRECOGNISED);
    let asks = baseline(repeat_held(at_work), &["SELECT 1 FROM seen", insert]);
    assert_eq!(named(&asks, CrashSweep), "seen-marker after the work");
}

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
fn call_under_the_same_key_is_not_blamed() {
    let crash = |first: &[&str], then: &[&str]| {
        let call = |key| says_with(true, "POST /charge", key);
        let mut timeline = vec![sent("a1", 1), call(first)];
        timeline.extend([
            event(What::Killed),
            unanswered("a1", 1),
            event(What::Started),
        ]);
        timeline.extend([sent("a1", 2), call(then), answered("a1", 2, 200)]);
        named(&one(CrashSweep, EffectTwice, timeline), CrashSweep)
    };
    assert_eq!(crash(&[], &[]), "call without a key");
    let key = "Idempotency-Key: a1";
    assert_eq!(crash(&[key], &[key]), UNRECOGNISED);
    let other = "Idempotency-Key: a1-2";
    assert_eq!(crash(&[key], &[other]), "key changes between attempts");
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
fn what_held_has_no_pattern() {
    assert_eq!(name(Repeat, &Clues::default()), None);
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

#[test]
fn keys_that_last_or_cover_too_little_are_told_apart() {
    let repeated = attempts(&[&[], &[]]);
    let known = repeat_held(Clues::default());
    for (fault, how, mistake) in [
        (Fault::Late, EffectTwice, "key forgotten too soon"),
        (Fault::Others, EffectTwice, "key forgotten too soon"),
        (
            Fault::Republished,
            EffectTwice,
            "key changes between attempts",
        ),
        (
            Fault::OtherPayload,
            EffectTwice,
            "key changes between attempts",
        ),
    ] {
        assert_eq!(named_by(&known, fault, how, &repeated), mistake);
        // Unless a plain repeat is recognised, nothing is known of the key.
        assert_eq!(
            named_by(&Clues::default(), fault, how, &repeated),
            UNRECOGNISED
        );
    }
    assert_eq!(
        named_by(&known, Fault::Others, EffectLost, &repeated),
        "key too narrow"
    );
    assert_eq!(
        named_by(&known, Fault::Race, EffectLost, &repeated),
        UNRECOGNISED
    );
    assert_eq!(
        named_by(&known, Fault::Reorder, OldWins, &repeated),
        "old overwrites new"
    );
    assert_eq!(
        named(&one(OtherPayload, EffectTwice, Vec::new()), OtherPayload),
        UNRECOGNISED
    );
    assert_eq!(
        named(&one(BadKey, EffectTwice, Vec::new()), BadKey),
        "no key"
    );
}

#[test]
fn key_with_a_number_of_the_attempt_is_seen_on_the_wire() {
    let look = |key: &str| says(true, &format!("GET seen:{key}"));
    let known = repeat_held(Clues::default());
    let late = |first, then| {
        let timeline = attempts(&[&[look(first)], &[look(then)]]);
        named_by(&known, Fault::Late, EffectTwice, &timeline)
    };
    assert_eq!(late("a1:1", "a1:2"), "key changes between attempts");
    assert_eq!(late("a1", "a1"), "key forgotten too soon");
}

#[test]
fn paused_worker_must_be_seen_to_go_on() {
    let mut timeline = vec![
        sent("a1", 1),
        event(What::Paused),
        sent("a1", 2),
        event(What::Resumed),
    ];
    let clues = one(Pause, EffectTwice, timeline.clone());
    assert_eq!(named(&clues, Pause), UNRECOGNISED);
    timeline.push(says(true, "INSERT INTO t VALUES ($1)"));
    assert_eq!(named(&one(Pause, EffectTwice, timeline), Pause), "no lease");
}

#[test]
fn gate_that_runs_it_again_is_in_doubt() {
    let forwarded = || Event {
        lane: "SEMEL_UPSTREAM".to_owned(),
        ..says(true, "POST /")
    };
    let mut timeline = vec![
        sent("a1", 1),
        forwarded(),
        event(What::Killed),
        event(What::Started),
        sent("a1", 2),
    ];
    let mut clues = repeat_held(Clues::default());
    clues.gate = true;
    let name =
        |clues: &Clues, timeline: &[Event]| named_by(clues, Fault::Crash, EffectTwice, timeline);
    assert_eq!(name(&clues, &timeline), UNRECOGNISED);
    timeline.push(forwarded());
    assert_eq!(name(&clues, &timeline), "in doubt at the gate");
    clues.gate = false;
    assert_ne!(name(&clues, &timeline), "in doubt at the gate");
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
fn key_of_each_inner_try_is_a_key_that_changes() {
    let call = |key: &str| says_with(true, "POST /charges", &[key]);
    let fails = event(What::Fails {
        how: "hangs up".to_owned(),
    });
    let timeline = |then: &str| {
        let (first, then) = (call("idempotency-key: a1-1"), call(then));
        let (sent, answered) = (sent("a1", 1), answered("a1", 1, 200));
        vec![sent, first, fails.clone(), then, answered]
    };
    let named = |then| {
        let timeline = timeline(then);
        named_by(
            &Clues::default(),
            Fault::DependencyFails,
            EffectTwice,
            &timeline,
        )
    };
    assert_eq!(
        named("idempotency-key: a1-2"),
        "key changes between attempts"
    );
    assert_eq!(named("idempotency-key: a1-1"), UNRECOGNISED);
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
