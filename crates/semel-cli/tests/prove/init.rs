//! `semel prove init`: a first scenario, from a document and from one delivery that is watched.

use super::{HandlerDirectory, python};
use crate::support::said::{Said, Says};

/// Tells its document, and keeps each order once.
const HANDLER: &str = r#"
import http.server, json, os
import psycopg
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
            db.execute("CREATE TABLE IF NOT EXISTS orders (cents int, order_id text PRIMARY KEY)")
            db.execute("INSERT INTO orders (cents, order_id) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                       (order["cents"], order["order_id"]))
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"#;

const DOCUMENT: &str = r#"{"openapi": "3.1.0", "paths": {"/orders": {"post": {"requestBody": {"content": {
    "application/json": {"schema": {"type": "object", "properties": {
        "order_id": {"type": "string"}, "cents": {"type": "integer"}}}}}}}}}}"#;

fn place() -> HandlerDirectory {
    let place = HandlerDirectory::new();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("orders.py", HANDLER);
    write("openapi.json", DOCUMENT);
    place
}

#[test]
fn scenario_is_written_with_a_probe_that_works() {
    let (place, spawn) = (place(), format!("{} orders.py", python()));
    let database = testbed::fresh_database("prove_init").unwrap();
    let run = |args: &[&str]| -> Said {
        let mut command = place.command(args);
        command
            .env("DATABASE_URL", &database)
            .output()
            .unwrap()
            .into()
    };
    let args = [
        "init",
        "--openapi",
        "openapi.json",
        "--spawn",
        &spawn,
        "--dependency",
        "DATABASE_URL",
    ];
    run(&args)
        .good()
        .has("prove.toml written: look at the 3 lines marked CONFIRM");
    let text = std::fs::read_to_string(place.path().join("prove.toml")).unwrap();
    text.has("path = \"/orders\"");
    text.has("sql = \"SELECT order_id, count(*) FROM orders GROUP BY order_id\"");
    text.has("# CONFIRM: seen while one delivery was handled: INSERT INTO orders");
    // It is there, so it is left alone.
    run(&args).ends(2, "prove.toml was not written");
    let judged = run(&["prove.toml", "--only", "repeat"]);
    assert_eq!(judged.code, Some(0), "{judged:?}");
}

#[test]
fn document_may_be_yaml() {
    let place = place();
    let yaml = "
openapi: 3.1.0
paths:
  /orders/{order}/pay:
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Payment'}}}}
components: {schemas: {Payment: {type: object, properties: {payment_id: {type: string}}}}}
";
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("openapi.yaml", yaml);
    let init = |document: &str| {
        let target = "http://127.0.0.1:9";
        place.prove(&["init", "y.toml", "--openapi", document, "--target", target])
    };
    init("openapi.yaml").good().has("y.toml written");
    let text = std::fs::read_to_string(place.path().join("y.toml")).unwrap();
    text.has("path = \"/orders/{id}/pay\"\nmethod = \"PUT\"");
    text.has("{\"payment_id\":\"{id}\"}");
    write("broken.yaml", "paths: [1");
    init("broken.yaml").ends(2, "broken.yaml is neither JSON nor YAML");
    write("page.html", "not found");
    init("page.html").ends(2, "is it an OpenAPI document?");
}

#[test]
fn scenario_from_what_was_recorded_asks_for_its_probe() {
    let place = place();
    let line = r#"{"url": "/orders", "headers": {"X-CloudTasks-TaskName": "a"}, "body": "{}"}"#;
    std::fs::write(place.path().join("one.jsonl"), line).unwrap();
    let args = [
        "init",
        "s.toml",
        "--recorded",
        "one.jsonl",
        "--target",
        "http://127.0.0.1:9",
    ];
    place.prove(&args).good().has("1 lines marked CONFIRM");
    let text = std::fs::read_to_string(place.path().join("s.toml")).unwrap();
    text.has("as = \"cloud-tasks\"\nrecorded = \"one.jsonl\"");
    place.prove(&["init"]).ends(2, "--openapi");
}
