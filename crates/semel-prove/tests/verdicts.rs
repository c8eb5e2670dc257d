//! Verdicts that are easily got wrong: what comes late, what is refused, what dies, and faults that never hit.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod support;

use semel_prove::report::Report;
use semel_prove::scenario::Scenario;
use semel_prove::{Attack, BreachKind, Error, Options, Verdict, What, prove};
use support::{
    assert_held, broken, how, not_run, odd, on_postgres, options, pattern, proved, verdict,
};

const LIST: &str = "CREATE TABLE taken (name text)";
const UNIQUE: &str = "CREATE TABLE taken (name text UNIQUE)";

/// One boundary of the sweep is enough.
async fn swept(scenario: &str, mut options: Options) -> Report {
    options.crash_points_max = 2;
    let scenario: Scenario = toml::from_str(scenario).unwrap();
    prove(&scenario, &options, |_| {}).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_that_takes_effect_later_is_convicted() {
    let scenario = odd("late", LIST);
    let report = proved(&scenario, &[Attack::Repeat]).await.unwrap();
    let repeat = broken(&report, Attack::Repeat);
    assert_eq!(repeat.how, BreachKind::EffectTwice);
    let counts = repeat.timeline.iter().filter_map(|event| {
        let What::Effects { count, .. } = event.what else {
            return None;
        };
        Some(count)
    });
    assert_eq!(counts.collect::<Vec<_>>(), [1, 2], "{:#?}", repeat.timeline);
    assert_eq!(pattern(&report, Attack::Repeat), "no key");
}

#[tokio::test(flavor = "multi_thread")]
async fn effect_that_comes_later_is_not_lost() {
    let scenario = odd(
        "inbox",
        "CREATE TABLE taken (name text); CREATE TABLE inbox (name text UNIQUE)",
    );
    let only = [Attack::KillRandom, Attack::CrashSweep];
    let report = swept(&scenario, options(&only)).await;
    for attack in only {
        assert_held(&report, attack);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_that_is_refused_for_ever_is_convicted() {
    let scenario = odd("refuses", UNIQUE).replace("lease_ms = 100", "lease_ms = 10");
    let attacks = [Attack::Repeat, Attack::AtOnce];
    let report = proved(&scenario, &attacks).await.unwrap();
    for attack in attacks {
        assert_eq!(how(&report, attack), BreachKind::Stuck);
        assert_eq!(pattern(&report, attack), "duplicate answered with an error");
    }
    let seen = &broken(&report, Attack::Repeat).seen;
    assert!(seen.contains("sent 5 times"), "attempts = 5: {seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_that_ends_the_process_is_convicted() {
    let scenario = odd("dies", UNIQUE).replace("cloud-tasks", "http");
    let report = proved(&scenario, &[Attack::Repeat]).await.unwrap();
    let repeat = broken(&report, Attack::Repeat);
    assert_eq!(repeat.how, BreachKind::Died);
    let events: Vec<&What> = repeat.timeline.iter().map(|event| &event.what).collect();
    assert!(
        events.contains(&&What::Ended) && !events.contains(&&What::Killed),
        "{events:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_is_waited_for() {
    let tables = "CREATE TABLE taken (name text UNIQUE); CREATE TABLE claims (name text UNIQUE, until timestamptz)";
    let scenario = odd("leases", tables).replace("lease_ms = 100", "lease_ms = 1000");
    let report = swept(&scenario, options(&[Attack::CrashSweep])).await;
    assert_held(&report, Attack::CrashSweep);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_success_that_is_lost_is_a_hit() {
    let attacks = [Attack::AnswerLost, Attack::AnswerCut];
    let report = proved(&odd("refuses_first", LIST), &attacks).await.unwrap();
    for attack in attacks {
        assert_eq!(how(&report, attack), BreachKind::EffectTwice);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_without_a_key_is_seen_by_what_has_no_name() {
    let report = proved(&odd("unnamed", UNIQUE), &[Attack::BadKey])
        .await
        .unwrap();
    let bad = broken(&report, Attack::BadKey);
    assert_eq!(bad.how, BreachKind::EffectTwice);
    assert!(bad.seen.contains("none of them with an id"), "{}", bad.seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn client_may_leave_its_key_out() {
    let scenario = odd(
        "by_header",
        "CREATE TABLE taken (name text); CREATE TABLE keys (name text UNIQUE)",
    );
    let scenario = scenario.replace("cloud-tasks", "http");
    let report = proved(&scenario, &[Attack::Repeat, Attack::BadKey])
        .await
        .unwrap();
    assert_held(&report, Attack::Repeat);
    assert_eq!(how(&report, Attack::BadKey), BreachKind::EffectTwice);
}

#[tokio::test(flavor = "multi_thread")]
async fn sweep_that_meets_no_boundary_is_vacuous() {
    let options = options(&[Attack::CrashSweep]);
    let untapped = format!(
        "env = {{ UNTAPPED = '{}' }}\n[deliver]",
        options.environment.get("DATABASE_URL").unwrap()
    );
    let scenario = odd("falls_silent", UNIQUE).replace("[deliver]", &untapped);
    let report = swept(&scenario, options).await;
    let sweep = verdict(&report, Attack::CrashSweep);
    assert!(matches!(sweep, Verdict::Vacuous { .. }), "{sweep:#?}");
}

/// A handler that does something to Redis under its own key at each arrival.
fn keeps(words: &str) -> String {
    let python = testbed::python().unwrap();
    format!(
        r#"
        promise = "exactly once"
        [[dependency]]
        env = "REDIS_URL"
        [[process]]
        name = "handler"
        spawn = "{} {{here}}/keeps.py {words}"
        [deliver]
        as = "cloud-tasks"
        body = '{{"order": "{{id}}"}}'
        [[effect]]
        name = "orders kept"
        redis = "{}:*"
        "#,
        python.display(),
        words.split(' ').nth(1).unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_redis_keeps_is_counted() {
    for words in ["RPUSH kept-list mail", "XADD kept-stream * mail sent"] {
        let report = proved(&keeps(words), &[Attack::Repeat]).await.unwrap();
        assert_eq!(
            how(&report, Attack::Repeat),
            BreachKind::EffectTwice,
            "{words}"
        );
    }
    let error = proved(&keeps("DECR kept-below"), &[]).await.unwrap_err();
    assert!(matches!(error, Error::Probe { .. }), "{error}");
    assert!(error.to_string().contains("-1"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attacks_that_cannot_be_made_are_not_run() {
    let alone = on_postgres("one_statement")
        .replace("{entity}", "shop")
        .replace("[deliver]", "env = { HOME = \"{dir}\" }\n[deliver]");
    let attacks = [Attack::Pause, Attack::Reorder, Attack::TwoProcesses];
    let report = proved(&alone, &attacks).await.unwrap();
    assert!(not_run(&report, Attack::Pause).contains("no second process"));
    assert!(not_run(&report, Attack::Reorder).contains("{entity}"));
    assert!(not_run(&report, Attack::TwoProcesses).contains("directory"));
}

#[tokio::test(flavor = "multi_thread")]
async fn command_takes_part_only_where_it_can() {
    let python = testbed::python().unwrap();
    let python = python.display();
    let command = format!(
        "as = 'command'\nother_body = 'x'\ncommand = '{python} {{here}}/send.py {{port.handler}} {{id}}'"
    );
    let scenario = on_postgres("one_statement").replace("as = \"cloud-tasks\"", &command);
    let attacks = [
        Attack::Pause,
        Attack::OtherPayload,
        Attack::BadKey,
        Attack::TwoProcesses,
    ];
    let report = proved(&scenario, &attacks).await.unwrap();
    assert!(not_run(&report, Attack::Pause).contains("no second process"));
    for attack in [Attack::OtherPayload, Attack::BadKey] {
        assert!(not_run(&report, attack).contains("{body}"));
    }
    assert!(not_run(&report, Attack::TwoProcesses).contains("command"));
}

#[tokio::test(flavor = "multi_thread")]
async fn stand_in_is_no_second_process_of_a_handler_that_runs_elsewhere() {
    let options = options(&[Attack::TwoProcesses]);
    let (_elsewhere, port) = support::elsewhere(&options);
    let target = format!("[deliver]\ntarget = 'http://127.0.0.1:{port}'");
    let scenario = on_postgres("one_statement").replace("[deliver]", &target);
    let scenario: Scenario = toml::from_str(&scenario).unwrap();
    let report = prove(&scenario, &options, |_| {}).await.unwrap();
    assert!(not_run(&report, Attack::TwoProcesses).contains("elsewhere"));
}
