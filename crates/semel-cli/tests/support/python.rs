//! Handlers in Python: the repository's examples, as processes of their own.

use super::{listens, root, wait_for};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use testbed::{Process, Program};

/// A handler that can be killed and started again on its port.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) port: u16,
    args: String,
    env: Vec<(&'static str, String)>,
    program: Program,
}

/// A directory through which a handler says which point it has reached, and hears when to go on.
#[derive(Debug)]
pub(crate) struct Points {
    dir: TempDir,
}

// === impl Handler ===

impl Handler {
    /// Starts `python ARGS` and waits until it listens. `PORT` in an argument stands for its port, which it also
    /// finds in its environment. It can import the examples named by `env`'s `PYTHONPATH`.
    pub(crate) fn start(args: &str, env: Vec<(&'static str, String)>) -> Self {
        let port = testbed::free_port().unwrap();
        let args = args.replace("PORT", &port.to_string());
        let program = launch(&args, &env, port);
        Self {
            port,
            args,
            env,
            program,
        }
    }

    /// Ends it at once (SIGKILL).
    pub(crate) fn kill(&mut self) {
        self.program.kill().unwrap();
    }

    /// Starts it again, after its end.
    pub(crate) fn again(&mut self) {
        self.program = launch(&self.args, &self.env, self.port);
    }

    /// Asks it to stop (SIGTERM): a server with workers of its own ends them.
    pub(crate) fn stop(mut self) {
        self.program.stop().unwrap();
    }

    pub(crate) fn process(&self) -> Process {
        self.program.process()
    }

    pub(crate) fn log(&self) -> String {
        self.program.log()
    }
}

fn launch(args: &str, env: &[(&'static str, String)], port: u16) -> Program {
    let mut command = Command::new(testbed::python().unwrap());
    command
        .args(args.split_whitespace())
        .current_dir(root())
        .env("PORT", port.to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(env.iter().map(|(name, value)| (name, value)));
    let mut program = Program::start(&mut command).unwrap();
    program.wait_until(|_| listens(port)).unwrap();
    program
}

/// The path of an example.
pub(crate) fn example(path: &str) -> String {
    root().join("examples").join(path).display().to_string()
}

/// The path of a script of these tests.
pub(crate) fn script(name: &str) -> String {
    let support = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support");
    support.join(name).display().to_string()
}

// === impl Points ===

impl Points {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// What a handler needs in its environment.
    pub(crate) fn env(&self) -> (&'static str, String) {
        ("POINTS", self.dir.path().display().to_string())
    }

    /// Waits until a run says that it is there, and will go no further.
    pub(crate) fn wait_reached(&self, point: &str) {
        let path = self.path(point, "reached");
        wait_for(&format!("a handler at {point}"), || path.exists());
    }

    /// Lets it go on.
    pub(crate) fn go(&self, point: &str) {
        std::fs::write(self.path(point, "go"), "").unwrap();
    }

    fn path(&self, point: &str, what: &str) -> PathBuf {
        self.dir.path().join(format!("{point}.{what}"))
    }
}
