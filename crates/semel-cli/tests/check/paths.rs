//! What `semel check` says of paths, methods and origins.

use super::{Said, Says, check};

/// `pass`, a path and more lines of one route.
fn check_route(pass: &str, path: &str, more: &str) -> Said {
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
        let said = check_route(pass, path, "").good();
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
        let said = check_route(pass, path, "").good();
        said.lacks("surrounds");
    }
}

#[test]
fn names_in_the_style_of_other_routers_are_warned_of() {
    for path in ["/users/:id/pay", "/users/<id>/pay"] {
        let said = check_route("[]", path, "").good();
        said.has("is taken letter by letter; for any text there write {id}");
    }
    check_route("[]", "/users/{id}/pay", "")
        .good()
        .lacks("letter by letter");
}

#[test]
fn a_pass_that_only_looks_like_a_route_is_a_mistake() {
    for alike in ["/charge/", "/CHARGE", "/Charge"] {
        let says = format!("{alike} is never passed, because handlers could take it");
        check_route(&format!("[{alike:?}]"), "/charge", "").ends(64, &says);
    }
    check_route("[\"/charges\", \"/charge/x\"]", "/charge", "").good();
    check_route("[\"/charge/\"]", "/charge", "methods = [\"POST\"]").good();
    check_route("[\"/orders\"]", "/orders/*", "").good();
}

#[test]
fn patterns_have_one_spelling_too() {
    for bad in ["/a/../b", "/a;b", "/a//b", "/a%2Fb", "/a%zz", "/a%00"] {
        check_route("[]", bad, "").ends(64, "without dot segments, semicolons");
    }
    let said = check_route("[\"/*\"]", "/%63harge", "").good();
    said.has("surrounds /charge:");
}

#[test]
fn a_name_in_braces_is_any_one_name_and_never_taken_literally() {
    let said = check_route("[\"/users/*\"]", "/users/{id}/pay", "").good();
    said.has("pass /users/* surrounds /users/{id}/pay:");
    for bad in ["/users/{id}.json", "/users/v{id}", "/users/{*rest}", "/{}"] {
        check_route("[]", bad, "").ends(64, "with a name in braces as the whole of a segment");
    }
    let says = "/users/me/pay is never passed, because this route takes it";
    check_route("[\"/users/me/pay\"]", "/users/{id}/pay", "").ends(64, says);
    let second = "[[route]]\nname = \"me\"\npath = \"/users/me/pay\"";
    let says = "route charge stands before and takes all of /users/{id}/pay: put this route first";
    check_route("[]", "/users/{id}/pay", second).ends(64, says);
    check_route("[]", "/users/{id}", "path_allows = [\"encoded-slashes\"]")
        .ends(64, "`path_allows` is for routes below a path");
}

#[test]
fn what_a_path_allows_is_named_and_only_below_a_path() {
    let all = "path_allows = [\"semicolons\", \"encoded-slashes\", \"double-slashes\", \"encoded-delimiters\"]";
    check_route("[]", "/files/*", all).good();
    check_route("[]", "/files", all).ends(64, "`path_allows` is for routes below a path");
    check_route("[]", "/files/*", "path_allows = [\"dot-segments\"]").ends(
        64,
        "\"dot-segments\" is unknown: write \"semicolons\", \"encoded-slashes\"",
    );
}

#[test]
fn origins_are_written_as_browsers_send_them() {
    check_route(
        "[]",
        "/a",
        "cors = [\"https://shop.example\", \"http://localhost:3000\"]",
    )
    .good();
    for bad in [
        "*",
        "https://Shop.example",
        "https://shop.example/",
        "shop.example",
        "https://u@h",
        "ftp://h",
    ] {
        let says = format!("{bad:?} is not an origin");
        check_route("[]", "/a", &format!("cors = [{bad:?}]")).ends(64, &says);
    }
}
