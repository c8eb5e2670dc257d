//! `semel certify` against services that honour the contract, and against one that does not.

use crate::support::gate::{API_ROUTE, Gate};
use crate::support::said::{Said, Says};
use axum::Router;
use axum::http::StatusCode;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use testbed::{Certificates, Validity};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Barrier;

/// What ids end with that are sent many times at once.
const AT_ONCE: &str = "x4\"}";

/// A service that runs every request and says how often it has. So many of those that are sent at once meet in it.
fn naive(meet: usize) -> (u16, Runtime) {
    let runtime = Runtime::new().unwrap();
    let (runs, all) = (Arc::new(AtomicU32::new(0)), Arc::new(Barrier::new(meet)));
    let run = move |body: String| {
        let (run, all) = (runs.fetch_add(1, Ordering::SeqCst), Arc::clone(&all));
        async move {
            if body.ends_with(AT_ONCE) {
                all.wait().await;
            }
            (StatusCode::CREATED, format!("run {run}"))
        }
    };
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(run);
    runtime.spawn(async move { axum::serve(listener, router).await });
    (port, runtime)
}

fn certify(port: u16, more: &[&str]) -> Said {
    certify_at(&format!("http://127.0.0.1:{port}/charges"), more)
}

fn certify_at(url: &str, more: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.args(["certify", url]).args(more);
    command.output().unwrap().into()
}

/// Each rule with whether it is honoured.
fn rules(said: &Said) -> Vec<(String, String)> {
    let json = said.json();
    let rules = json["rules"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    rules
        .map(|rule| (text(&rule["name"]), text(&rule["honours"])))
        .collect()
}

const CALLERS: [&str; 5] = [
    "--header",
    "X-Caller: a",
    "--other-header",
    "X-Caller: b",
    "--json",
];

#[test]
fn gate_honours_every_rule() {
    let (port, _service) = naive(1);
    let route = API_ROUTE.replace("\"shared\"", "\"header:X-Caller\"");
    let gate = Gate::start("dir:./store", port, &route);
    let said = certify(gate.port, &CALLERS);
    assert_eq!(said.code, Some(0), "{said:?}");
    for (rule, honours) in rules(&said) {
        assert_eq!(honours, "yes", "{rule}: {said:?}");
    }
    let table = certify(gate.port, &CALLERS[..4]).good();
    table.has("honoured      same-answer");
    table.has("`idempotent-replayed: true`");
}

#[test]
fn gate_that_knows_no_callers_is_told() {
    let (port, _service) = naive(1);
    let gate = Gate::start("dir:./store", port, API_ROUTE);
    let said = certify(gate.port, &CALLERS);
    assert_eq!(said.code, Some(1), "{said:?}");
    let broken: Vec<_> = rules(&said)
        .into_iter()
        .filter(|(_, it)| it == "no")
        .collect();
    assert_eq!(broken, [("key-per-caller".to_owned(), "no".to_owned())]);
}

#[test]
fn service_without_keys_is_told() {
    let (port, _service) = naive(8);
    let said = certify(port, &["--json", "--at-once", "8"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let expected = [
        ("same-answer", "no"),
        ("replay-marked", "partly"),
        ("other-payload", "no"),
        ("concurrent", "no"),
        ("key-per-caller", "not-run"),
        ("key-missing", "partly"),
    ];
    let expected = expected.map(|(rule, honours)| (rule.to_owned(), honours.to_owned()));
    assert_eq!(rules(&said), expected);
}

#[test]
fn service_over_tls_is_judged_by_those_who_trust_it() {
    let ca = Certificates::new().unwrap();
    let shown = ca.issue("gate", "DNS:localhost", Validity::Now).unwrap();
    let (certificate, key) = (shown.certificate.display(), shown.key.display());
    let tls = format!("tls_certificate = \"{certificate}\"\ntls_key = \"{key}\"\n{API_ROUTE}");
    let (port, _service) = naive(1);
    let gate = Gate::start("dir:./store", port, &tls);
    let (root, at) = (ca.root(), |host: &str| {
        format!("https://{host}:{}/charges", gate.port)
    });
    let trusting = ["--ca", root.to_str().unwrap()];
    let said = certify_at(&at("localhost"), &trusting).good();
    said.has("honoured      same-answer");
    // Not under another name, and not by those who do not know the CA.
    certify_at(&at("127.0.0.1"), &trusting).ends(2, "certificate not valid for name");
    certify_at(&at("localhost"), &[]).ends(2, "invalid peer certificate");
}

#[test]
fn service_that_is_away_cannot_be_judged() {
    let port = testbed::free_port().unwrap();
    certify(port, &[]).ends(2, "cannot be reached");
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    let said: Said = command
        .args(["certify", "ftp://x"])
        .output()
        .unwrap()
        .into();
    said.ends(2, "not an http:// or https:// address");
}
