//! `semel prove` as a command: what it prints and writes, and how it ends.

mod schema;
mod gate;
mod init;

use crate::support::said::{Said, Says};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use testbed::Process;

/// Every delivery takes effect; `once` remembers ids, in memory only.
const HANDLER: &str = r#"
import http.server, json, os, sys
counts, once = {}, sys.argv[1:] == ["once"]
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, body):
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.answer(json.dumps(counts).encode())
    def do_POST(self):
        name = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["id"]
        counts[name] = 1 if once else counts.get(name, 0) + 1
        self.answer(b"done")
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"#;

/// A directory with the handler in it.
struct HandlerDirectory {
    directory: TempDir,
}

// === impl HandlerDirectory ===

impl HandlerDirectory {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("handler.py"), HANDLER).unwrap();
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
        command.arg("prove").args(args).current_dir(self.path());
        command
    }

    fn prove(&self, args: &[&str]) -> Said {
        self.command(args).output().unwrap().into()
    }

    /// A scenario of a handler that Python runs with these arguments, with more lines.
    fn scenario(&self, args: &str, more: &str) -> String {
        let python = python();
        let text = format!(
            "promise = 'exactly once'\n[[process]]\nname = 'handler'\nspawn = '{python} {args}'\n[deliver]\nas = 'cloud-tasks'\n\
             body = '{{\"id\": \"{{id}}\"}}'\n[[effect]]\nname = 'count'\nhttp = 'http://127.0.0.1:{{port.handler}}/'\n{more}"
        );
        let path = self.path().join("scenario.toml");
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

fn python() -> String {
    testbed::python().unwrap().display().to_string()
}

#[test]
fn what_breaks_is_shown_in_every_form() {
    let place = HandlerDirectory::new();
    let file = place.scenario("handler.py", "");
    let args = [
        &*file, "--only", "repeat", "--json", "--junit", "j.xml", "--html", "h.html",
    ];
    let output = place.prove(&args);
    assert_eq!(output.code, Some(1), "{output:?}");
    let report = output.json();
    let repeat = &report["attacks"][0];
    assert_eq!(report["conclusion"], "broken");
    assert_eq!(repeat["attack"], "repeat");
    assert_eq!(repeat["verdict"], "broken");
    assert_eq!(repeat["how"], "effect-twice");
    assert_eq!(schema::complaints(&report), Vec::<String>::new());
    assert!(!repeat["timeline"].as_array().unwrap().is_empty());
    let read = |name| std::fs::read_to_string(place.path().join(name)).unwrap();
    assert!(read("j.xml").contains("failures=\"1\""));
    assert!(read("h.html").contains("<svg"));
    let said = place.prove(&[&file, "--only", "repeat"]).stdout;
    said.has("BROKEN: 1 of 1 attacks");
    said.has("Cause: no key. Seen: a plain repeat, with nothing else at work, took effect again.");
    said.has("an effect without a probe is invisible");
}

#[test]
fn what_holds_ends_well_and_may_be_described_by_flags() {
    let place = HandlerDirectory::new();
    let spawn = format!("{} handler.py once", python());
    let output = place.prove(&[
        "--spawn",
        &spawn,
        "--effect-http",
        "http://127.0.0.1:{port.handler}/",
        "--only",
        "repeat,at-once,answer-lost",
    ]);
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn handler_that_cannot_be_killed_is_held_only_if_that_is_meant() {
    let place = HandlerDirectory::new();
    let spared = |more: &str| {
        let file = place.scenario("handler.py once", "");
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.replace("[deliver]", "attack = false\n[deliver]");
        std::fs::write(&file, format!("{more}{text}")).unwrap();
        place.prove(&[&file, "--only", "repeat,kill-random", "--github"])
    };
    let open = spared("");
    assert_eq!(open.code, Some(2), "{open:?}");
    open.stdout
        .has("add accept = [\"no-kill\"] to the scenario");
    open.stdout.has("::notice file=");
    let meant = spared("accept = ['no-kill']\n");
    assert_eq!(meant.code, Some(0), "{meant:?}");
}

#[test]
fn nothing_is_held_that_was_not_judged() {
    let place = HandlerDirectory::new();
    let unknown = place.scenario("handler.py", "colour = 'red'\n");
    let output = place.prove(&[&unknown]);
    output.ends(2, "unknown field `colour`");

    let never = place.scenario("-c exit(3)", "");
    let output = place.prove(&[&never]);
    output.ends(2, "process `handler` did not start");

    let blind = place.scenario(
        "handler.py",
        "[[effect]]\nname = 'mail'\nhttp = 'http://127.0.0.1:9/'\n",
    );
    let output = place.prove(&[&blind]);
    output.ends(2, "effect `mail` cannot be seen");

    // The scenario has no bad payload, so the only attack that was asked for is not run.
    let file = place.scenario("handler.py", "");
    let output = place.prove(&[&file, "--only", "bad-key"]);
    assert_eq!(output.code, Some(2), "{output:?}");
}

#[test]
fn mistakes_in_the_arguments_are_no_verdict() {
    let place = HandlerDirectory::new();
    for args in [
        &["--colour"][..],
        &["--only", "AtOnce", "x.toml"],
        &[
            "--spawn",
            "true",
            "--effect-command",
            "true",
            "--crash-points",
            "0",
        ],
        &[],
    ] {
        let output = place.prove(args);
        assert_eq!(output.code, Some(2), "{args:?}: {output:?}");
    }
}

#[test]
fn no_file_tells_of_another_run() {
    let place = HandlerDirectory::new();
    let file = place.scenario("handler.py", "");
    let args = [&*file, "--only", "repeat", "--junit", "j.xml", "--html"];
    // Nothing is started when a report could not be written.
    let nowhere = place.prove(&[&args[..], &["no/such/directory/h.html"]].concat());
    nowhere.ends(2, "no/such/directory/h.html");
    assert!(nowhere.stdout.is_empty());

    let here = [&args[..], &["h.html"]].concat();
    assert_eq!(place.prove(&here).code, Some(1));
    place.scenario("-c exit(3)", "");
    assert_eq!(place.prove(&here).code, Some(2));
    let junit = std::fs::read_to_string(place.path().join("j.xml")).unwrap();
    junit.has("failures=\"0\" errors=\"1\"");
    junit.has("did not start");
    assert!(!place.path().join("h.html").exists());
}

#[test]
fn reader_that_has_seen_enough_changes_no_verdict() {
    let place = HandlerDirectory::new();
    let file = place.scenario("handler.py", "");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.command(&[&file, "--only", "repeat"]);
    let child = command.stdout(writer).stderr(Stdio::piped());
    let output = Said::from(child.spawn().unwrap().wait_with_output().unwrap());
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(output.stderr, "");
}

/// A run whose delivering command has started a child, and that child.
fn delivering(place: &HandlerDirectory) -> (std::process::Child, Process) {
    let text = "promise = 'exactly once'\n[deliver]\nas = 'command'\ndeadline_ms = 60000\n\
                command = \"sh -c 'sleep 600 & echo $! > id; wait'\"\n[[effect]]\nname = 'x'\ncommand = 'true'\n";
    std::fs::write(place.path().join("delivering.toml"), text).unwrap();
    let mut command = place.command(&["delivering.toml"]);
    let child = command.stderr(Stdio::null()).spawn().unwrap();
    let mut id = String::new();
    let written = testbed::until(Duration::from_secs(20), || {
        id = std::fs::read_to_string(place.path().join("id")).unwrap_or_default();
        Ok(id.ends_with('\n'))
    });
    assert!(written.unwrap(), "nothing was delivered");
    (child, Process::new(id.trim().parse().unwrap()).unwrap())
}

#[test]
fn what_was_started_ends_with_the_run_however_it_ends() {
    for stopped in [true, false] {
        let place = HandlerDirectory::new();
        let (mut run, delivered) = delivering(&place);
        let code = if stopped {
            Process::of(&run).terminate().unwrap();
            Some(2)
        } else {
            run.kill().unwrap();
            None
        };
        assert_eq!(run.wait().unwrap().code(), code);
        let gone = testbed::until(Duration::from_secs(5), || Ok(!delivered.is_alive()));
        assert!(gone.unwrap(), "a child of the delivering command lives on");
    }
}
