//! How runs begin and end: what fails half-way does not take back what was found.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod support;

use semel_prove::Attack::{
    self, AnswerLost, BadKey, KillRandom, Pause, Reorder, Repeat, TwoProcesses,
};
use semel_prove::BreachKind::{EffectTwice, Stuck};
use semel_prove::report::{Conclusion, Report};
use semel_prove::{Verdict, What};
use support::{
    after, assert_held, attempted, broken, how, not_run, on_postgres, options_without_servers,
    python, scenario, verdict,
};

/// The handler that counts every arrival in a SQLite file, started after something else.
fn counting(first: &str, more: &str) -> String {
    let effect =
        "sql = 'SELECT name, count(*) FROM taken GROUP BY name'\non = 'sqlite:{dir}/shop.db'";
    let deliver = "to = 'handler'\nas = 'cloud-tasks'";
    let scenario = after(first, &scenario("sqlite.py", deliver, effect, more));
    scenario.replace("[deliver]", "env = { FILE = '{dir}/shop.db' }\n[deliver]")
}

async fn proved(scenario: &str, only: &[Attack]) -> Report {
    let options = options_without_servers(only);
    attempted(scenario, &options).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn second_process_that_does_not_start_leaves_its_attacks_out_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("alone").display().to_string();
    let first = format!("exec 9>{lock}; flock -n 9 || {{ echo taken; exit 1; }}");
    let scenario = after(&first, &on_postgres("one_statement"));
    let only = [Repeat, Pause, BadKey, TwoProcesses];
    let report = support::proved(&scenario, &only).await;
    for attack in [Pause, TwoProcesses] {
        let why = not_run(&report, attack);
        let taken = why.contains("a second process") && why.ends_with("taken");
        assert!(taken, "{why}");
    }
    assert_held(&report, &[Repeat, BadKey]);
    assert_eq!(report.ended_early, None);
    assert_eq!(report.conclusion(), Conclusion::Held);
}

#[tokio::test(flavor = "multi_thread")]
async fn process_that_does_not_come_back_is_a_finding() {
    let scenario = counting("mkdir {dir}/running || exit 7", "");
    let only = [Repeat, KillRandom, Reorder];
    let report = proved(&scenario, &only).await;
    let stuck = broken(&report, KillRandom);
    assert_eq!(stuck.how, Stuck);
    assert!(stuck.seen.contains("did not come back"), "{}", stuck.seen);
    // It is one sentence, and no lease of the handler has anything to do with it.
    assert_eq!((stuck.seen.lines().count(), &stuck.pattern), (1, &None));
    let mut events = stuck.timeline.iter();
    assert!(events.any(|event| event.what == What::Killed));
    assert_eq!(how(&report, Repeat), EffectTwice);
    not_run(&report, Reorder);
}

#[tokio::test(flavor = "multi_thread")]
async fn late_failure_keeps_what_was_found() {
    // Two deliveries are watched undisturbed, one repeats, and before the next one something is wrong.
    let before = r#"
        [[before]]
        each = true
        command = "sh -c 'echo x >> {dir}/deliveries; test $(wc -l < {dir}/deliveries) -le 3'"
    "#;
    let scenario = counting("true", before);
    let only = [Repeat, AnswerLost, Reorder];
    let report = proved(&scenario, &only).await;
    assert_eq!(how(&report, Repeat), EffectTwice);
    for attack in [AnswerLost, Reorder] {
        not_run(&report, attack);
    }
    let why = report.ended_early.as_deref().unwrap();
    assert!(why.contains("`before` failed"), "{why}");
    assert_eq!(report.conclusion(), Conclusion::Broken);
}

#[tokio::test(flavor = "multi_thread")]
async fn directory_of_a_process_is_there_before_it_starts() {
    let before =
        "[[before]]\nsql = 'CREATE TABLE ready (n int)'\non = 'sqlite:{dir.handler}/first.db'";
    let scenario = counting("test -e {dir}/first.db || exit 7", before);
    let report = proved(&scenario, &[Repeat]).await;
    assert_eq!(how(&report, Repeat), EffectTwice);
}

#[tokio::test(flavor = "multi_thread")]
async fn spared_process_that_does_not_come_back_is_not_a_finding() {
    // It ends at the third delivery, the first that is attacked, and never starts again.
    let helper = r#"
        [[process]]
        name = "helper"
        spawn = """sh -c 'mkdir {dir}/on || exit 7
            PYTHON -m http.server --bind 127.0.0.1 {port} &
            until test -e {dir}/end; do sleep 0.02; done'"""
        attack = false
        [[before]]
        each = true
        command = "sh -c 'echo x >> {dir}/deliveries; test $(wc -l < {dir}/deliveries) -le 2 || touch {dir.helper}/end'"
    "#;
    let helper = helper.replace("PYTHON", &python());
    let scenario = counting("true", &helper);
    let only = [Repeat, AnswerLost, Reorder];
    let report = proved(&scenario, &only).await;
    let why = report.ended_early.as_deref().unwrap();
    assert!(why.contains("process `helper` did not start"), "{why}");
    for attack in only {
        let verdict = verdict(&report, attack);
        let stuck = matches!(verdict, Verdict::Broken(it) if it.how == Stuck);
        assert!(!stuck, "{report:#?}");
    }
}
