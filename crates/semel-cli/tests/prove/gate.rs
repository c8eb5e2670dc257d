//! `[gate]`: the user's own configuration before the handler.

use super::{HandlerDirectory, python};
use crate::support::said::{Said, Says};
use serde_json::Value;

/// Keeps every order that reaches it; `once` keeps each only once.
const HANDLER: &str = r#"
import http.server, json, os, sys
import psycopg
INSERT = "INSERT INTO orders VALUES (%s)" + (" ON CONFLICT DO NOTHING" if sys.argv[1:] == ["once"] else "")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["id"]
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
            db.execute(INSERT, (order,))
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"#;

/// As a user has it: leases of half a minute, and addresses of another machine.
const CONFIG: &str = r#"
listen = "0.0.0.0:8080"
store = "postgres://db.example/shop"
upstream = "http://shop.example:3000"

[[route]]
name = "orders"
path = "/"
source = "cloud-tasks"
key = "/id"
wait = "2s"
"#;

fn prove(argument: &str, table: &str, only: &str) -> Said {
    let place = HandlerDirectory::new();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("order.py", HANDLER);
    write("semel.toml", CONFIG);
    let python = python();
    write(
        "scenario.toml",
        &format!(
            r#"
            promise = "exactly once"
            [gate]
            [[process]]
            name = "handler"
            spawn = "{python} order.py {argument}"
            [[dependency]]
            env = "DATABASE_URL"
            [[before]]
            sql = "CREATE TABLE orders (name text {table})"
            [deliver]
            as = "cloud-tasks"
            body = '{{"id": "{{id}}"}}'
            pause_ms = 100
            lease_ms = 500
            [[effect]]
            name = "orders"
            sql = "SELECT name, count(*) FROM orders GROUP BY name"
            "#
        ),
    );
    let mut command = place.command(&["scenario.toml", "--json", "--only", only]);
    let database = testbed::fresh_database("prove_gate").unwrap();
    command
        .env("DATABASE_URL", database)
        .output()
        .unwrap()
        .into()
}

#[test]
fn effect_that_the_gate_cannot_know_of_is_in_doubt() {
    let said = prove("", "", "repeat,crash-sweep");
    assert_eq!(said.code, Some(1), "{said:?}");
    let report = said.json();
    let attacks = report["attacks"].as_array().unwrap();
    assert_eq!(attacks[0]["verdict"], "held", "{report:#}");
    assert_eq!(
        attacks[1]["pattern"]["name"], "in doubt at the gate",
        "{report:#}"
    );
    let timeline = attacks[1]["timeline"].as_array().unwrap();
    let by_gate = |event: &&Value| event["process"] == "gate" && event["lane"] == "SEMEL_UPSTREAM";
    assert!(timeline.iter().any(|event| by_gate(&event)), "{report:#}");
    assert!(
        timeline.iter().any(|event| event["to"] == "gate"),
        "{report:#}"
    );
}

#[test]
fn handler_that_is_safe_to_run_again_is_acquitted_behind_the_gate() {
    let said = prove("once", "PRIMARY KEY", "repeat,at-once,crash-sweep");
    assert_eq!(said.code, Some(0), "{said:?}");
    said.stdout.lacks("SEMEL_STORE)");
}
