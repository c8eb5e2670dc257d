//! What `semel check` says of times without end.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::process::{Command, Output};
use tempfile::TempDir;

/// Lines of the top level, and of one route.
fn check(top: &str, route: &str) -> Output {
    let directory = TempDir::new().unwrap();
    let toml = format!("{top}\n[[route]]\nname = \"charge\"\npath = \"/charge\"\n{route}\n");
    std::fs::write(directory.path().join("semel.toml"), toml).unwrap();
    Command::new(env!("CARGO_BIN_EXE_semel"))
        .arg("check")
        .current_dir(directory.path())
        .env_clear()
        .output()
        .unwrap()
}

const UPSTREAM: &str = "upstream = \"http://127.0.0.1:3000\"";

#[track_caller]
fn refused(output: &Output, says: &str) {
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(says), "{said}");
}

#[test]
fn no_time_is_longer_than_a_record_is_kept() {
    for field in [
        "timeout",
        "lease",
        "deadline",
        "wait",
        "retention",
        "horizon",
        "max_backoff",
        "backoff",
    ] {
        for long in ["367d", "213503982334d", "18446744073709551615ms"] {
            let line = format!("{field} = {long:?}");
            let says = format!("`{field}`: {long:?} is too long: write 366d at the most");
            refused(&check(UPSTREAM, &line), &says);
        }
    }
    refused(
        &check(&format!("{UPSTREAM}\ngrace = \"367d\""), ""),
        "`grace`: \"367d\" is too long",
    );
    refused(
        &check(&format!("{UPSTREAM}\ncache_ms = 9223372036854775807"), ""),
        "`cache_ms` must be 31622400000 (366d) at the most",
    );
}
