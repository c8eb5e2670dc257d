//! What `semel check` says of paths, methods and origins.

use crate::{Says, check, good, refused};
use std::process::Output;

/// `pass`, a path and more lines of one route.
fn check_route(pass: &str, path: &str, more: &str) -> Output {
    check(&format!(
        "upstream = \"http://127.0.0.1:3000\"\npass = {pass}\n[[route]]\nname = \"charge\"\npath = \"{path}\"\n{more}\n"
    ))
}

#[test]
fn a_pass_that_surrounds_a_route_is_warned_of() {
    for (pass, path) in [
        ("[\"/*\"]", "/charge"),
        ("[\"/healthz\", \"/*\"]", "/orders/*"),
        ("[\"/orders/*\"]", "/orders/charge"),
    ] {
        let said = good(&check_route(pass, path, ""));
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
        let said = good(&check_route(pass, path, ""));
        said.lacks("surrounds");
    }
}

#[test]
fn a_pass_that_only_looks_like_a_route_is_a_mistake() {
    for alike in ["/charge/", "/CHARGE", "/Charge"] {
        let says = format!("{alike} is never passed, because handlers could take it");
        refused(&check_route(&format!("[{alike:?}]"), "/charge", "")).has(&says);
    }
    good(&check_route("[\"/charges\", \"/charge/x\"]", "/charge", ""));
    good(&check_route(
        "[\"/charge/\"]",
        "/charge",
        "methods = [\"POST\"]",
    ));
    good(&check_route("[\"/orders\"]", "/orders/*", ""));
}

#[test]
fn patterns_have_one_spelling_too() {
    for bad in ["/a/../b", "/a;b", "/a//b", "/a%2Fb", "/a%zz", "/a%00"] {
        refused(&check_route("[]", bad, "")).has("without dot segments, semicolons");
    }
    let said = good(&check_route("[\"/*\"]", "/%63harge", ""));
    said.has("surrounds /charge:");
}

#[test]
fn what_a_path_allows_is_named_and_only_below_a_path() {
    let all = "path_allows = [\"semicolons\", \"encoded-slashes\", \"double-slashes\", \"encoded-delimiters\"]";
    good(&check_route("[]", "/files/*", all));
    refused(&check_route("[]", "/files", all)).has("`path_allows` is for routes below a path");
    refused(&check_route(
        "[]",
        "/files/*",
        "path_allows = [\"dot-segments\"]",
    ))
    .has("\"dot-segments\" is unknown: write \"semicolons\", \"encoded-slashes\"");
}

#[test]
fn origins_are_written_as_browsers_send_them() {
    good(&check_route(
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
        refused(&check_route("[]", "/a", &format!("cors = [{bad:?}]"))).has(&says);
    }
}
