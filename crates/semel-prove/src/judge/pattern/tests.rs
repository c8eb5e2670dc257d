use super::catalogue::KnownMistake;
use super::*;
use crate::judge::samples::{answered, counted, event, says, sent};

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
    let mut clues = one(Attack::Repeat, BreachKind::EffectTwice, Vec::new());
    assert_eq!(named(&clues, Attack::Repeat), "no key");
    clues.writes_vary = true;
    assert_eq!(named(&clues, Attack::Repeat), "random id per attempt");
    clues.baseline = vec!["UPDATE t SET n = n + 1".to_owned()];
    assert_eq!(named(&clues, Attack::Repeat), "counter update");
}

#[test]
fn races_are_check_then_act_unless_a_lock_lapsed() {
    let mut clues = one(Attack::AtOnce, BreachKind::EffectTwice, Vec::new());
    assert_eq!(named(&clues, Attack::AtOnce), "check-then-act");
    clues.baseline = vec!["SET lock:a1 x PX 200 NX".to_owned()];
    assert_eq!(named(&clues, Attack::AtOnce), "unfenced lock release");
}

#[test]
fn another_process_with_another_key_is_seen_when_they_take_turns() {
    let exchanges = vec![
        sent("a1", 1),
        answered("a1", 1, 200),
        sent("a1", 2),
        answered("a1", 2, 200),
    ];
    let clues = one(Attack::TwoProcesses, BreachKind::EffectTwice, exchanges);
    assert_eq!(
        named(&clues, Attack::TwoProcesses),
        "key differs between processes"
    );
    let together = vec![
        sent("a1", 1),
        sent("a1", 2),
        answered("a1", 1, 200),
        answered("a1", 2, 200),
    ];
    let clues = one(Attack::TwoProcesses, BreachKind::EffectTwice, together);
    assert_eq!(named(&clues, Attack::TwoProcesses), "check-then-act");
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
        let clues = one(Attack::CrashSweep, how, crash(again));
        named(&clues, Attack::CrashSweep)
    };
    assert_eq!(
        of(BreachKind::EffectLost, &["SELECT 1 FROM seen"]),
        "seen-marker before the work"
    );
    assert_eq!(
        of(BreachKind::EffectLost, &["POST /charge"]),
        "seen-marker before the work"
    );
    assert_eq!(
        of(BreachKind::EffectLost, &["UPDATE t SET step = 3"]),
        "resumes at the wrong step"
    );
    assert_eq!(
        of(BreachKind::EffectTwice, &["INSERT INTO t VALUES (1)"]),
        "seen-marker after the work"
    );
    assert_eq!(
        of(BreachKind::EffectTwice, &["POST /charge"]),
        "call without a key"
    );
    assert_eq!(of(BreachKind::Stuck, &[]), "claim never taken over");
}

#[test]
fn answer_before_the_crash_is_an_early_one() {
    let timeline = vec![
        sent("a1", 1),
        answered("a1", 1, 200),
        event(What::Killed),
        event(What::Started),
    ];
    let clues = one(Attack::CrashSweep, BreachKind::EffectLost, timeline);
    assert_eq!(named(&clues, Attack::CrashSweep), "acknowledged early");
}

#[test]
fn what_held_has_no_pattern() {
    assert_eq!(name(Attack::Repeat, &Clues::default()), None);
}

#[test]
fn duplicate_that_is_refused_is_told_from_a_claim_that_stays() {
    let stuck = |attack, count| (attack, BreachKind::Stuck, vec![counted("a1", count)]);
    let mut clues = Clues {
        broken: vec![stuck(Attack::AtOnce, 1), stuck(Attack::CrashSweep, 1)],
        ..Clues::default()
    };
    let refused = "duplicate answered with an error";
    assert_eq!(named(&clues, Attack::AtOnce), refused);
    assert_eq!(named(&clues, Attack::CrashSweep), "claim never taken over");
    clues.broken.push(stuck(Attack::Repeat, 1));
    assert_eq!(named(&clues, Attack::CrashSweep), refused);
    clues.broken = vec![stuck(Attack::AtOnce, 0)];
    assert_eq!(named(&clues, Attack::AtOnce), "failure never retried");
}

#[test]
fn handler_that_never_looks_has_no_key() {
    let mut clues = one(Attack::AtOnce, BreachKind::EffectTwice, Vec::new());
    clues.baseline = vec!["BEGIN".to_owned(), "INSERT INTO t VALUES ($1)".to_owned()];
    assert_eq!(named(&clues, Attack::AtOnce), "no key");
    // It looks in its memory, then.
    clues.held = vec![Attack::Repeat];
    assert_eq!(named(&clues, Attack::AtOnce), "check-then-act");
    clues.held.clear();
    clues
        .baseline
        .insert(1, "SELECT 1 FROM t WHERE id = $1".to_owned());
    assert_eq!(named(&clues, Attack::AtOnce), "check-then-act");
}

#[test]
fn memory_that_a_crash_takes_away_is_told_from_a_marker() {
    let mut clues = one(Attack::CrashSweep, BreachKind::EffectTwice, Vec::new());
    clues.held = vec![Attack::Repeat];
    clues.baseline = vec!["INSERT INTO t VALUES ($1)".to_owned()];
    let memory = "key differs between processes";
    assert_eq!(named(&clues, Attack::CrashSweep), memory);
    clues.baseline.insert(0, "SELECT 1 FROM seen".to_owned());
    let marker = "seen-marker after the work";
    assert_eq!(named(&clues, Attack::CrashSweep), marker);
}
