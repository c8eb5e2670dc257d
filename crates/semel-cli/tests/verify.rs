//! Senders that show who they are, by their own means: the broker's tokens, and the packages of those who sign.

use crate::support::broker::{Broker, ask, clients, node};
use crate::support::counter::Counter;
use crate::support::gate::{Gate, GateFile};
use crate::support::python::{Handler, script};
use crate::support::said::Says;
use crate::support::wait_for;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use semel_rig::http::Request;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use testbed::Program;

const EMAIL: &str = "tasks@shop.iam.gserviceaccount.com";
const NEW: &str = "whsec_bmV3IHNlY3JldCBuZXcgc2VjcmV0";
const OLD: &str = "whsec_b2xkIHNlY3JldCBvbGQgc2VjcmV0";

/// No program takes longer, also on a busy machine.
const BOUND: Duration = Duration::from_secs(120);

/// What the Python programs run on.
const REQUIREMENTS: &str = include_str!("../../../clients/python/webhooks.txt");

const WEBHOOK_ROUTES: &str = r#"
[[route]]
name = "stripe"
path = "/stripe"
source = "stripe"
secrets = ["env:NEW_SECRET", "env:OLD_SECRET"]

[[route]]
name = "standard"
path = "/standard"
source = "standard-webhooks"
secrets = ["env:NEW_SECRET", "env:OLD_SECRET"]

[[route]]
name = "svix"
path = "/svix"
source = "standard-webhooks"
secrets = ["env:NEW_SECRET", "env:OLD_SECRET"]

[[route]]
name = "github"
path = "/github"
source = "github"
secrets = ["env:NEW_SECRET", "env:OLD_SECRET"]

[[route]]
name = "shopify"
path = "/shopify"
source = "shopify"
secrets = ["env:NEW_SECRET"]
"#;

/// A gate whose routes know both secrets.
fn gate(counter: &Counter) -> Gate {
    let file = GateFile::write("dir:./data", counter.port, WEBHOOK_ROUTES);
    let mut command = file.command();
    command.env("NEW_SECRET", NEW).env("OLD_SECRET", OLD);
    Gate::start_by(&mut command, file)
}

/// Runs a sender against a gate to its good end; gives what took effect, by sender and event.
fn effects_of(mut sender: Command) -> Vec<String> {
    let counter = Counter::start(Duration::ZERO);
    let gate = gate(&counter);
    sender
        .arg(format!("http://127.0.0.1:{}", gate.port))
        .env("NEW_SECRET", NEW)
        .env("OLD_SECRET", OLD);
    let mut program = Program::start(&mut sender).unwrap();
    let status = program.ended_within(BOUND).unwrap();
    assert!(status.success(), "{}\n{}", program.log(), gate.log());
    // Nothing that was refused is left, and no secret was said.
    assert_eq!(gate.ask("/letters").matches("\"id\"").count(), 0);
    gate.log().lacks(NEW);
    gate.log().lacks(OLD);
    gate.ask("/metrics").has("semel_unverified_total");
    let effects = counter.effects();
    let id = |work: &str| serde_json::from_str::<Value>(work).unwrap()["id"].clone();
    let id = |work: &str| id(work).as_str().unwrap().to_owned();
    effects.iter().map(|effect| id(&effect.work)).collect()
}

#[test]
fn events_of_stripe_and_standard_webhooks_take_effect_once() {
    let python = testbed::python_with("python-webhooks", REQUIREMENTS).unwrap();
    let mut sender = Command::new(python);
    sender
        .arg(clients().join("python/webhooks.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let wanted = ["stripe", "standard", "svix"]
        .into_iter()
        .flat_map(|name| [1, 2].map(|number| format!("evt_{name}_{number}")));
    assert_eq!(effects_of(sender), wanted.collect::<Vec<_>>());
}

#[test]
fn events_of_github_take_effect_once() {
    let effects = effects_of(node("webhooks.mjs"));
    assert_eq!(effects, ["evt_github_1", "evt_github_2"]);
}

/// Its body, and the signature that GitHub makes of it with `NEW`.
const EVENT: &str = r#"{"id":"evt_1"}"#;
const SIGNATURE: &str = "sha256=155f78ff174292f03bfd5d0db707db31028007fc6204c9e2f4b44aaed84805b6";

/// No sender signs the method: who has seen an event could send it as a DELETE.
#[test]
fn a_webhooks_route_takes_posts_alone() {
    let counter = Counter::start(Duration::ZERO);
    let gate = gate(&counter);
    let sent = |method: Method| {
        let request = Request::post("/github", EVENT)
            .method(method)
            .header("X-GitHub-Delivery", "1")
            .header("X-Hub-Signature-256", SIGNATURE);
        request.send_blocking(gate.port).unwrap().status
    };
    for method in [Method::GET, Method::PUT, Method::PATCH, Method::DELETE] {
        assert_eq!(sent(method.clone()), 405, "{method}");
    }
    assert_eq!(counter.effects().len(), 0);
    assert_eq!(sent(Method::POST), 200);
    assert_eq!(counter.effects().len(), 1);
}

/// A gate that takes the tokens of a broker for this account.
fn gate_for(broker: &Broker, counter: &Counter, email: &str, audience: &str) -> Gate {
    let issuer = format!("http://{}", broker.address());
    let routes = format!(
        "[[route]]\nname = \"all\"\npath = \"/*\"\nsource = [\"cloud-tasks\", \"pubsub\"]\nverify = \"{issuer}\"\n\
         keys_url = \"{issuer}/oauth2/v3/certs\"\naudience = \"{audience}\"\nemails = [\"{email}\"]\n"
    );
    Gate::start("dir:./data", counter.port, &routes)
}

/// The broker signs with a key that it serves itself: the gate fetches it, and trusts nobody else.
#[test]
fn the_brokers_tokens_are_verified() {
    let (broker, counter) = (Broker::in_memory(), Counter::start(Duration::ZERO));
    let audience = "https://shop.example";
    let gate = gate_for(&broker, &counter, EMAIL, audience);
    let url = format!("http://127.0.0.1:{}/charge", gate.port);
    let queue = "/v2/projects/p/locations/l/queues";
    let name = json!({"name": "projects/p/locations/l/queues/q"});
    ask(&broker, Method::POST, queue, &name);
    let task = |body: &str, token: Value| {
        let body = STANDARD.encode(body);
        let request = json!({"url": url, "body": body, "oidcToken": token});
        json!({"task": {"httpRequest": request}})
    };
    let tasks = format!("{queue}/q/tasks");
    let good = json!({"serviceAccountEmail": EMAIL, "audience": audience});
    let other = json!({"serviceAccountEmail": "mallory@shop.iam.gserviceaccount.com", "audience": audience});
    let elsewhere = json!({"serviceAccountEmail": EMAIL});
    ask(&broker, Method::POST, &tasks, &task("mallory's", other));
    ask(
        &broker,
        Method::POST,
        &tasks,
        &task("for somebody else", elsewhere),
    );
    ask(&broker, Method::POST, &tasks, &task("good", good.clone()));
    wait_for("the good task", || counter.count("good") == 1);
    let reasons = ["email", "audience"].map(|reason| format!("reason=\"{reason}\""));
    wait_for("the refusals", || {
        let metrics = gate.ask("/metrics");
        reasons.iter().all(|reason| metrics.contains(reason))
    });

    let topic = "/v1/projects/p/topics/orders";
    ask(&broker, Method::PUT, topic, &json!({}));
    let push = json!({"pushEndpoint": url, "oidcToken": good});
    let subscription = json!({"topic": "projects/p/topics/orders", "pushConfig": push});
    let path = "/v1/projects/p/subscriptions/push";
    ask(&broker, Method::PUT, path, &subscription);
    let messages = json!({"messages": [{"data": "cHVzaGVk"}]});
    ask(
        &broker,
        Method::POST,
        &format!("{topic}:publish"),
        &messages,
    );
    wait_for("the push", || {
        counter
            .effects()
            .iter()
            .any(|effect| effect.work.contains("cHVzaGVk"))
    });
    assert_eq!(counter.effects().len(), 2, "{:?}", counter.effects());
    assert_eq!(gate.ask("/letters").matches("\"id\"").count(), 0);
}

/// Keys come over TLS, from whom the machine's certificates vouch for; from nobody else.
#[test]
fn keys_are_fetched_over_tls() {
    let dir = tempfile::tempdir().unwrap();
    let args = format!("{} {}", script("tls_issuer.py"), dir.path().display());
    let issuer = Handler::start(&args, Vec::new());
    let token = std::fs::read_to_string(dir.path().join("token")).unwrap();
    let routes = format!(
        "[[route]]\nname = \"all\"\npath = \"/*\"\nsource = \"cloud-tasks\"\nverify = \"https://localhost:{0}\"\n\
         keys_url = \"https://localhost:{0}/keys\"\naudience = \"https://shop.example\"\n",
        issuer.port
    );
    let counter = Counter::start(Duration::ZERO);
    let start = |certificates: Option<&str>| {
        let file = GateFile::write("dir:./data", counter.port, &routes);
        let mut command = file.command();
        if let Some(name) = certificates {
            command.env("SSL_CERT_FILE", dir.path().join(name));
        }
        Gate::start_by(&mut command, file)
    };
    let task = Request::post("/charge", "work")
        .header("X-CloudTasks-QueueName", "q")
        .header("X-CloudTasks-TaskName", "t")
        .header("Authorization", format!("Bearer {token}"));

    let gate = start(None);
    let answer = task.send_blocking(gate.port).unwrap();
    assert_eq!((answer.status, counter.effects().len()), (503, 0));
    wait_for("a word about the keys", || {
        gate.log()
            .contains("the issuer's keys could not be fetched")
    });
    gate.log().lacks(&token);

    let gate = start(Some("ca.pem"));
    let answer = task.send_blocking(gate.port).unwrap();
    assert_eq!((answer.status, counter.effects().len()), (200, 1));
}
