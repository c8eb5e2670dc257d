//! Mistakes by which an effect happens twice.

use super::*;
use crate::judge::pattern::statements::{adds, looks};

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
fn writes_are_recognised_also_in_a_pipeline() {
    for said in [
        "SADD seen a1",
        "PATCH /orders/1",
        "MULTI; XADD log * id a1; EXEC",
    ] {
        assert!(writes(said), "{said}");
    }
    for said in [
        "DEL lock:a1",
        "SELECT 1",
        "CREATE TABLE IF NOT EXISTS t (id text)",
    ] {
        assert!(!writes(said), "{said}");
    }
    let unless = "UPDATE t SET n = 1 WHERE NOT EXISTS (SELECT FROM seen)";
    assert!(looks(unless) && looks("SADD seen a1"));
    assert!(!looks("CREATE TABLE IF NOT EXISTS t (id text)"));
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
fn claim_that_ends_with_the_connection_is_no_race() {
    let overlap = [
        sent("a1", 1),
        unanswered("a1", 1),
        sent("a1", 2),
        answered("a1", 2, 200),
    ];
    let mut clues = repeat_held(Clues::default());
    let named = |clues: &Clues| named_by(clues, Fault::Race, EffectTwice, &overlap);
    // Whether two at once are recognised is not known.
    assert_eq!(named(&clues), UNRECOGNISED);
    clues.held.extend([AtOnce, Attack::WhileRunning]);
    assert_eq!(named(&clues), "claim dropped with the connection");
    clues.held.pop();
    clues
        .broken
        .push((Attack::WhileRunning, broken(EffectTwice, Vec::new())));
    assert_eq!(named(&clues), "check-then-act");
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
fn memory_that_a_crash_takes_away_is_told_from_a_marker() {
    let answered_first = vec![
        sent("a1", 1),
        answered("a1", 1, 200),
        event(What::Killed),
        event(What::Started),
        sent("a1", 2),
        answered("a1", 2, 200),
    ];
    let forgets = "key differs between processes";
    let clues = repeat_held(one(CrashSweep, EffectTwice, answered_first.clone()));
    assert_eq!(named(&clues, CrashSweep), forgets);
    // What a restart takes away is gone later, too.
    let late = attempts(&[&[], &[]]);
    let clues = repeat_held(one(Attack::KillAfterAnswer, EffectTwice, answered_first));
    assert_eq!(named_by(&clues, Fault::Late, EffectTwice, &late), forgets);
    // A process that lives has not forgotten anything.
    let called = attempts(&[&[says(true, "POST /mail")], &[says(true, "POST /mail")]]);
    assert_eq!(
        named_by(&clues, Fault::DependencyFails, EffectTwice, &called),
        "call without a key"
    );
    let insert = "INSERT INTO t VALUES ($1)";
    let at_work = one(CrashSweep, EffectTwice, crash(&[insert], &[insert]));
    let silent = baseline(repeat_held(at_work.clone()), &[insert]);
    assert_eq!(named(&silent, CrashSweep), UNRECOGNISED);
    let asks = baseline(repeat_held(at_work), &["SELECT 1 FROM seen", insert]);
    assert_eq!(named(&asks, CrashSweep), "seen-marker after the work");
}

#[test]
fn failure_of_the_last_answer_is_a_race_with_the_next_attempt() {
    let (look, insert) = ("SELECT 1 FROM t", "INSERT INTO t VALUES ($1)");
    let work = [look, "INSERT INTO effects VALUES ($1)", insert, "COMMIT"];
    let fails_after = |said: &[&str]| {
        let asked = |said: &[&str]| said.iter().map(|it| says(true, it)).collect::<Vec<_>>();
        let mut timeline = vec![sent("a1", 1)];
        timeline.extend(asked(said));
        timeline.push(says(false, "answer"));
        timeline.push(event(What::Fails {
            how: "hangs up".to_owned(),
        }));
        timeline.extend([answered("a1", 1, 500), sent("a1", 2)]);
        timeline.extend(asked(&work));
        timeline.push(answered("a1", 2, 200));
        let mut clues = repeat_held(baseline(one(AtOnce, EffectTwice, Vec::new()), &work));
        let fails = (Attack::DependencyFails, broken(EffectTwice, timeline));
        clues.broken.push(fails);
        named(&clues, Attack::DependencyFails)
    };
    assert_eq!(fails_after(&work), "check-then-act");
    assert_eq!(fails_after(&work[..2]), "seen-marker after the work");
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
    // Two processes at once are enough: there is no lease at all.
    let mut race = repeat_held(one(Pause, EffectTwice, timeline.clone()));
    let together = vec![sent("a1", 1), sent("a1", 2)];
    let two = (TwoProcesses, broken(EffectTwice, together));
    race.broken.push(two);
    assert_eq!(named(&race, Pause), "check-then-act");
    assert_eq!(
        named(&one(Pause, EffectTwice, timeline), Pause),
        "lease without a fence"
    );
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
