//! Verdicts that are easily got wrong: what comes late, what is refused, what dies, and faults that never hit.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod support;
#[path = "verdicts/probes.rs"]
mod probes;

use semel_prove::Attack::{
    AnswerCut, AnswerLost, AtOnce, BadKey, CrashSweep, KillRandom, OtherPayload, Pause, Reorder,
    Repeat, TwoProcesses,
};
use semel_prove::BreachKind::{Died, EffectTwice, Stuck};
use semel_prove::report::Report;
use semel_prove::{Error, Options, Verdict, What};
use support::{
    assert_held, attempted, broken, how, not_run, odd, on_postgres, options, pattern, proved,
    python, refused, scenario, verdict,
};

const LIST: &str = "CREATE TABLE taken (name text)";
const UNIQUE: &str = "CREATE TABLE taken (name text UNIQUE)";

/// One boundary of the sweep is enough.
async fn swept(scenario: &str, mut options: Options) -> Report {
    options.crash_points_max = 2;
    attempted(scenario, &options).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_that_takes_effect_later_is_convicted() {
    let scenario = odd("late", LIST);
    let report = proved(&scenario, &[Repeat]).await;
    let repeat = broken(&report, Repeat);
    assert_eq!(repeat.how, EffectTwice);
    let counts = repeat.timeline.iter().filter_map(|event| {
        let What::Effects { count, .. } = event.what else {
            return None;
        };
        Some(count)
    });
    assert_eq!(counts.collect::<Vec<_>>(), [1, 2], "{:#?}", repeat.timeline);
    assert_eq!(pattern(&report, Repeat), "no key");
}

#[tokio::test(flavor = "multi_thread")]
async fn effect_that_comes_later_is_not_lost() {
    let scenario = odd(
        "inbox",
        "CREATE TABLE taken (name text); CREATE TABLE inbox (name text UNIQUE)",
    );
    let only = [KillRandom, CrashSweep];
    let report = swept(&scenario, options(&only)).await;
    assert_held(&report, &only);
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_that_is_refused_for_ever_is_convicted() {
    let scenario = odd("refuses", UNIQUE).replace("lease_ms = 100", "lease_ms = 10");
    let attacks = [Repeat, AtOnce];
    let report = proved(&scenario, &attacks).await;
    for attack in attacks {
        assert_eq!(how(&report, attack), Stuck);
        assert_eq!(pattern(&report, attack), "duplicate answered with an error");
    }
    let seen = &broken(&report, Repeat).seen;
    assert!(seen.contains("sent 5 times"), "attempts = 5: {seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_that_ends_the_process_is_convicted() {
    let scenario = odd("dies", UNIQUE).replace("cloud-tasks", "http");
    let report = proved(&scenario, &[Repeat]).await;
    let repeat = broken(&report, Repeat);
    assert_eq!(repeat.how, Died);
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
    let report = swept(&scenario, options(&[CrashSweep])).await;
    assert_held(&report, &[CrashSweep]);
}

#[tokio::test(flavor = "multi_thread")]
async fn timeline_shows_as_few_at_once_as_break() {
    let report = proved(&odd("crowd", LIST), &[AtOnce]).await;
    let timeline = &broken(&report, AtOnce).timeline;
    let sent = timeline
        .iter()
        .filter(|it| matches!(it.what, What::Sent { .. }));
    assert_eq!(sent.count(), 5, "{timeline:#?}");
    let names = |it: &What| matches!(it, What::Wire { process, values, .. } if process == "handler" && !values.is_empty());
    assert!(timeline.iter().any(|it| names(&it.what)), "{timeline:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_success_that_is_lost_is_a_hit() {
    let attacks = [AnswerLost, AnswerCut];
    let report = proved(&odd("refuses_first", LIST), &attacks).await;
    for attack in attacks {
        assert_eq!(how(&report, attack), EffectTwice);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_without_a_key_is_seen_by_what_has_no_name() {
    let report = proved(&odd("unnamed", UNIQUE), &[BadKey]).await;
    let bad = broken(&report, BadKey);
    assert_eq!(bad.how, EffectTwice);
    assert!(bad.seen.contains("none of them with an id"), "{}", bad.seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn client_may_leave_its_key_out() {
    let scenario = odd(
        "by_header",
        "CREATE TABLE taken (name text); CREATE TABLE keys (name text UNIQUE)",
    );
    let scenario = scenario.replace("cloud-tasks", "http");
    let report = proved(&scenario, &[Repeat, BadKey]).await;
    assert_held(&report, &[Repeat]);
    assert_eq!(how(&report, BadKey), EffectTwice);
}

#[tokio::test(flavor = "multi_thread")]
async fn sweep_that_meets_no_boundary_is_vacuous() {
    let options = options(&[CrashSweep]);
    let database = support::database(&options);
    let unproxied = format!("env = {{ UNPROXIED = '{database}' }}\n[deliver]");
    let scenario = odd("falls_silent", UNIQUE).replace("[deliver]", &unproxied);
    let report = swept(&scenario, options).await;
    let sweep = verdict(&report, CrashSweep);
    assert!(matches!(sweep, Verdict::Vacuous { .. }), "{sweep:#?}");
}

/// A handler that does something to Redis under its own key at each arrival.
fn keeps(words: &str) -> String {
    let key = words.split(' ').nth(1).unwrap();
    scenario(
        &format!("keeps.py {words}"),
        "as = 'cloud-tasks'",
        &format!("redis = '{key}:*'"),
        "[[dependency]]\nenv = 'REDIS_URL'",
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_redis_keeps_is_counted() {
    for words in ["RPUSH kept-list mail", "XADD kept-stream * mail sent"] {
        let report = proved(&keeps(words), &[Repeat]).await;
        assert_eq!(how(&report, Repeat), EffectTwice, "{words}");
    }
    let error = refused(&keeps("DECR kept-below")).await;
    assert!(matches!(error, Error::Probe { .. }), "{error}");
    assert!(error.to_string().contains("-1"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attacks_that_cannot_be_made_are_not_run() {
    let alone = on_postgres("one_statement")
        .replace("{entity}", "shop")
        .replace("[deliver]", "env = { HOME = \"{dir}\" }\n[deliver]");
    let attacks = [Pause, Reorder, TwoProcesses];
    let report = proved(&alone, &attacks).await;
    assert!(not_run(&report, Pause).contains("no second process"));
    assert!(not_run(&report, Reorder).contains("{entity}"));
    assert!(not_run(&report, TwoProcesses).contains("directory"));
}

#[tokio::test(flavor = "multi_thread")]
async fn command_takes_part_only_where_it_can() {
    let send = "{here}/send.py {port.handler} {id}";
    let command = format!(
        "as = 'command'\nother_body = 'x'\ncommand = '{} {send}'",
        python()
    );
    let scenario = on_postgres("one_statement").replace("as = \"cloud-tasks\"", &command);
    let attacks = [Pause, OtherPayload, BadKey, TwoProcesses];
    let report = proved(&scenario, &attacks).await;
    assert!(not_run(&report, Pause).contains("no second process"));
    for attack in [OtherPayload, BadKey] {
        assert!(not_run(&report, attack).contains("{body}"));
    }
    assert!(not_run(&report, TwoProcesses).contains("command"));
}

#[tokio::test(flavor = "multi_thread")]
async fn stand_in_is_not_a_second_process_of_a_handler_that_runs_elsewhere() {
    let options = options(&[TwoProcesses]);
    let (_elsewhere, port) = support::elsewhere(&options);
    let target = format!("[deliver]\ntarget = 'http://127.0.0.1:{port}'");
    let scenario = on_postgres("one_statement").replace("[deliver]", &target);
    let report = attempted(&scenario, &options).await.unwrap();
    assert!(not_run(&report, TwoProcesses).contains("elsewhere"));
}
