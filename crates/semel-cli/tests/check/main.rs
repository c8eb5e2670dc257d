//! Configurations, judged by `semel check` as a person would run it.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod mistakes;
mod terms;
mod flags;
mod paths;
mod limits;
mod letters;

use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const GOOD: &str = r#"upstream = "http://127.0.0.1:3000"
[[route]]
name = "orders"
path = "/orders"
"#;

/// What a command said.
trait Says {
    fn has(&self, expected: &str);
    fn lacks(&self, unexpected: &str);
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

/// Runs `semel` in a directory, with these variables and no others of its own.
fn semel(directory: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.args(args).current_dir(directory).env_clear();
    command.envs(variables.iter().copied()).output().unwrap()
}

fn check_with(toml: &str, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("semel.toml"), toml).unwrap();
    let args: Vec<_> = ["check"].iter().chain(args).copied().collect();
    semel(directory.path(), &args, variables)
}

fn check(toml: &str) -> Output {
    check_with(toml, &[], &[])
}

#[track_caller]
fn good(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The good file with one more line in its route: line 5.
fn in_route(line: &str) -> String {
    format!("{GOOD}{line}\n")
}

/// The good file with one more line on top: line 1.
fn on_top(line: &str) -> String {
    format!("{line}\n{GOOD}")
}
