//! What `semel check` says of times without end, of a gate that is its own handler, of bodies that are
//! large for their room, and of headers that name nobody.
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
fn good(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

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

#[test]
fn a_gate_is_not_its_own_handler() {
    let top = |listen: &str, upstream: &str| {
        format!("listen = \"{listen}\"\nupstream = \"http://{upstream}\"")
    };
    for (listen, upstream) in [
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("127.0.0.1:8080", "localhost:8080"),
        ("127.0.0.1:8080", "0.0.0.0:8080"),
        ("0.0.0.0:8080", "127.0.0.1:8080"),
        ("[::]:8080", "[::1]:8080"),
        ("127.0.0.1:80", "127.0.0.1"),
    ] {
        let says = format!("`upstream` leads to the gate's own `listen` {listen}");
        refused(&check(&top(listen, upstream), ""), &says);
    }
    let admin = format!("{UPSTREAM}\nadmin = \"127.0.0.1:3000\"");
    refused(
        &check(&admin, ""),
        "leads to the gate's own `admin` 127.0.0.1:3000",
    );
    let of_a_route = "upstream = \"http://localhost:8080\"";
    refused(&check(UPSTREAM, of_a_route), "the gate's own `listen`");
    good(&check(&top("127.0.0.1:8080", "127.0.0.2:8080"), ""));
    good(&check(&top("0.0.0.0:8080", "handler:8080"), ""));
}

#[test]
fn bodies_that_are_large_for_their_room_are_warned_of() {
    let says = "one connection, or one address, may hold more than a quarter";
    let room = |bytes: &str| format!("{UPSTREAM}\nbodies_bytes_max = {bytes}");
    let said = good(&check(&room("1599"), "body_bytes_max = 100"));
    assert!(said.contains(says), "{said}");
    let said = good(&check(&room("1600"), "body_bytes_max = 100"));
    assert!(!said.contains(says), "{said}");
    assert!(!good(&check(UPSTREAM, "")).contains(says));
}

#[test]
fn headers_that_name_nobody_are_refused() {
    for caller in [
        "idempotency-key",
        "connection",
        "Content-Length",
        "Semel-Key",
    ] {
        let lines = format!("source = \"api\"\ncaller = \"header:{caller}\"");
        refused(&check(UPSTREAM, &lines), "tells no callers apart: ");
    }
    for name in ["transfer-encoding", "content-length", "te", "semel-attempt"] {
        let says = format!("header:{name} cannot be part of a key: ");
        let lines = format!("source = \"pubsub\"\nkey = \"header:{name}\"");
        refused(&check(UPSTREAM, &lines), &says);
    }
    let lines = "source = \"api\"\ncaller = \"header:x-client\"\nkey = \"header:x-order\"";
    good(&check(UPSTREAM, lines));
}
