//! The `semel` command, run as a person would.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn semel(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_semel"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn version_names_the_commit() {
    let said = stdout(&semel(&["--version"], ""));
    let commit = said
        .strip_prefix(concat!("semel ", env!("CARGO_PKG_VERSION"), " ("))
        .and_then(|rest| rest.strip_suffix(")\n"))
        .unwrap();
    let hex = commit.len() == 12 && commit.chars().all(|c| c.is_ascii_hexdigit());
    assert!(hex || commit == "unknown", "{said}");
}

#[test]
fn help_lists_the_exit_codes() {
    let said = stdout(&semel(&["--help"], ""));
    for code in [
        "0   done",
        "64  a mistake",
        "69  the gate, the broker or the store",
    ] {
        assert!(said.contains(code), "{code}: {said}");
    }
}

#[test]
fn completions_are_printed_for_a_shell() {
    let said = stdout(&semel(&["completions", "bash"], ""));
    assert!(
        said.contains("_semel()") && said.contains("letters"),
        "{said}"
    );
    let refused = semel(&["completions", "cobol"], "");
    assert_eq!(refused.status.code(), Some(64));
}

#[test]
fn key_prints_key_parts_and_fingerprint() {
    let args = [
        "key",
        "--namespace",
        "shop",
        "--route",
        "orders",
        "--rule",
        "/v",
    ];
    let said = stdout(&semel(&args, r#"{"v":"A-1001"}"#));
    // The first vector of vectors/keys.json.
    assert!(
        said.contains("v1_dec7f9b9c8aa46f02153fdc6e8252383a1ba5ee14568d3fda58b458cc22ed05f"),
        "{said}"
    );
    assert!(said.contains("part         /v  string  A-1001"), "{said}");
    assert!(
        said.contains("708a7a1c70806e3e52bc08a42e8323d4f5abbaa6c09b23627bcfdfd90a460a7d"),
        "{said}"
    );
}

#[test]
fn key_prints_one_fingerprint_for_one_value_and_refuses_an_empty_part() {
    let args = ["key", "--rule", "/v", "--json"];
    let first = stdout(&semel(&args, r#"{"v":1,"w":[10]}"#));
    assert_eq!(first, stdout(&semel(&args, r#"{ "w":[1e1], "v":1.0 }"#)));
    assert_ne!(first, stdout(&semel(&args, r#"{"v":1,"w":[11]}"#)));
    let refused = semel(&args, r#"{"v":""}"#);
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("key part /v is empty"), "{said}");
}

#[test]
fn key_reads_values_beside_the_payload_and_prints_json() {
    let args = [
        "key",
        "--rule",
        "header:X-Id message-id",
        "--with",
        "header:x-id=7",
        "--with",
        "message-id=42",
        "--json",
    ];
    let said = stdout(&semel(&args, ""));
    assert!(
        said.contains(r#"{"part":"header:x-id","text":"7","type":"string"}"#),
        "{said}"
    );
}

#[test]
fn key_names_what_is_missing() {
    let said = stderr(&semel(&["key", "--rule", "/order_id"], "{}"));
    assert!(
        said.contains("key part /order_id is missing from the delivery"),
        "{said}"
    );
    let said = stderr(&semel(&["key", "--rule", "order_id"], "{}"));
    assert!(
        said.contains("\"order_id\" is not a key part: write /json/pointer"),
        "{said}"
    );
}

#[test]
fn an_unknown_store_is_refused_as_a_mistake_of_usage() {
    let output = semel(&["migrate", "--store", "mysql://h/d"], "");
    assert_eq!(output.status.code(), Some(64));
    assert!(
        stderr(&output).contains("there is no store for mysql:"),
        "{output:?}"
    );
}

#[test]
fn migrate_brings_a_database_up_and_can_be_repeated() {
    let url = testbed::fresh_database("cli_migrate").unwrap();
    let said = stdout(&semel(&["migrate", "--store", &url], ""));
    assert!(said.contains("migrated from version 0 to"), "{said}");
    let said = stdout(&semel(&["migrate", "--store", &url], ""));
    assert!(said.contains("nothing to do"), "{said}");
}

#[test]
fn reader_that_has_seen_enough_is_nobodys_mistake() {
    let commands: [&[&str]; 7] = [
        &[
            "check",
            "--upstream",
            "http://127.0.0.1:9",
            "--store",
            "dir:x",
            "--caller",
            "shared",
        ],
        &["check", "--json", "--listen", "nowhere"],
        &["key", "--rule", "body"],
        &["init", "--docs"],
        &["completions", "bash"],
        &["broker", "snippets"],
        &["migrate", "--store", "dir:x"],
    ];
    for args in commands {
        let usual = semel(args, "{}");
        assert!(
            !usual.stdout.is_empty(),
            "{args:?} prints nothing: {usual:?}"
        );
        // Both ends are closed: neither data nor talk finds a reader.
        let closed = || {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            writer
        };
        let mut child = Command::new(env!("CARGO_BIN_EXE_semel"));
        child.args(args).stdin(Stdio::null());
        let status = child.stdout(closed()).stderr(closed()).status().unwrap();
        assert_eq!(status.code(), usual.status.code(), "{args:?}");
    }
}

#[test]
fn full_disk_is_told() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_semel"));
    child.args(["key", "--rule", "body"]).stdin(Stdio::null());
    let output = child.stdout(full).output().unwrap();
    assert!(stderr(&output).contains("standard output cannot be written"));
}
