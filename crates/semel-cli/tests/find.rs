//! `semel find` and `semel watch`, run as somebody would who asks what became of an order.

use crate::bed::{Bed, Handler, Sender, until};
use crate::support::said::{Said, command};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use semel_gate::Server;
use serde_json::Value;
use std::sync::Arc;
use testbed::Program;
use tokio::process::Command;

/// Runs `semel` with these words beside this process, which is the gate that is asked.
async fn semel(words: &[&str]) -> Said {
    let mut command = Command::from(command(""));
    command.args(words).output().await.unwrap().into()
}

/// A gate whose work is named by its order.
async fn orders() -> Bed {
    Bed::route(by_order).await
}

fn by_order(route: &mut semel_gate::settings::Route) {
    crate::bed::keyed_by(route, "/order_id");
}

fn address(bed: &Bed) -> String {
    format!("http://{}", bed.admin)
}

async fn delivers(bed: &Bed, order: &str) {
    let payload = format!(r#"{{"order_id": "{order}"}}"#);
    bed.ask(Sender::Task.sends(&format!("task-{order}"), &payload))
        .await;
}

#[tokio::test]
async fn find_answers_in_a_sentence() {
    let bed = orders().await;
    for _ in 0..2 {
        delivers(&bed, "A-1").await;
    }
    let admin = address(&bed);
    let key = bed.key().await.to_string();
    for what in [
        &["--route", "work", "order_id=A-1"][..],
        &["A-1"],
        &["order_id=A-1"],
        &["task-A-1"],
        &[&key],
    ] {
        let said = semel(&[&["find", "--admin", &admin], what].concat())
            .await
            .good();
        let sentence = "order_id A-1 on route work was delivered twice, ran once, and took effect once with status 200.\n";
        assert!(said.starts_with(&format!("{sentence}{key}\n")), "{said}");
        assert!(said.contains("replayed"), "{said}");
    }
}

#[tokio::test]
async fn several_gates_make_one_answer() {
    let one = orders().await;
    let change = |settings: &mut semel_gate::settings::Settings| {
        settings.name = "two".into();
        by_order(&mut settings.routes[0]);
    };
    let two = Bed::on(Arc::clone(&one.store), Handler::start().await, change).await;
    for bed in [&one, &two] {
        delivers(bed, "A-1").await;
    }
    let (first, second) = (address(&one), address(&two));
    let words = [
        "find", "--json", "--admin", &first, "--admin", &second, "task-A-1",
    ];
    let found: Value = serde_json::from_str(&semel(&words).await.good()).unwrap();
    let work = &found["works"][0];
    let deliveries = work["deliveries"].as_array().unwrap().iter();
    let told: Vec<_> = deliveries.map(|it| [&it["gate"], &it["outcome"]]).collect();
    assert_eq!(told, [["gate", "ran"], ["two", "replayed"]], "{found}");
    assert_eq!((&work["delivered"], &work["ran"]), (&2.into(), &1.into()));
    // One that is away is told, and the other still answers.
    let away = semel(&[
        "find",
        "--admin",
        "http://127.0.0.1:1",
        "--admin",
        &first,
        "task-A-1",
    ])
    .await;
    assert_eq!(away.code, Some(0), "{away:?}");
    assert!(away.stderr.contains("127.0.0.1:1"), "{away:?}");
}

#[tokio::test]
async fn what_is_not_there_is_told() {
    let bed = orders().await;
    let admin = address(&bed);
    let said = semel(&["find", "--admin", &admin, "nonsense"]).await;
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("nothing is known of it"), "{said:?}");
    let said = semel(&["find", "--admin", &admin, "--route", "work", "other=1"]).await;
    assert!(said.stderr.contains("give just these"), "{said:?}");
    let said = semel(&["find", "--admin", &admin, "order_id=A-1", "line=1"]).await;
    assert!(said.stderr.contains("which route"), "{said:?}");
    assert_eq!(semel(&["find"]).await.code, Some(64));
}

#[tokio::test]
async fn a_store_is_asked_without_a_gate_through_the_configurations_rule() {
    let dir = tempfile::tempdir().unwrap();
    let (store, file) = (dir.path().join("store"), dir.path().join("semel.toml"));
    let config = "upstream = \"http://127.0.0.1:9\"\nnamespace = \"test\"\n[[route]]\nname = \"work\"\npath = \"/work\"\n\
                  source = \"cloud-tasks\"\nkey = \"/order_id\"\n";
    std::fs::write(&file, config).unwrap();
    let handler = Handler::start().await;
    let mut settings = crate::bed::settings(handler.address);
    by_order(&mut settings.routes[0]);
    let kept = EmbeddedStore::open(&store, EmbeddedSettings::default()).unwrap();
    let bound = Server::bind(settings, Arc::new(kept)).await.unwrap();
    let gate = bound.address().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(bound.serve(async { drop(stopped.await) }));
    let task = Sender::Task.sends("t1", r#"{"order_id": "A-1"}"#);
    task.send(gate).await.is(200);
    drop(stop);
    served.await.unwrap();
    let (store, file) = (
        format!("dir:{}", store.display()),
        file.display().to_string(),
    );
    let words = [
        "find",
        "--store",
        &store,
        "--config",
        &file,
        "--route",
        "work",
        "order_id=A-1",
    ];
    let said = semel(&words).await.good();
    let begin = "order_id A-1 on route work was delivered (no gate that was asked remembers when), ran once, and took effect once";
    assert!(said.starts_with(begin), "{said}");

    let unruled = ["find", "--store", &store, "--namespace", "test"];
    let named = [&unruled[..], &["--route", "work", "order_id=A-1"]].concat();
    assert_eq!(semel(&named).await.good(), said);
    let elsewhere = ["find", "--store", &store, "--namespace", "other"];
    let elsewhere = [&elsewhere[..], &["--route", "work", "order_id=A-1"]].concat();
    assert_eq!(semel(&elsewhere).await.code, Some(1));
    let nothing = [&unruled[..], &["--idempotency-key", "k"]].concat();
    let said = semel(&nothing).await;
    assert!(
        said.stderr.contains("by its route and its parts"),
        "{said:?}"
    );
}

#[tokio::test]
async fn watch_prints_a_line_for_each_delivery() {
    let bed = orders().await;
    delivers(&bed, "A-1").await;
    let words = ["watch", "--admin", &address(&bed)];
    let program = Program::start(command("").args(words)).unwrap();
    // Whether it listens yet shows in what it prints: deliveries go on until it does.
    let mut number = 0;
    while !program.log().contains("delivered 1 ×") {
        number += 1;
        delivers(&bed, &format!("B-{number}")).await;
    }
    delivers(&bed, "A-1").await;
    let line = "task A-1 · delivered 2 × · effect 1 ×\n";
    until(line, async || program.log().contains(line)).await;
}

/// Passes on connections to an address, until they are cut.
struct Wire {
    address: std::net::SocketAddr,
    cut: tokio::sync::watch::Sender<()>,
}

impl Wire {
    async fn to(address: std::net::SocketAddr) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Self {
            address: listener.local_addr().unwrap(),
            cut: tokio::sync::watch::Sender::new(()),
        };
        let cut = wire.cut.clone();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut cut = cut.subscribe();
                tokio::spawn(async move {
                    let mut far = tokio::net::TcpStream::connect(address).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        wire
    }
}

#[tokio::test]
async fn watch_counts_once_what_a_gate_tells_again() {
    let bed = orders().await;
    let wire = Wire::to(bed.admin).await;
    delivers(&bed, "A-1").await;
    let words = ["watch", "--admin", &format!("http://{}", wire.address)];
    let program = Program::start(command("").args(words)).unwrap();
    let mut number = 0;
    // Deliveries go on until it listens, each time that it begins.
    let mut listens = async |program: &Program| {
        let before = program.log().matches("task B-").count();
        while program.log().matches("task B-").count() == before {
            number += 1;
            delivers(&bed, &format!("B-{number}")).await;
        }
    };
    listens(&program).await;
    wire.cut.send_replace(());
    let ended = "trying again";
    until(ended, async || program.log().contains(ended)).await;
    listens(&program).await;
    delivers(&bed, "A-1").await;
    let line = "task A-1 · delivered 2 × · effect 1 ×\n";
    until("A-1", async || program.log().contains("task A-1")).await;
    assert!(program.log().contains(line), "{}", program.log());
}

/// A gate of its own process, which can be ended and started again on its ports.
fn gate(dir: &std::path::Path, handler: std::net::SocketAddr, [port, admin]: [u16; 2]) -> Program {
    let file = dir.join("semel.toml");
    let config = format!(
        "listen = \"127.0.0.1:{port}\"\nadmin = \"127.0.0.1:{admin}\"\nstore = \"dir:{}\"\nupstream = \"http://{handler}\"\n\
         [[route]]\nname = \"work\"\npath = \"/work\"\nsource = \"cloud-tasks\"\nkey = \"/order_id\"\n",
        dir.join("store").display()
    );
    std::fs::write(&file, config).unwrap();
    Program::start(command("gate --config").arg(file)).unwrap()
}

#[tokio::test]
async fn watch_connects_again_when_a_gate_was_away() {
    let (dir, handler) = (tempfile::tempdir().unwrap(), Handler::start().await);
    let ports = [(); 2].map(|()| testbed::free_port().unwrap());
    let at = |port: u16| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let (listen, admin) = (at(ports[0]), format!("http://{}", at(ports[1])));
    let ready = async || tokio::net::TcpStream::connect(listen).await.is_ok();
    let deliver = async |order: &str| {
        let payload = format!("{{\"order_id\": \"{order}\"}}");
        let answer = Sender::Task.sends(order, &payload).send(listen).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    let watch = Program::start(command("").args(["watch", "--json", "--admin", &admin])).unwrap();
    let first = gate(dir.path(), handler.address, ports);
    until("the gate is there", ready).await;
    let heard = async |order: &str| {
        until(order, async || {
            deliver(order).await;
            watch.log().lines().any(|line| {
                let told: Value = serde_json::from_str(line).unwrap_or_default();
                told["id"] == order
            })
        })
        .await;
    };
    heard("A-1").await;
    drop(first);
    let _second = gate(dir.path(), handler.address, ports);
    until("the gate is there again", ready).await;
    heard("A-2").await;
}
