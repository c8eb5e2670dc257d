use super::catalogue::KnownMistake;
use super::*;
use crate::judge::samples::{answered, counted, event, says, sent};
use Attack::{AtOnce, CrashSweep, Repeat, TwoProcesses};
use BreachKind::{EffectLost, EffectTwice, Stuck};

fn named(clues: &Clues, attack: Attack) -> &'static str {
    name(attack, clues).map_or("", |pattern| pattern.name)
}

fn one(attack: Attack, how: BreachKind, timeline: Vec<Event>) -> Clues {
    Clues {
        broken: vec![(attack, how, timeline)],
        ..Clues::default()
    }
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
    let mut clues = one(Repeat, EffectTwice, Vec::new());
    assert_eq!(named(&clues, Repeat), "no key");
    clues.writes_vary = true;
    assert_eq!(named(&clues, Repeat), "random id per attempt");
    clues.baseline = vec!["UPDATE t SET n = n + 1".to_owned()];
    assert_eq!(named(&clues, Repeat), "counter update");
}

#[test]
fn races_are_check_then_act_unless_a_lock_lapsed() {
    let mut clues = one(AtOnce, EffectTwice, Vec::new());
    assert_eq!(named(&clues, AtOnce), "check-then-act");
    clues.baseline = vec!["SET lock:a1 x PX 200 NX".to_owned()];
    assert_eq!(named(&clues, AtOnce), "unfenced lock release");
}

#[test]
fn another_process_with_another_key_is_seen_when_they_take_turns() {
    let (sent, answered) = (|n| sent("a1", n), |n| answered("a1", n, 200));
    let turns = vec![sent(1), answered(1), sent(2), answered(2)];
    let clues = one(TwoProcesses, EffectTwice, turns);
    assert_eq!(named(&clues, TwoProcesses), "key differs between processes");
    let together = vec![sent(1), sent(2), answered(1), answered(2)];
    let clues = one(TwoProcesses, EffectTwice, together);
    assert_eq!(named(&clues, TwoProcesses), "check-then-act");
}

#[test]
fn crashes_show_on_which_side_the_marker_is() {
    let crash = |again: &[&str]| {
        let mut timeline = vec![
            sent("a1", 1),
            says(true, "POST /charge"),
            event(What::Killed),
            event(What::Started),
            sent("a1", 2),
        ];
        timeline.extend(again.iter().map(|text| says(true, text)));
        timeline.push(answered("a1", 2, 200));
        timeline
    };
    let of = |how, again: &[&str]| {
        let clues = one(CrashSweep, how, crash(again));
        named(&clues, CrashSweep)
    };
    for (how, again, mistake) in [
        (
            EffectLost,
            "SELECT 1 FROM seen",
            "seen-marker before the work",
        ),
        (EffectLost, "POST /charge", "seen-marker before the work"),
        (
            EffectLost,
            "UPDATE t SET step = 3",
            "resumes at the wrong step",
        ),
        (
            EffectTwice,
            "INSERT INTO t VALUES (1)",
            "seen-marker after the work",
        ),
        (EffectTwice, "POST /charge", "call without a key"),
    ] {
        assert_eq!(of(how, &[again]), mistake);
    }
    assert_eq!(of(Stuck, &[]), "claim never taken over");
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
    let stuck = |attack, count| (attack, Stuck, vec![counted("a1", count)]);
    let mut clues = Clues {
        broken: vec![stuck(AtOnce, 1), stuck(CrashSweep, 1)],
        ..Clues::default()
    };
    let refused = "duplicate answered with an error";
    assert_eq!(named(&clues, AtOnce), refused);
    assert_eq!(named(&clues, CrashSweep), "claim never taken over");
    clues.broken.push(stuck(Repeat, 1));
    assert_eq!(named(&clues, CrashSweep), refused);
    clues.broken = vec![stuck(AtOnce, 0)];
    assert_eq!(named(&clues, AtOnce), "failure never retried");
}

#[test]
fn handler_that_never_looks_has_no_key() {
    let mut clues = one(AtOnce, EffectTwice, Vec::new());
    clues.baseline = vec!["BEGIN".to_owned(), "INSERT INTO t VALUES ($1)".to_owned()];
    assert_eq!(named(&clues, AtOnce), "no key");
    // It looks in its memory, then.
    clues.held = vec![Repeat];
    assert_eq!(named(&clues, AtOnce), "check-then-act");
    clues.held.clear();
    clues
        .baseline
        .insert(1, "SELECT 1 FROM t WHERE id = $1".to_owned());
    assert_eq!(named(&clues, AtOnce), "check-then-act");
}

#[test]
fn memory_that_a_crash_takes_away_is_told_from_a_marker() {
    let mut clues = one(CrashSweep, EffectTwice, Vec::new());
    clues.held = vec![Repeat];
    clues.baseline = vec!["INSERT INTO t VALUES ($1)".to_owned()];
    let memory = "key differs between processes";
    assert_eq!(named(&clues, CrashSweep), memory);
    clues.baseline.insert(0, "SELECT 1 FROM seen".to_owned());
    let marker = "seen-marker after the work";
    assert_eq!(named(&clues, CrashSweep), marker);
}
