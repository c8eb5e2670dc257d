//! The broker and the commands that ask it, run as a person would.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A running broker; it ends with the test.
struct BrokerProgram {
    child: Child,
    /// Host and port.
    address: String,
}

impl BrokerProgram {
    fn start(flags: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_semel"))
            .args(["broker", "--listen", "127.0.0.1:0"])
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines = lines.map(Result::unwrap);
        // It ends with this line; reading on would wait for the end of the broker.
        let said: Vec<_> = lines
            .take_while(|line| line != "# Ctrl-C ends it.")
            .collect();
        let host = "export PUBSUB_EMULATOR_HOST=";
        let address = said.iter().find_map(|line| line.strip_prefix(host));
        let address = address.unwrap().to_owned();
        Self { child, address }
    }

    fn ask(&self, words: &[&str]) -> Output {
        let url = format!("http://{}", self.address);
        let mut all = words.to_vec();
        all.extend(["--url", &url]);
        semel(&all)
    }
}

impl Drop for BrokerProgram {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn semel(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.arg("broker").args(words).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Asserts the exit code, and what is said on stderr.
fn fails(output: &Output, code: i32, says: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(said.contains(says), "{said}");
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
    let broker = BrokerProgram::start(&["--memory", "--file", &file, "--fault", "duplicate=0.5"]);
    assert!(stdout(&broker.ask(&["wait-idle", "--timeout", "5s"])).starts_with("idle after"));
    let faults = stdout(&broker.ask(&["faults"]));
    assert_eq!(faults, "cut=1:0\nduplicate=0.5\nseed 1\n");
    let more = stdout(&broker.ask(&["faults", "reorder=1", "--add"]));
    assert!(more.contains("duplicate=0.5\nreorder=1\n"), "{more}");
    let none = stdout(&broker.ask(&["faults", "--clear"]));
    assert_eq!(none, "nothing goes wrong\n");
    let clock = stdout(&broker.ask(&["advance", "7d"]));
    assert!(clock.starts_with("the broker's clock shows 20"), "{clock}");
    fails(&broker.ask(&["advance", "7x"]), 64, "is no span");
    assert_eq!(stdout(&broker.ask(&["history"])), "");
    let json = stdout(&broker.ask(&["history", "--json", "--resource", "q"]));
    assert!(json.contains("\"dispatches\":[]"), "{json}");
    stdout(&broker.ask(&["reset"]));
    assert_eq!(stdout(&broker.ask(&["faults"])), faults);
}

#[test]
fn a_token_is_asked_for() {
    let broker = BrokerProgram::start(&["--memory", "--admin-token", "s3cret"]);
    fails(&broker.ask(&["reset"]), 1, "send the broker's token");
    stdout(&broker.ask(&["reset", "--admin-token", "s3cret"]));
}

#[test]
fn mistakes_are_named_and_nothing_is_started() {
    let remote = semel(&["--listen", "0.0.0.0:0", "--memory"]);
    fails(&remote, 64, "--allow-remote");
    let open = semel(&["--listen", "0.0.0.0:0", "--memory", "--allow-remote"]);
    fails(&open, 64, "--admin-token");
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), "[[queue]]\nname = \"q\"\n");
    fails(
        &semel(&["--memory", "--file", &file]),
        64,
        "broker.toml: line 2",
    );
    fails(
        &semel(&["--memory", "--file", "nowhere.toml"]),
        64,
        "nowhere.toml",
    );
    fails(&semel(&["--fault", "explode=1"]), 64, "explode");
    fails(
        &semel(&["reset", "--url", "http://127.0.0.1:1"]),
        69,
        "there is no broker",
    );
}

#[test]
fn a_directory_belongs_to_one_broker_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept");
    let kept = kept.to_str().unwrap();
    let first = BrokerProgram::start(&["--dir", kept]);
    let second = semel(&["--listen", "127.0.0.1:0", "--dir", kept]);
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    drop(first);
    drop(BrokerProgram::start(&["--dir", kept]));
}

#[test]
fn snippets_name_the_broker() {
    let python = stdout(&semel(&["snippets", "python", "--address", "127.0.0.1:9"]));
    assert!(
        python.contains("grpc.insecure_channel(\"127.0.0.1:9\")"),
        "{python}"
    );
    let all = stdout(&semel(&["snippets"]));
    for word in ["pip install", "npm install", "cargo add", "gcloud tasks"] {
        assert!(all.contains(word), "{word}");
    }
}
