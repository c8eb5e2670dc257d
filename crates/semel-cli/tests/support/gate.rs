//! `semel gate` as a process that can be stopped, killed and started again on its port.

use semel_rig::http::Request;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use tempfile::TempDir;
use testbed::{Process, Program};

/// A gate of a test's own.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) port: u16,
    pub(crate) steps_port: u16,
    admin_port: u16,
    config: PathBuf,
    program: Program,
    dir: TempDir,
}

// === impl Gate ===

impl Gate {
    /// Starts a gate with this store and handler. `rest` is the rest of its configuration: routes, at least.
    pub(crate) fn start(store: &str, upstream: u16, rest: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [port, admin_port, steps_port] = [(); 3].map(|()| testbed::free_port().unwrap());
        let store = store.replace("dir:.", &format!("dir:{}", dir.path().display()));
        let config = dir.path().join("semel.toml");
        let text = format!(
            "listen = \"127.0.0.1:{port}\"\nadmin = \"127.0.0.1:{admin_port}\"\nsteps = \"127.0.0.1:{steps_port}\"\n\
             store = \"{store}\"\nupstream = \"http://127.0.0.1:{upstream}\"\n{rest}"
        );
        std::fs::write(&config, text).unwrap();
        let program = launch(&config, port);
        Self {
            port,
            steps_port,
            admin_port,
            config,
            program,
            dir,
        }
    }

    /// Where an operator asks.
    pub(crate) const fn admin(&self) -> u16 {
        self.admin_port
    }

    /// Ends it at once (SIGKILL).
    pub(crate) fn kill(&mut self) {
        self.program.kill().unwrap();
    }

    /// Starts it again, after its end.
    pub(crate) fn again(&mut self) {
        self.program = launch(&self.config, self.port);
    }

    /// Asks it to stop (SIGTERM), and waits for that.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.program.stop().unwrap()
    }

    pub(crate) fn process(&self) -> Process {
        self.program.process()
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
        Request::get("/readyz")
            .send_blocking(self.admin_port)
            .unwrap()
            .status
    }
}

/// Returns when the gate says it is ready.
fn launch(config: &PathBuf, port: u16) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    for name in [
        "PORT",
        "SEMEL_CONFIG",
        "SEMEL_LISTEN",
        "SEMEL_ADMIN",
        "SEMEL_STORE",
        "SEMEL_LOG",
    ] {
        command.env_remove(name);
    }
    let mut program = Program::start(command.arg("gate").arg("--config").arg(config)).unwrap();
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
