//! Real handlers, a real PostgreSQL and a real Redis: the wrong ones are convicted, the right one is acquitted, and
//! what cannot be judged is not.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod support;

use semel_prove::Attack::{
    AnswerCut, AtOnce, BadKey, CrashSweep, KillRandom, OtherPayload, Pause, Reorder, Repeat,
    TwoProcesses, WhileRunning,
};
use semel_prove::BreachKind::{EffectLost, EffectTwice, Poison};
use semel_prove::{Error, Verdict, What, prove};
use support::{
    assert_held, attacked, broken, how, not_run, on_postgres, options, pattern, proved, python,
    refused, scenario,
};

#[tokio::test(flavor = "multi_thread")]
async fn check_then_act_is_convicted_by_two_at_once_and_named() {
    let only = [Repeat, AtOnce, WhileRunning, BadKey];
    let report = proved(&on_postgres("check_then_act"), &only).await;
    assert_held(&report, &[Repeat]);
    let at_once = broken(&report, AtOnce);
    assert_eq!(at_once.how, EffectTwice);
    assert_eq!(pattern(&report, AtOnce), "check-then-act");
    let events = at_once.timeline.iter();
    let sent = events.filter(|event| matches!(event.what, What::Sent { .. }));
    assert_eq!(sent.count(), 2, "two are enough: {:#?}", at_once.timeline);
    assert_eq!(how(&report, WhileRunning), EffectTwice);
    assert_eq!(how(&report, BadKey), Poison);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_statement_that_decides_is_acquitted_by_every_attack() {
    let report = proved(&on_postgres("one_statement"), &[]).await;
    assert_eq!(report.attacks.len(), 18);
    for one in &report.attacks {
        match (&one.verdict, one.attack) {
            (Verdict::NotRun { why }, OtherPayload) => {
                assert!(why.contains("other_body"), "{why}")
            }
            // A random moment may be a moment too late.
            (Verdict::Held | Verdict::Vacuous { .. }, KillRandom) => {}
            (Verdict::Held, _) => assert!(one.hits > 0, "{one:?}"),
            (other, attack) => panic!("{attack:?}: {other:#?}"),
        }
    }
    let sweep = attacked(&report, CrashSweep);
    assert_eq!((sweep.trials, sweep.hits), (5, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn marker_before_the_work_is_convicted_by_the_sweep() {
    let scenario = scenario(
        "marker_before.py",
        "as = 'cloudevents'",
        "redis = 'prove-done:*'",
        "[[dependency]]\nenv = 'REDIS_URL'\n[[before]]\ncommand = 'true'",
    );
    let report = proved(&scenario, &[AtOnce, CrashSweep]).await;
    assert_held(&report, &[AtOnce]);
    assert_eq!(how(&report, CrashSweep), EffectLost);
    assert_eq!(pattern(&report, CrashSweep), "seen-marker before the work");
    let timeline = &broken(&report, CrashSweep).timeline;
    for what in [What::Killed, What::Started] {
        let happened = timeline.iter().any(|event| event.what == what);
        assert!(happened, "{what:?}: {timeline:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_that_runs_elsewhere_is_not_killed() {
    let mut options = options(&[Repeat, CrashSweep, Pause, TwoProcesses]);
    let (elsewhere, port) = support::elsewhere(&options);
    let target = format!("[deliver]\ntarget = 'http://127.0.0.1:{port}'");
    let text = on_postgres("one_statement").replace("[deliver]", &target);
    let mut scenario: semel_prove::scenario::Scenario = toml::from_str(&text).unwrap();
    scenario.processes.clear();
    options.seed = 8;
    let report = prove(&scenario, &options, |_| {}).await.unwrap();
    assert_held(&report, &[Repeat]);
    for attack in [CrashSweep, Pause, TwoProcesses] {
        not_run(&report, attack);
    }
    assert!(elsewhere.process().is_alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_in_a_sqlite_file_are_seen_and_deliveries_may_be_commands() {
    let send = "{here}/send.py {port.handler} {id}";
    let scenario = scenario(
        "sqlite.py",
        &format!("as = 'command'\ncommand = '{} {send}'", python()),
        "sql = 'SELECT name, count(*) FROM taken GROUP BY name'\non = 'sqlite:{dir}/shop.db'",
        "",
    );
    let scenario = scenario.replace("[deliver]", "env = { FILE = '{dir}/shop.db' }\n[deliver]");
    let only = [Repeat, WhileRunning, AnswerCut, CrashSweep, TwoProcesses];
    let report = proved(&scenario, &only).await;
    assert_eq!(how(&report, Repeat), EffectTwice);
    assert_eq!(how(&report, WhileRunning), EffectTwice);
    for attack in [AnswerCut, CrashSweep, TwoProcesses] {
        not_run(&report, attack);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_requests_are_delivered_under_new_names() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("recorded.jsonl");
    let line = r#"{"url": "http://old/orders", "headers": {"Idempotency-Key": "order-1"}, "body": "{\"order\": \"order-1\"}"}"#;
    std::fs::write(&file, line).unwrap();
    let recorded = format!("as = 'http'\nrecorded = '{}'", file.display());
    let scenario = on_postgres("check_then_act").replace("as = \"cloud-tasks\"", &recorded);
    let report = proved(&scenario, &[Repeat, AtOnce]).await;
    assert_held(&report, &[Repeat]);
    assert_eq!(how(&report, AtOnce), EffectTwice);
}

#[tokio::test(flavor = "multi_thread")]
async fn same_seed_makes_the_same_deliveries() {
    let only = [Repeat, Reorder, BadKey];
    let seen = async || {
        let report = proved(&on_postgres("check_then_act"), &only).await;
        let ids = |verdict: &Verdict| match verdict {
            // How long it took differs.
            Verdict::Broken(broken) => broken.seen.split(" within ").take(1).collect(),
            Verdict::Held | Verdict::Vacuous { .. } | Verdict::NotRun { .. } => "held".to_owned(),
        };
        let attacks = report.attacks.iter();
        let seen = attacks.map(|one| (one.attack, one.trials, ids(&one.verdict)));
        seen.collect::<Vec<_>>()
    };
    assert_eq!(seen().await, seen().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_that_never_starts_cannot_be_judged() {
    let error = refused(&on_postgres("no_such_handler")).await;
    assert!(matches!(error, Error::ProcessStart { .. }));
    let said = error.to_string();
    assert!(
        said.contains("`handler`") && said.contains("No such file"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn probe_that_fails_cannot_be_judged() {
    let scenario = on_postgres("one_statement").replace("FROM taken GROUP", "FROM nothing GROUP");
    let said = refused(&scenario).await.to_string();
    assert!(
        said.contains("`orders taken`") && said.contains("nothing"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_that_does_nothing_cannot_be_judged() {
    let scenario = on_postgres("one_statement");
    let nothing = scenario.replace("count(*) FROM", "count(*) - 1 FROM");
    let error = refused(&nothing).await;
    assert!(matches!(error, Error::Baseline(_)), "{error}");
}

#[tokio::test]
async fn scenario_with_mistakes_names_them_all() {
    let scenario = r#"
        promise = "exactly once"
        [[process]]
        name = "handler"
        spawn = "true {port.nobody}"
        [[dependency]]
        env = "SHOP_URL"
        [deliver]
        to = "gate"
        as = "http"
        [[effect]]
        name = "rows"
    "#;
    let said = refused(scenario).await.to_string();
    for mistake in [
        "`gate`",
        "`SHOP_URL`",
        "`rows`: it needs exactly one",
        "{port.nobody}",
    ] {
        assert!(said.contains(mistake), "{mistake} is missing: {said}");
    }
}
