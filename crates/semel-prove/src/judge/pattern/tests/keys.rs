//! Keys and ids that differ where they should not.

use super::*;

#[test]
fn other_rows_of_one_attempt_are_no_random_ids() {
    let line = |n: &str| says_with(true, "INSERT INTO lines VALUES ($1)", &[n]);
    let lines = [line("line-0001"), line("line-0002")];
    let clues = one(Repeat, EffectTwice, attempts(&[&lines, &lines]));
    assert_eq!(named(&clues, Repeat), "no key");
}

#[test]
fn ids_of_two_deliveries_are_no_random_ids() {
    let insert = |id: &str| says_with(true, "INSERT INTO t VALUES ($1)", &[id]);
    let turn = |id: &str, n| [sent(id, n), insert(id), answered(id, n, 200)];
    let (a, b) = ("order-0001", "order-0002");
    let timeline = [turn(a, 1), turn(b, 1), turn(a, 2)].concat();
    let mut clues = one(Repeat, EffectTwice, [turn(a, 1), turn(a, 2)].concat());
    assert_eq!(
        named_by(&clues, Fault::Others, EffectTwice, &timeline),
        "no key"
    );
    let other = [
        turn(a, 1),
        [sent(a, 2), insert("order-9999"), answered(a, 2, 200)],
    ]
    .concat();
    clues.broken = vec![(Repeat, broken(EffectTwice, other))];
    assert_eq!(
        named_by(&clues, Fault::Others, EffectTwice, &timeline),
        "random id per attempt"
    );
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
fn keys_of_attempts_that_overlap_are_counted() {
    let call = |key: &str| says_with(true, "POST /charges", &[key]);
    let (one, other) = ("idempotency-key: a1-1", "idempotency-key: a1-2");
    let fails = event(What::Fails {
        how: "does not answer in time".to_owned(),
    });
    // The first attempt tries again beside the second.
    let (given_up, again) = (unanswered("a1", 1), sent("a1", 2));
    let timeline = [
        sent("a1", 1),
        call(one),
        fails,
        given_up,
        again,
        call(one),
        call(other),
    ];
    let named = |said: &[&str]| {
        let clues = baseline(Clues::default(), said);
        named_by(&clues, Fault::DependencyFails, EffectTwice, &timeline)
    };
    assert_eq!(named(&["POST /charges"]), "key changes between attempts");
    // Two calls are usual.
    assert_eq!(named(&["POST /charges", "POST /charges"]), UNRECOGNISED);
}
