//! The broker and the commands that ask it, run as a person would.

use crate::support::broker::Broker;
use crate::support::said::{Said, Says};
use semel_rig::http::Request;
use std::path::Path;

fn semel(line: &str) -> Said {
    crate::support::said::semel(&format!("broker {line}"))
}

fn written(directory: &Path, text: &str) -> String {
    let file = directory.join("broker.toml");
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_running_broker_can_be_asked() {
    let directory = tempfile::tempdir().unwrap();
    let file = written(
        directory.path(),
        "project = \"p\"\nlocation = \"l\"\nfaults = [\"cut=1\"]\n[[queue]]\nname = \"q\"\n",
    );
    let broker = Broker::start(&["--memory", "--file", &file, "--fault", "duplicate=0.5"]);
    let idle = broker.ask("wait-idle --timeout 5s").good();
    assert!(idle.starts_with("idle after"), "{idle}");
    let faults = broker.ask("faults").good();
    assert_eq!(faults, "cut=1:0\nduplicate=0.5\nseed 1\n");
    let more = broker.ask("faults reorder=1 --add").good();
    more.has("duplicate=0.5\nreorder=1\n");
    let none = broker.ask("faults --clear").good();
    assert_eq!(none, "nothing goes wrong\n");
    let clock = broker.ask("advance 7d").good();
    assert!(clock.starts_with("the broker's clock shows 20"), "{clock}");
    broker.ask("advance 7x").ends(64, "is not a duration");
    assert_eq!(broker.ask("history").good(), "");
    let json = broker.ask("history --json --resource q").good();
    json.has("\"dispatches\":[]");
    broker.ask("reset").good();
    assert_eq!(broker.ask("faults").good(), faults);
}

#[test]
fn a_token_is_asked_for() {
    let broker = Broker::start(&["--memory", "--admin-token", "s3cret"]);
    broker.ask("reset").ends(1, "send the broker's token");
    broker.ask("reset --admin-token s3cret").good();
}

#[test]
fn acts_on_the_page_leave_a_line_in_the_log() {
    let mut broker = Broker::start(&["--memory"]);
    let address = broker.address();
    let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
    let page = Request::get("/ui/").send_blocking(port).unwrap();
    let (_, rest) = page.body.split_once(r#"name="csrf" value=""#).unwrap();
    let csrf = rest.split('"').next().unwrap();
    let act = |path: &str, form: &str| {
        let request = Request::post(path, format!("csrf={csrf}&{form}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("origin", format!("http://{address}"));
        request.send_blocking(port).unwrap().status
    };
    assert_eq!(act("/ui/", "do=topic&project=p&name=events"), 303);
    let topic = "/ui/topics/projects/p/topics/events";
    assert_eq!(
        act(topic, "do=publish&data=s3cret&attributes=a%3A+s3cret"),
        303
    );
    assert_eq!(act(topic, "do=delete"), 400);
    assert_eq!(act(topic, "do=delete&reason=not+needed"), 303);
    let log = broker.log_with("not needed");
    let lines: Vec<_> = log.lines().filter(|it| it.contains("audit")).collect();
    assert_eq!(lines.len(), 3, "{log}");
    assert!(!log.contains("s3cret"), "{log}");
    for told in [
        "delete",
        "topics/projects/p/topics/events",
        "from 127.0.0.1",
        "not needed",
        "done",
    ] {
        assert!(lines[2].contains(told), "no {told} in {lines:?}");
    }
}

#[test]
fn mistakes_are_named_and_nothing_is_started() {
    let remote = semel("--listen 0.0.0.0:0 --memory");
    remote.ends(64, "--allow-remote");
    let open = semel("--listen 0.0.0.0:0 --memory --allow-remote");
    open.ends(64, "--admin-token");
    let view = semel("--listen 127.0.0.1:0 --memory --admin-view-token v");
    view.ends(64, "--admin-view-token");
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), "[[queue]]\nname = \"q\"\n");
    semel(&format!("--memory --file {file}")).ends(64, "broker.toml: line 2");
    semel("--memory --file nowhere.toml").ends(64, "nowhere.toml");
    semel("--fault explode=1").ends(64, "explode");
    semel("reset --url http://127.0.0.1:1").ends(69, "there is no broker");
}

#[test]
fn a_directory_belongs_to_one_broker_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    let kept = kept.to_str().unwrap();
    let first = Broker::start(&["--dir", kept]);
    let second = semel(&format!("--listen 127.0.0.1:0 --dir {kept}"));
    assert_eq!(second.code, Some(1), "{second:?}");
    drop(first);
    drop(Broker::start(&["--dir", kept]));
}

#[test]
fn snippets_name_the_broker() {
    let python = semel("snippets python --address 127.0.0.1:9").good();
    python.has("grpc.insecure_channel(\"127.0.0.1:9\")");
    let all = semel("snippets").good();
    for word in ["pip install", "npm install", "cargo add", "gcloud tasks"] {
        all.has(word);
    }
}
