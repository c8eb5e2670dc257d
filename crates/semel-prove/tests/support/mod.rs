//! What the tests of real handlers share.
#![allow(dead_code, reason = "no test needs everything")]

use semel_prove::report::{AttackReport, Report};
use semel_prove::scenario::Scenario;
use semel_prove::{Attack, BreachKind, Broken, Error, Options, Profile, Verdict, prove};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/handlers")
}

/// The Python that has every package.
pub(crate) fn python() -> String {
    testbed::python().unwrap().display().to_string()
}

/// A scenario for one of the handlers beside this file: its name and arguments, the lines of `[deliver]` and of the
/// effect, and other sections.
pub(crate) fn scenario(handler: &str, deliver: &str, effect: &str, more: &str) -> String {
    let python = python();
    format!(
        r#"
        promise = "exactly once"
        {more}
        [[process]]
        name = "handler"
        spawn = "{python} {{here}}/{handler}"
        [deliver]
        body = '{{"order": "{{id}}", "of": "{{entity}}"}}'
        pause_ms = 20
        {deliver}
        [[effect]]
        name = "orders taken"
        {effect}
        "#
    )
}

/// The same with something that is done before the handler starts.
pub(crate) fn after(first: &str, scenario: &str) -> String {
    let python = python();
    let shell = format!("spawn = \"\"\"sh -c '{first}; exec {python}");
    let scenario = scenario.replace(&format!("spawn = \"{python}"), &shell);
    scenario.replace(".py\"\n", ".py'\"\"\"\n")
}

/// The same on PostgreSQL.
pub(crate) fn on_postgres(handler: &str) -> String {
    let unique = if handler == "one_statement" {
        " PRIMARY KEY"
    } else {
        ""
    };
    let before =
        format!("[[before]]\nsql = 'CREATE TABLE IF NOT EXISTS taken (name text{unique})'");
    scenario(
        &format!("{handler}.py"),
        r#"as = "cloud-tasks"
        bad_body = '{"lamp": "{id}"}'
        attempts = 5
        lease_ms = 100"#,
        "sql = 'SELECT name, count(*) FROM taken GROUP BY name'",
        &format!("[[dependency]]\nenv = 'DATABASE_URL'\n{before}"),
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
    let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
    Options {
        seed: 7,
        // The servers may remember an earlier run.
        id_prefix: format!("p{}x", std::process::id()),
        profile: Profile::Quick,
        crash_points_max: 5,
        directory: here(),
        semel: "semel".into(),
        environment: BTreeMap::from([("PATH".to_owned(), path)]),
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

pub(crate) fn database(options: &Options) -> &str {
    options.environment.get("DATABASE_URL").unwrap()
}

/// A right handler that nobody here has started, and its port.
pub(crate) fn elsewhere(options: &Options) -> (testbed::Program, u16) {
    let port = testbed::free_port().unwrap();
    let mut command = std::process::Command::new(python());
    command
        .arg(here().join("one_statement.py"))
        .env("PORT", port.to_string())
        .env("DATABASE_URL", database(options));
    let mut elsewhere = testbed::Program::start(&mut command).unwrap();
    elsewhere
        .wait_until(|_| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
        .unwrap();
    (elsewhere, port)
}

pub(crate) async fn attempted(scenario: &str, options: &Options) -> Result<Report, Error> {
    let scenario: Scenario = toml::from_str(scenario).unwrap();
    prove(&scenario, options, |_| {}).await
}

pub(crate) async fn proved(scenario: &str, only: &[Attack]) -> Report {
    attempted(scenario, &options(only)).await.unwrap()
}

/// Why there is no verdict.
pub(crate) async fn refused(scenario: &str) -> Error {
    attempted(scenario, &options(&[])).await.unwrap_err()
}

pub(crate) fn assert_held(report: &Report, attacks: &[Attack]) {
    for attack in attacks {
        let verdict = verdict(report, *attack);
        assert!(matches!(verdict, Verdict::Held), "{attack}: {verdict:#?}");
    }
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
    &attacked(report, attack).verdict
}

pub(crate) fn attacked(report: &Report, attack: Attack) -> &AttackReport {
    let found = report.attacks.iter().find(|one| one.attack == attack);
    found.unwrap()
}

pub(crate) fn broken(report: &Report, attack: Attack) -> &Broken {
    let Verdict::Broken(broken) = verdict(report, attack) else {
        panic!("{attack} broke nothing: {:#?}", verdict(report, attack));
    };
    broken
}

pub(crate) fn pattern(report: &Report, attack: Attack) -> &'static str {
    let pattern = broken(report, attack).pattern.as_ref();
    pattern.map_or("", |pattern| pattern.name)
}
