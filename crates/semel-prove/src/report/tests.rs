use super::*;
use crate::judge::samples::{counted, event, says, sent};
use crate::judge::timeline::{Event, What};
use crate::judge::verdict::{BreachKind, Broken, Pattern};
use Attack::{AtOnce, CrashSweep, KillRandom, Pause, Repeat};

fn attacked(attack: Attack, verdict: Verdict) -> AttackReport {
    AttackReport {
        attack,
        verdict,
        trials: 3,
        hits: 2,
        coverage: None,
        remarks: Vec::new(),
        took: Duration::from_millis(1500),
    }
}

fn broken() -> Verdict {
    let at = |at, lane: &str, event: Event| Event {
        at: Duration::from_millis(at),
        lane: lane.into(),
        ..event
    };
    let id = "order-<1>";
    let lost = What::Answered {
        id: id.to_owned(),
        attempt: 2,
        status: 200,
        accepted: true,
        known: false,
    };
    Verdict::Broken(Box::new(Broken {
        how: BreachKind::EffectTwice,
        seen: "2 charges for one delivery".into(),
        timeline: vec![
            at(0, "sender", sent(id, 1)),
            at(3, "DATABASE_URL", says(true, "INSERT INTO charges")),
            at(9, "handler", event(What::Killed)),
            at(12, "sender", event(lost)),
            at(40, "sender", counted(id, 2)),
        ],
        pattern: Some(Pattern {
            name: "check-then-act",
            evidence: "two looked".into(),
            is: "it looks first and writes later.",
            instead: "let one statement decide.",
        }),
    }))
}

fn report(verdicts: Vec<Verdict>) -> Report {
    let attacks = [Repeat, AtOnce, CrashSweep, Pause]
        .into_iter()
        .zip(verdicts);
    Report {
        scenario: "shop & co".into(),
        promise: Promise::ExactlyOnce,
        accepted: Vec::new(),
        profile: Profile::Quick,
        seed: 7,
        attacks: attacks
            .map(|(attack, verdict)| attacked(attack, verdict))
            .collect(),
        ended_early: None,
        unprobed: vec!["table outbox (DATABASE_URL)".into()],
        unseen: vec!["mail that is sent by SMTP".into()],
        took: Duration::from_secs(6),
    }
}

fn not_run() -> Verdict {
    Verdict::NotRun {
        why: "no process to kill".into(),
    }
}

fn vacuous() -> Verdict {
    Verdict::Vacuous {
        why: "the boundary never came".into(),
    }
}

fn contains(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part}\n{said}");
    }
}

#[test]
fn only_what_was_put_to_the_test_is_held() {
    let conclusion = |verdicts| report(verdicts).conclusion();
    assert_eq!(conclusion(vec![Verdict::Held, not_run()]), Conclusion::Held);
    for open in [vec![not_run()], vec![], vec![Verdict::Held, vacuous()]] {
        assert_eq!(conclusion(open), Conclusion::CouldNotJudge);
    }
    assert_eq!(conclusion(vec![vacuous(), broken()]), Conclusion::Broken);
    assert_eq!(Conclusion::CouldNotJudge.exit_code(), 2);
}

#[test]
fn what_was_never_killed_is_held_only_if_that_is_meant() {
    // Repeat, at-once and the sweep.
    let mut report = report(vec![Verdict::Held, Verdict::Held, not_run()]);
    report.attacks[2].hits = 0;
    assert_eq!(report.conclusion(), Conclusion::CouldNotJudge);
    contains(
        &text(&report),
        &["add accept = [\"no-kill\"] to the scenario"],
    );
    report.accepted.push(Accepted::NoKill);
    assert_eq!(report.conclusion(), Conclusion::Held);
}

#[test]
fn kills_at_drawn_times_stand_for_a_sweep() {
    let mut report = report(vec![Verdict::Held, Verdict::Held, vacuous()]);
    report.attacks[2].hits = 0;
    assert_eq!(report.conclusion(), Conclusion::CouldNotJudge);
    let mut drawn = attacked(KillRandom, Verdict::Held);
    drawn.coverage = Some(Coverage {
        tried: 2,
        of: 3,
        what: "kills at drawn times hit",
    });
    report.attacks.push(drawn);
    assert_eq!(report.conclusion(), Conclusion::Held);
    contains(&text(&report), &["2 of 3 kills at drawn times hit"]);
}

#[test]
fn quick_run_says_what_it_left_out() {
    let mut report = report(vec![Verdict::Held, Verdict::Held, Verdict::Held]);
    report.attacks[2].coverage = Some(Coverage {
        tried: 4,
        of: 13,
        what: "boundaries",
    });
    let said = text(&report);
    contains(
        &said,
        &[
            "4 of 13 boundaries",
            "Only --full tries: 9 more boundaries of crash-sweep, more races",
        ],
    );
    let fails = attacked(Attack::DependencyFails, Verdict::Held);
    report.attacks.push(fails);
    contains(
        &text(&report),
        &[", dependencies that are slow, more races"],
    );
    report.profile = Profile::Full;
    assert!(!text(&report).contains("Only --full"));
}

#[test]
fn the_terminal_says_how_many_trials_were_hit() {
    let mut report = report(vec![Verdict::Held, Verdict::Held]);
    report.attacks[1].hits = 3;
    let rows = ["repeat           2 of 3 hit", "at-once          3 trials"];
    contains(&text(&report), &rows);
}

#[test]
fn the_terminal_names_the_mistake_and_how_to_repeat_it() {
    let said = text(&report(vec![Verdict::Held, broken(), not_run()]));
    let parts = [
        "held     repeat",
        "broken   at-once",
        "effect twice: 2 charges for one delivery",
        "not run  crash-sweep",
        "DATABASE_URL  is asked by handler: INSERT INTO charges",
        "Cause: check-then-act. Seen: two looked.",
        "It means: it looks first and writes later.",
        "Instead: let one statement decide.",
        "Not probed: table outbox (DATABASE_URL): written, and looked at by no [[effect]]",
        "Not seen: mail that is sent by SMTP",
        "BROKEN: 1 of 2 attacks that were run (6.0 s, --seed 7)",
    ];
    contains(&said, &parts);
}

#[test]
fn junit_counts_and_escapes() {
    let xml = junit(&report(vec![Verdict::Held, broken(), vacuous(), not_run()]));
    let suite =
        "name=\"semel prove shop &amp; co\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\"";
    contains(&xml, &[suite, "delivers order-&lt;1&gt; (attempt 1)"]);
    assert_eq!(xml.matches("<testcase").count(), 4);
}

#[test]
fn the_page_needs_nothing_else_and_draws_each_event() {
    let page = html(&report(vec![broken(), Verdict::Held]));
    assert_eq!(page.matches("class=\"time\"").count(), 5);
    // The handler stands between the sender and what it asks.
    let place = |lane: &str| page.find(&format!(">{lane}</text>")).unwrap();
    assert!(place("sender") < place("handler") && place("handler") < place("DATABASE_URL"));
    assert!(page.contains("<b>check-then-act</b>"));
    assert!(!page.contains("<script") && !page.contains("href=") && !page.contains("src="));
    assert!(!page.contains("order-<1>"));
}

#[test]
fn nothing_that_others_say_reaches_a_terminal_or_breaks_xml() {
    let mut hostile = broken();
    if let Verdict::Broken(broken) = &mut hostile {
        broken.seen = "\u{1b}[31mred \u{fffe}".into();
        broken.timeline[1] = says(true, "\u{ffff} \u{1b}]0;title\u{7}");
    }
    let report = report(vec![hostile]);
    for said in [text(&report), junit(&report), html(&report)] {
        let bad = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}');
        assert!(!said.contains(bad), "{said:?}");
        assert!(said.contains("[31mred"), "{said}");
    }
}

#[test]
fn run_that_ended_early_keeps_its_verdicts_and_is_not_held() {
    let mut early = report(vec![Verdict::Held, not_run()]);
    early.ended_early = Some("effect `rows` cannot be seen: <gone>".into());
    assert_eq!(early.conclusion(), Conclusion::CouldNotJudge);
    let said = text(&early);
    contains(&said, &["held     repeat", "Ended early: effect `rows`"]);
    let counts = "tests=\"3\" failures=\"0\" errors=\"1\" skipped=\"1\"";
    contains(&junit(&early), &[counts, "name=\"run\"", "&lt;gone&gt;"]);
    assert!(html(&early).contains("Ended early: effect"));
    early.attacks.push(attacked(Pause, broken()));
    assert_eq!(early.conclusion(), Conclusion::Broken);
}

#[test]
fn annotations_are_one_line_each_and_escaped() {
    let said = github(
        &report(vec![Verdict::Held, broken(), vacuous(), not_run()]),
        Some("a,b.toml"),
    );
    let kinds: Vec<&str> = said
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(kinds, ["::error", "::warning", "::notice", "::notice"]);
    let error = "::error file=a%2Cb.toml,title=semel prove shop & co%3A at-once broken::effect twice: 2 charges";
    contains(&said, &[error, "%0ACause: check-then-act."]);
}

#[test]
fn json_says_what_it_comes_to_and_in_which_unit() {
    let said = |verdicts| {
        let json = json(&report(verdicts));
        serde_json::from_str::<serde_json::Value>(&json).unwrap()
    };
    assert_eq!(said(vec![Verdict::Held])["conclusion"], "held");
    let said = said(vec![Verdict::Held, broken()]);
    assert_eq!(said["conclusion"], "broken");
    assert_eq!(said["took_ms"], 6_000.0);
    let broken = &said["attacks"][1];
    assert_eq!(broken["took_ms"], 1_500.0);
    assert_eq!(broken["timeline"][1]["at_ms"], 3.0);
}
