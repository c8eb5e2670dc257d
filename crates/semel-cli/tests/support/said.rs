//! What `semel` says when a person runs it, and how it ends.

use serde_json::Value;
use std::process::{Command, Output};

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What a text must and must not contain.
pub(crate) trait Says {
    fn has(&self, expected: &str);
    fn lacks(&self, unexpected: &str);
}

/// `semel` with the words of a line, and nothing in its environment.
pub(crate) fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.args(line.split_whitespace()).env_clear();
    command
}

/// Runs a line to its end.
pub(crate) fn semel(line: &str) -> Said {
    command(line).output().unwrap().into()
}

// === impl Said ===

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    /// What it printed; it must have ended well.
    #[track_caller]
    pub(crate) fn good(&self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout.clone()
    }

    /// What it said of a mistake.
    #[track_caller]
    pub(crate) fn refused(&self) -> String {
        assert_eq!(self.code, Some(64), "{self:?}");
        self.stderr.clone()
    }

    /// It must have ended so, saying this.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, stderr: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.stderr.has(stderr);
    }

    /// It must have ended well, and said nothing beside its data.
    #[track_caller]
    pub(crate) fn is_done(&self) {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

impl Says for str {
    #[track_caller]
    fn has(&self, expected: &str) {
        assert!(self.contains(expected), "no {expected:?} in:\n{self}");
    }

    #[track_caller]
    fn lacks(&self, unexpected: &str) {
        assert!(!self.contains(unexpected), "{unexpected:?} in:\n{self}");
    }
}
