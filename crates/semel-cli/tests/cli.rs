//! The `semel` command, run as a person would.

use crate::support::said::{Said, Says, command, semel};
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs a command that reads this.
fn reads(stdin: &str, command: &mut Command) -> Said {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(stdin.as_bytes()).unwrap();
    drop(pipe);
    child.wait_with_output().unwrap().into()
}

/// The same for a line.
fn semel_reads(stdin: &str, line: &str) -> Said {
    reads(stdin, &mut command(line))
}

#[test]
fn version_names_the_commit() {
    let said = semel("--version").good();
    let commit = said
        .strip_prefix(concat!("semel ", env!("CARGO_PKG_VERSION"), " ("))
        .and_then(|rest| rest.strip_suffix(")\n"))
        .unwrap();
    let hex = commit.len() == 12 && commit.chars().all(|c| c.is_ascii_hexdigit());
    assert!(hex || commit == "unknown", "{said}");
}

#[test]
fn help_lists_the_exit_codes() {
    let said = semel("--help").good();
    for code in [
        "0   done",
        "64  a mistake",
        "69  the gate, the broker or the store",
    ] {
        said.has(code);
    }
}

#[test]
fn completions_are_printed_for_a_shell() {
    let said = semel("completions bash").good();
    said.has("_semel()");
    said.has("letters");
    semel("completions cobol").refused();
}

#[test]
fn key_prints_key_parts_and_fingerprint() {
    let line = "key --namespace shop --route orders --rule /v";
    let said = semel_reads(r#"{"v":"A-1001"}"#, line).good();
    // The first vector of vectors/keys.json.
    said.has("v1_dec7f9b9c8aa46f02153fdc6e8252383a1ba5ee14568d3fda58b458cc22ed05f");
    said.has("part         /v  string  A-1001");
    said.has("708a7a1c70806e3e52bc08a42e8323d4f5abbaa6c09b23627bcfdfd90a460a7d");
}

#[test]
fn key_prints_one_fingerprint_for_one_value_and_refuses_an_empty_part() {
    let key = |payload: &str| semel_reads(payload, "key --rule /v --json");
    let first = key(r#"{"v":1,"w":[10]}"#).good();
    assert_eq!(first, key(r#"{ "w":[1e1], "v":1.0 }"#).good());
    assert_ne!(first, key(r#"{"v":1,"w":[11]}"#).good());
    key(r#"{"v":""}"#).ends(1, "key part /v is empty");
    key(r#"{"v":null}"#).ends(1, "write /v?null in the key rule");
    semel_reads(r#"{"v":null}"#, "key --rule /v?null").good();
    semel_reads("MessageSid=SM1", "key --rule form:MessageSid")
        .good()
        .has("part         form:MessageSid  string  SM1");
}

#[test]
fn key_reads_values_beside_the_payload_and_prints_json() {
    let mut key = command("key --with header:x-id=7 --with message-id=42 --json");
    let said = reads("", key.args(["--rule", "header:X-Id message-id"])).good();
    said.has(r#"{"part":"header:x-id","text":"7","type":"string"}"#);
}

#[test]
fn key_names_what_is_missing() {
    let said = semel_reads("{}", "key --rule /order_id");
    said.ends(1, "key part /order_id is missing from the delivery");
    let said = semel_reads("{}", "key --rule order_id");
    said.ends(1, "\"order_id\" is not a key part: write /json/pointer");
}

#[test]
fn an_unknown_store_is_refused_as_a_mistake_of_usage() {
    let said = semel("migrate --store mysql://h/d");
    said.ends(64, "there is no store for mysql:");
}

#[test]
fn a_mistake_in_a_store_never_shows_its_password() {
    let keywords = "host=db user=gate password=canary";
    for store in [
        keywords,
        "mysql://gate:canary@db/shop",
        "canary",
        "postgres://gate:x@canary@db/shop",
    ] {
        for line in [
            "gate --upstream http://127.0.0.1:9 --caller shared",
            "check --upstream http://127.0.0.1:9 --caller shared",
            "migrate",
        ] {
            let said: Said = command(line)
                .env("SEMEL_STORE", store)
                .output()
                .unwrap()
                .into();
            said.refused().lacks("canary");
            said.stdout.lacks("canary");
        }
        for line in ["migrate --store", "records list --store"] {
            let said: Said = command(line).arg(store).output().unwrap().into();
            said.stderr.lacks("canary");
            assert_ne!(said.code, Some(0), "{said:?}");
        }
        let directory = tempfile::tempdir().unwrap();
        let mut init =
            command("init --upstream http://127.0.0.1:9 --path /a --source cloud-tasks --store");
        let said: Said = init
            .arg(store)
            .current_dir(&directory)
            .output()
            .unwrap()
            .into();
        said.stderr.lacks("canary");
        said.stdout.lacks("canary");
    }
}

#[test]
fn migrate_brings_a_database_up_and_can_be_repeated() {
    let url = testbed::fresh_database("cli_migrate").unwrap();
    let migrate = || semel(&format!("migrate --store {url}")).good();
    migrate().has("migrated from version 0 to");
    migrate().has("nothing to do");
}

#[test]
fn reader_that_has_seen_enough_is_nobodys_mistake() {
    for line in [
        "check --upstream http://127.0.0.1:9 --store dir:x --caller shared",
        "check --json --listen nowhere",
        "key --rule body",
        "init --docs",
        "completions bash",
        "broker snippets",
        "migrate --store dir:x",
    ] {
        let read = semel_reads("{}", line);
        assert!(!read.stdout.is_empty(), "{line} prints nothing: {read:?}");
        // Both ends are closed: neither data nor talk finds a reader.
        let closed = || {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            writer
        };
        let mut unread = command(line);
        unread.stdin(Stdio::null()).stdout(closed());
        let status = unread.stderr(closed()).status().unwrap();
        assert_eq!(status.code(), read.code, "{line}");
    }
}

#[test]
fn full_disk_is_told() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut key = command("key --rule body");
    let output = key.stdin(Stdio::null()).stdout(full).output().unwrap();
    Said::from(output).ends(1, "standard output cannot be written");
}
