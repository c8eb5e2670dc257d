//! Configurations, judged by `semel check` as a person would run it.

mod mistakes;
mod terms;
mod long;
mod probe;
mod stateless;
mod landing;
mod flags;
mod paths;
mod limits;
mod letters;
mod verify;
mod tls;
mod page;
mod promise;

use crate::support::said::{Said, Says, command};
use std::path::Path;
use tempfile::TempDir;

const GOOD: &str = r#"upstream = "http://127.0.0.1:3000"
[[route]]
name = "orders"
path = "/orders"
"#;

/// Runs `semel` in a directory, with these variables and no others.
fn semel(directory: &Path, line: &str, variables: &[(&str, &str)]) -> Said {
    let mut command = command(line);
    let command = command.current_dir(directory);
    let output = command.envs(variables.iter().copied()).output();
    output.unwrap().into()
}

fn check_with(toml: &str, flags: &str, variables: &[(&str, &str)]) -> Said {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("semel.toml"), toml).unwrap();
    semel(directory.path(), &format!("check {flags}"), variables)
}

fn check(toml: &str) -> Said {
    check_with(toml, "", &[])
}

/// The good file with one more line in its route: line 5.
fn in_route(line: &str) -> String {
    format!("{GOOD}{line}\n")
}

/// The good file with one more line on top: line 1.
fn on_top(line: &str) -> String {
    format!("{line}\n{GOOD}")
}
