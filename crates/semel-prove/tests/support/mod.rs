//! What the tests of real handlers share.
#![allow(dead_code, reason = "no test needs everything")]

use semel_prove::report::Report;
use semel_prove::scenario::Scenario;
use semel_prove::{Attack, BreachKind, Broken, Error, Options, Profile, Verdict, prove};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/handlers")
}

/// A scenario on PostgreSQL for one of the handlers beside this file.
pub(crate) fn on_postgres(handler: &str) -> String {
    let python = testbed::python().unwrap();
    format!(
        r#"
        promise = "exactly once"
        [[dependency]]
        env = "DATABASE_URL"
        [[before]]
        sql = "CREATE TABLE IF NOT EXISTS taken (name text{})"
        [[process]]
        name = "handler"
        spawn = "{} {{here}}/{handler}.py"
        [deliver]
        as = "cloud-tasks"
        body = '{{"order": "{{id}}", "of": "{{entity}}"}}'
        bad_body = '{{"lamp": "{{id}}"}}'
        attempts = 5
        pause_ms = 20
        lease_ms = 100
        [[effect]]
        name = "orders taken"
        sql = "SELECT name, count(*) FROM taken GROUP BY name"
        "#,
        if handler == "one_statement" {
            " PRIMARY KEY"
        } else {
            ""
        },
        python.display(),
    )
}

/// The same for a way of being odd, with other tables.
pub(crate) fn odd(way: &str, tables: &str) -> String {
    on_postgres("odd")
        .replace("odd.py", &format!("odd.py {way}"))
        .replace("CREATE TABLE IF NOT EXISTS taken (name text)", tables)
}

/// For handlers that need neither PostgreSQL nor Redis.
pub(crate) fn options_without_servers(only: &[Attack]) -> Options {
    Options {
        seed: 7,
        // The servers may remember an earlier run.
        id_prefix: format!("p{}x", std::process::id()),
        profile: Profile::Quick,
        crash_points_max: 5,
        directory: here(),
        environment: BTreeMap::from([(
            "PATH".to_owned(),
            "/usr/local/bin:/usr/bin:/bin".to_owned(),
        )]),
        only: only.to_vec(),
    }
}

pub(crate) fn options(only: &[Attack]) -> Options {
    let mut options = options_without_servers(only);
    let (database, redis) = (testbed::fresh_database("prove"), testbed::redis_url());
    options.environment.extend([
        ("DATABASE_URL".to_owned(), database.unwrap()),
        ("REDIS_URL".to_owned(), redis.unwrap()),
    ]);
    options
}

/// A right handler that nobody here has started, and its port.
pub(crate) fn elsewhere(options: &Options) -> (testbed::Program, u16) {
    let port = testbed::free_port().unwrap();
    let mut command = std::process::Command::new(testbed::python().unwrap());
    command
        .arg(here().join("one_statement.py"))
        .env("PORT", port.to_string())
        .env(
            "DATABASE_URL",
            options.environment.get("DATABASE_URL").unwrap(),
        );
    let mut elsewhere = testbed::Program::start(&mut command).unwrap();
    elsewhere
        .wait_until(|_| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
        .unwrap();
    (elsewhere, port)
}

pub(crate) async fn proved(scenario: &str, only: &[Attack]) -> Result<Report, Error> {
    let scenario: Scenario = toml::from_str(scenario).unwrap();
    prove(&scenario, &options(only), |_| {}).await
}

pub(crate) fn assert_held(report: &Report, attack: Attack) {
    let verdict = verdict(report, attack);
    assert!(matches!(verdict, Verdict::Held), "{attack}: {verdict:#?}");
}

/// In which way an attack broke the promise.
pub(crate) fn how(report: &Report, attack: Attack) -> BreachKind {
    broken(report, attack).how
}

/// Why an attack was not run.
pub(crate) fn not_run(report: &Report, attack: Attack) -> &str {
    let Verdict::NotRun { why } = verdict(report, attack) else {
        panic!("{attack} was run: {:#?}", verdict(report, attack));
    };
    why
}

pub(crate) fn verdict(report: &Report, attack: Attack) -> &Verdict {
    let found = report.attacks.iter().find(|one| one.attack == attack);
    &found.unwrap().verdict
}

pub(crate) fn broken(report: &Report, attack: Attack) -> &Broken {
    let Verdict::Broken(broken) = verdict(report, attack) else {
        panic!("{attack} broke nothing: {:#?}", verdict(report, attack));
    };
    broken
}

pub(crate) fn pattern(report: &Report, attack: Attack) -> &'static str {
    broken(report, attack)
        .pattern
        .as_ref()
        .map_or("", |pattern| pattern.name)
}
