//! What `semel check` says of paths, methods and origins.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::process::{Command, Output};
use tempfile::TempDir;

/// `pass`, a path and more lines of one route.
fn check(pass: &str, path: &str, more: &str) -> Output {
    let directory = TempDir::new().unwrap();
    let toml = format!(
        "upstream = \"http://127.0.0.1:3000\"\npass = {pass}\n[[route]]\nname = \"charge\"\npath = \"{path}\"\n{more}\n"
    );
    std::fs::write(directory.path().join("semel.toml"), toml).unwrap();
    Command::new(env!("CARGO_BIN_EXE_semel"))
        .arg("check")
        .current_dir(directory.path())
        .env_clear()
        .output()
        .unwrap()
}

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
fn a_pass_that_surrounds_a_route_is_warned_of() {
    for (pass, path) in [
        ("[\"/*\"]", "/charge"),
        ("[\"/healthz\", \"/*\"]", "/orders/*"),
        ("[\"/orders/*\"]", "/orders/charge"),
    ] {
        let said = good(&check(pass, path, ""));
        let warned = format!("* surrounds {path}: ");
        let line = said.lines().find(|line| line.contains(&warned));
        let line = line.unwrap_or_else(|| panic!("{said}"));
        assert!(line.starts_with("warning  route charge: pass /"), "{line}");
    }
    for (pass, path) in [
        ("[\"/healthz\"]", "/charge"),
        ("[\"/orders/*\"]", "/charge"),
        ("[]", "/charge"),
    ] {
        let said = good(&check(pass, path, ""));
        assert!(!said.contains("surrounds"), "{said}");
    }
}

#[test]
fn a_pass_that_only_looks_like_a_route_is_a_mistake() {
    for alike in ["/charge/", "/CHARGE", "/Charge"] {
        let says = format!("{alike} is never passed, because handlers could take it");
        refused(&check(&format!("[{alike:?}]"), "/charge", ""), &says);
    }
    good(&check("[\"/charges\", \"/charge/x\"]", "/charge", ""));
    good(&check("[\"/charge/\"]", "/charge", "methods = [\"POST\"]"));
    good(&check("[\"/orders\"]", "/orders/*", ""));
}

#[test]
fn patterns_have_one_spelling_too() {
    for bad in ["/a/../b", "/a;b", "/a//b", "/a%2Fb", "/a%zz", "/a%00"] {
        refused(&check("[]", bad, ""), "without dot segments, semicolons");
    }
    let said = good(&check("[\"/*\"]", "/%63harge", ""));
    assert!(said.contains("surrounds /charge:"), "{said}");
}

#[test]
fn what_a_path_allows_is_named_and_only_below_a_path() {
    let all = "path_allows = [\"semicolons\", \"encoded-slashes\", \"double-slashes\", \"encoded-delimiters\"]";
    good(&check("[]", "/files/*", all));
    refused(
        &check("[]", "/files", all),
        "`path_allows` is for routes below a path",
    );
    refused(
        &check("[]", "/files/*", "path_allows = [\"dot-segments\"]"),
        "\"dot-segments\" is unknown: write \"semicolons\", \"encoded-slashes\"",
    );
}

#[test]
fn origins_are_written_as_browsers_send_them() {
    good(&check(
        "[]",
        "/a",
        "cors = [\"https://shop.example\", \"http://localhost:3000\"]",
    ));
    for bad in [
        "*",
        "https://Shop.example",
        "https://shop.example/",
        "shop.example",
        "https://u@h",
        "ftp://h",
    ] {
        let says = format!("{bad:?} is not an origin");
        refused(&check("[]", "/a", &format!("cors = [{bad:?}]")), &says);
    }
}
