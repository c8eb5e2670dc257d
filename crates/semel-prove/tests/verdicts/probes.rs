//! What probes see, what they may do, and what is seen without them.

use crate::support::{
    assert_held, attempted, how, odd, on_postgres, options, options_without_servers, proved,
    python, refused, scenario,
};
use semel_prove::Attack::{KillRandom, Repeat};
use semel_prove::BreachKind::EffectTwice;
use semel_prove::Error;
use testbed::Process;

const UNIQUE: &str = "CREATE TABLE taken (name text UNIQUE)";

#[tokio::test(flavor = "multi_thread")]
async fn probe_that_writes_is_refused() {
    let query = "'SELECT name, count(*) FROM taken GROUP BY name'";
    let write = "\"INSERT INTO taken VALUES ('x') RETURNING name, 1\"";
    let scenario = on_postgres("one_statement").replace(query, write);
    let error = refused(&scenario).await;
    assert!(matches!(error, Error::Probe { .. }), "{error}");
    assert!(
        error.to_string().contains("read-only transaction"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn probe_that_never_changes_is_blamed_itself() {
    let constant = on_postgres("one_statement").replace(
        "SELECT name, count(*) FROM taken GROUP BY name",
        "SELECT 1, 1",
    );
    let error = refused(&constant).await;
    assert!(matches!(error, Error::Probe { .. }), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("look at the probe first") && said.contains("INSERT INTO taken"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn handler_may_listen_on_the_newer_protocol_alone() {
    let scenario = odd("unnamed", UNIQUE).replace("[deliver]", "env = { HOST = '::1' }\n[deliver]");
    assert_held(&proved(&scenario, &[Repeat]).await, &[Repeat]);
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_that_a_handler_leaves_are_ended() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("daemons");
    let env = format!("env = {{ DAEMONS = '{}' }}\n[deliver]", file.display());
    let scenario = odd("double_fork", UNIQUE).replace("[deliver]", &env);
    proved(&scenario, &[Repeat, KillRandom]).await;
    let daemons = std::fs::read_to_string(&file).unwrap();
    let daemons: Vec<Process> = daemons
        .lines()
        .map(|id| Process::new(id.parse().unwrap()).unwrap())
        .collect();
    assert!(daemons.len() > 1, "it was not started again");
    assert!(!daemons.iter().any(Process::is_alive), "a daemon lives on");
}

/// A handler that calls a service twice for a repeat: it asks the rate, and charges under the same key.
fn charges(service: &str, more: &str) -> String {
    let process = format!(
        "[[process]]\nname = 'service'\nspawn = '{} {{here}}/calls.py service {service}'\nattack = false\n\
         [[dependency]]\nenv = 'PAY_URL'\nurl = 'http://127.0.0.1:{{port.service}}'",
        python()
    );
    let effect = format!("calls = 'PAY_URL'\n{more}");
    scenario("calls.py handler", "as = 'cloud-tasks'", &effect, &process)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_under_one_key_count_once_where_the_service_honours_it() {
    let options = options_without_servers(&[Repeat]);
    let judged = async |service: &str, more: &str| {
        attempted(&charges(service, more), &options).await.unwrap()
    };
    let honoured = judged("honours", "").await;
    assert_held(&honoured, &[Repeat]);
    let named = honoured
        .unseen
        .iter()
        .any(|it| it.contains("honours `Idempotency-Key`"));
    assert!(named, "{:?}", honoured.unseen);
    assert_eq!(how(&judged("forgets", "").await, Repeat), EffectTwice);
    assert_held(&judged("forgets", "honours_key = true").await, &[Repeat]);
    assert_eq!(
        how(&judged("honours", "honours_key = false").await, Repeat),
        EffectTwice
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_no_effect_names_are_listed() {
    let tables = "CREATE TABLE taken (name text UNIQUE); CREATE TABLE claims (name text UNIQUE, until timestamptz)";
    let report = attempted(&odd("leases", tables), &options(&[Repeat]))
        .await
        .unwrap();
    assert_eq!(report.unprobed, ["table claims (DATABASE_URL)"]);
}
