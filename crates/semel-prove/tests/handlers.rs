//! Real handlers, a real PostgreSQL and a real Redis: the wrong ones are convicted, the right one is acquitted, and
//! what cannot be judged is not.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod support;

use semel_prove::scenario::Scenario;
use semel_prove::{Attack, BreachKind, Error, Verdict, What, prove};
use support::{assert_held, broken, how, not_run, on_postgres, options, pattern, proved};

#[tokio::test(flavor = "multi_thread")]
async fn check_then_act_is_convicted_by_two_at_once_and_named() {
    let only = [
        Attack::Repeat,
        Attack::AtOnce,
        Attack::WhileRunning,
        Attack::BadKey,
    ];
    let report = proved(&on_postgres("check_then_act"), &only).await.unwrap();
    assert_held(&report, Attack::Repeat);
    let at_once = broken(&report, Attack::AtOnce);
    assert_eq!(at_once.how, BreachKind::EffectTwice);
    assert_eq!(pattern(&report, Attack::AtOnce), "check-then-act");
    let sent = at_once
        .timeline
        .iter()
        .filter(|event| matches!(event.what, What::Sent { .. }));
    assert_eq!(sent.count(), 2, "two are enough: {:#?}", at_once.timeline);
    assert_eq!(how(&report, Attack::WhileRunning), BreachKind::EffectTwice);
    assert_eq!(how(&report, Attack::BadKey), BreachKind::Poison);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_statement_that_decides_is_acquitted_by_every_attack() {
    let report = proved(&on_postgres("one_statement"), &[]).await.unwrap();
    assert_eq!(report.attacks.len(), 13);
    for one in &report.attacks {
        match (&one.verdict, one.attack) {
            (Verdict::NotRun { why }, Attack::OtherPayload) => {
                assert!(why.contains("other_body"), "{why}")
            }
            // A random moment may be a moment too late.
            (Verdict::Held | Verdict::Vacuous { .. }, Attack::KillRandom) => {}
            (Verdict::Held, _) => assert!(one.hits > 0, "{one:?}"),
            (other, attack) => panic!("{attack:?}: {other:#?}"),
        }
    }
    let sweep = report
        .attacks
        .iter()
        .find(|one| one.attack == Attack::CrashSweep)
        .unwrap();
    assert_eq!((sweep.trials, sweep.hits), (5, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn marker_before_the_work_is_convicted_by_the_sweep() {
    let python = testbed::python().unwrap();
    let scenario = format!(
        r#"
        promise = "exactly once"
        [[dependency]]
        env = "REDIS_URL"
        [[before]]
        command = "true"
        [[process]]
        name = "handler"
        spawn = "{} {{here}}/marker_before.py"
        [deliver]
        as = "cloudevents"
        body = '{{"order": "{{id}}"}}'
        pause_ms = 20
        [[effect]]
        name = "orders done"
        redis = "prove-done:*"
        "#,
        python.display()
    );
    let report = proved(&scenario, &[Attack::AtOnce, Attack::CrashSweep])
        .await
        .unwrap();
    assert_held(&report, Attack::AtOnce);
    assert_eq!(how(&report, Attack::CrashSweep), BreachKind::EffectLost);
    assert_eq!(
        pattern(&report, Attack::CrashSweep),
        "seen-marker before the work"
    );
    let timeline = &broken(&report, Attack::CrashSweep).timeline;
    assert!(
        timeline.iter().any(|event| event.what == What::Killed),
        "{timeline:#?}"
    );
    assert!(
        timeline.iter().any(|event| event.what == What::Started),
        "{timeline:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_that_runs_elsewhere_is_not_killed() {
    let mut options = options(&[
        Attack::Repeat,
        Attack::CrashSweep,
        Attack::Pause,
        Attack::TwoProcesses,
    ]);
    let (elsewhere, port) = support::elsewhere(&options);
    let text = on_postgres("one_statement").replace(
        "[deliver]",
        &format!("[deliver]\ntarget = 'http://127.0.0.1:{port}'"),
    );
    let mut scenario: Scenario = toml::from_str(&text).unwrap();
    scenario.processes.clear();
    options.seed = 8;
    let report = prove(&scenario, &options, |_| {}).await.unwrap();
    assert_held(&report, Attack::Repeat);
    for attack in [Attack::CrashSweep, Attack::Pause, Attack::TwoProcesses] {
        not_run(&report, attack);
    }
    assert!(elsewhere.process().is_alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_in_a_sqlite_file_are_seen_and_deliveries_may_be_commands() {
    let python = testbed::python().unwrap();
    let python = python.display();
    let scenario = format!(
        r#"
        promise = "exactly once"
        [[process]]
        name = "handler"
        spawn = "{python} {{here}}/sqlite.py"
        env = {{ FILE = "{{dir}}/shop.db" }}
        [deliver]
        as = "command"
        command = "{python} {{here}}/send.py {{port.handler}} {{id}}"
        [[effect]]
        name = "rows"
        sql = "SELECT name, count(*) FROM taken GROUP BY name"
        on = "sqlite:{{dir}}/shop.db"
        "#
    );
    let only = [
        Attack::Repeat,
        Attack::WhileRunning,
        Attack::AnswerCut,
        Attack::CrashSweep,
        Attack::TwoProcesses,
    ];
    let report = proved(&scenario, &only).await.unwrap();
    assert_eq!(how(&report, Attack::Repeat), BreachKind::EffectTwice);
    assert_eq!(how(&report, Attack::WhileRunning), BreachKind::EffectTwice);
    for attack in [Attack::AnswerCut, Attack::CrashSweep, Attack::TwoProcesses] {
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
    let report = proved(&scenario, &[Attack::Repeat, Attack::AtOnce])
        .await
        .unwrap();
    assert_held(&report, Attack::Repeat);
    assert_eq!(how(&report, Attack::AtOnce), BreachKind::EffectTwice);
}

#[tokio::test(flavor = "multi_thread")]
async fn same_seed_makes_the_same_deliveries() {
    let only = [Attack::Repeat, Attack::Reorder, Attack::BadKey];
    let seen = async || {
        let report = proved(&on_postgres("check_then_act"), &only).await.unwrap();
        let ids = |verdict: &Verdict| match verdict {
            Verdict::Broken(broken) => broken.seen.clone(),
            Verdict::Held | Verdict::Vacuous { .. } | Verdict::NotRun { .. } => "held".to_owned(),
        };
        report
            .attacks
            .iter()
            .map(|one| (one.attack, one.trials, ids(&one.verdict)))
            .collect::<Vec<_>>()
    };
    assert_eq!(seen().await, seen().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_that_never_starts_cannot_be_judged() {
    let scenario = on_postgres("no_such_handler");
    let error = proved(&scenario, &[]).await.unwrap_err();
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
    let error = proved(&scenario, &[]).await.unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("`orders taken`") && said.contains("nothing"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_that_does_nothing_cannot_be_judged() {
    let scenario =
        on_postgres("one_statement").replace("FROM taken GROUP", "FROM taken WHERE false GROUP");
    let error = proved(&scenario, &[]).await.unwrap_err();
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
    let said = proved(scenario, &[]).await.unwrap_err().to_string();
    for mistake in [
        "`gate`",
        "`SHOP_URL`",
        "`rows`: it needs exactly one",
        "{port.nobody}",
    ] {
        assert!(said.contains(mistake), "{mistake} is missing: {said}");
    }
}
