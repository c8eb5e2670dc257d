//! `semel gate` as a process that can be stopped, killed and started again on its port.

use super::said::command;
use semel_rig::http::{NoAnswer, Request};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use tempfile::TempDir;
use testbed::{Process, Program};

/// A gate of a test's own.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) port: u16,
    pub(crate) steps_port: u16,
    file: GateFile,
    program: Program,
}

/// The configuration of a gate, and its ports.
#[derive(Debug)]
pub(crate) struct GateFile {
    pub(crate) port: u16,
    pub(crate) steps_port: u16,
    pub(crate) admin_port: u16,
    path: PathBuf,
    _dir: TempDir,
}

/// A route of API clients for every path, with more lines to follow.
pub(crate) const API_ROUTE: &str = r#"
[[route]]
name = "all"
path = "/*"
source = "api"
caller = "shared"
"#;

// === impl GateFile ===

impl GateFile {
    /// With this store and handler. `rest` is the rest of the configuration: routes, at least.
    pub(crate) fn write(store: &str, upstream: u16, rest: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [port, admin_port, steps_port] = [(); 3].map(|()| testbed::free_port().unwrap());
        let store = store.replace("dir:.", &format!("dir:{}", dir.path().display()));
        let path = dir.path().join("semel.toml");
        let text = format!(
            "listen = \"127.0.0.1:{port}\"\nadmin = \"127.0.0.1:{admin_port}\"\nsteps = \"127.0.0.1:{steps_port}\"\n\
             store = \"{store}\"\nupstream = \"http://127.0.0.1:{upstream}\"\n{rest}"
        );
        std::fs::write(&path, text).unwrap();
        Self {
            port,
            steps_port,
            admin_port,
            path,
            _dir: dir,
        }
    }

    /// The command that starts it, with nothing in its environment.
    pub(crate) fn command(&self) -> Command {
        command(&format!("gate --config {}", self.path.display()))
    }

    /// What its admin address answers, which must be 200.
    pub(crate) fn admin(&self, request: &Request) -> String {
        let answer = request.send_blocking(self.admin_port).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    /// Whether it says that it is ready: 200 or 503.
    pub(crate) fn ready(&self) -> Result<u16, NoAnswer> {
        let answer = Request::get("/readyz").send_blocking(self.admin_port)?;
        Ok(answer.status)
    }
}

// === impl Gate ===

impl Gate {
    /// Starts a gate with this store and handler. `rest` is the rest of its configuration: routes, at least.
    pub(crate) fn start(store: &str, upstream: u16, rest: &str) -> Self {
        let file = GateFile::write(store, upstream, rest);
        Self::start_by(&mut file.command(), file)
    }

    /// Starts it by a command of one's own.
    pub(crate) fn start_by(command: &mut Command, file: GateFile) -> Self {
        Self {
            port: file.port,
            steps_port: file.steps_port,
            program: launch(command, file.port),
            file,
        }
    }

    /// What its admin address answers, which must be 200.
    pub(crate) fn ask(&self, path: &str) -> String {
        self.file.admin(&Request::get(path))
    }

    /// Where an operator asks.
    pub(crate) const fn admin(&self) -> u16 {
        self.file.admin_port
    }

    /// Ends it at once (SIGKILL).
    pub(crate) fn kill(&mut self) {
        self.program.kill().unwrap();
    }

    /// Starts it again, after its end.
    pub(crate) fn again(&mut self) {
        self.program = launch(&mut self.file.command(), self.port);
    }

    /// Asks it to stop (SIGTERM), and waits for that.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.program.stop().unwrap()
    }

    pub(crate) fn process(&self) -> Process {
        self.program.process()
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.program.id()
    }

    /// What it logged since its last start.
    pub(crate) fn log(&self) -> String {
        self.program.log()
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.program.ended().unwrap()
    }

    /// Whether it says that it is ready: 200 or 503.
    pub(crate) fn ready(&self) -> u16 {
        self.file.ready().unwrap()
    }
}

/// Returns when the gate says it is ready.
fn launch(command: &mut Command, port: u16) -> Program {
    let mut program = Program::start(command).unwrap();
    let here = format!("127.0.0.1:{port}");
    program
        .wait_until(|it| {
            let log = it.log();
            let mut lines = log.lines();
            lines.any(|line| line.contains("\"ready\"") && line.contains(&here))
        })
        .unwrap();
    program
}
