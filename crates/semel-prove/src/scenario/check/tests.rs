use super::*;

const GOOD: &str = r#"
    promise = "exactly once"
    [[process]]
    name = "handler"
    spawn = "true"
    [[dependency]]
    env = "PAY_URL"
    [deliver]
    as = "http"
    path = "/charge/{id}?a=b"
    headers = { X-Name = "{id}" }
    [[effect]]
    name = "calls"
    calls = "PAY_URL"
"#;

fn options() -> Options {
    Options::sample("PAY_URL", "http://127.0.0.1:1")
}

fn said(scenario: &str, options: &Options) -> String {
    let scenario: Scenario = toml::from_str(scenario).unwrap();
    check(&scenario, options)
        .map(|_| "good".to_owned())
        .unwrap_or_else(|why| why.to_string())
}

/// What is said when one line of a good scenario is another.
fn with(line: &str, other: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    said(&GOOD.replace(line, other), &options())
}

#[test]
fn good_scenario_is_good() {
    assert_eq!(said(GOOD, &options()), "good");
}

/// One line of a good scenario, what it is instead, and what is said then.
fn are_named(cases: &[(&str, &str, &str)]) {
    for (line, other, mistake) in cases {
        let said = with(line, other);
        assert!(said.contains(mistake), "{mistake} is missing: {said}");
    }
}

#[test]
fn mistakes_of_names_and_effects_are_named() {
    are_named(&[
        (
            r#"name = "calls""#,
            "name = 'calls'\ncalls = 'PAY_URL'\n[[effect]]\nname = 'calls'",
            "more than one [[effect]] is called `calls`",
        ),
        (
            "[deliver]",
            "[[dependency]]\nenv = 'PAY_URL'\n[deliver]",
            "more than one [[dependency]] is named by the variable `PAY_URL`",
        ),
        (
            r#"name = "calls""#,
            "name = 'calls'\nexpected = 0",
            "every [[effect]] has `expected = 0`",
        ),
        (r#""handler""#, "'../../x'", "letters, digits"),
        (r#""handler""#, "''", "letters, digits"),
        (
            r#"calls = "PAY_URL""#,
            "command = 'true'\non = 'PAY_URL'",
            "`on` is only for sql, redis and firestore",
        ),
        (
            r#"calls = "PAY_URL""#,
            "http = 'https://127.0.0.1/'",
            "is not an http:// address",
        ),
        (
            "[deliver]",
            "[[before]]\ncommand = 'true'\non = 'PAY_URL'\n[deliver]",
            "`on` is only for sql, redis and firestore",
        ),
    ]);
}

#[test]
fn mistakes_of_requests_are_named() {
    let (path, sender) = (r#""/charge/{id}?a=b""#, r#"as = "http""#);
    are_named(&[
        (
            r#"spawn = "true""#,
            "spawn = 'true'\nready = 'healthz'",
            "`ready` of `handler`: `healthz` does not begin",
        ),
        (path, "'charge'", "`charge` does not begin with `/`"),
        (path, "'/a b'", "`/a b` is not a path"),
        (
            sender,
            "as = 'http'\nmethod = 'PO ST'",
            r#""PO ST" is not a method"#,
        ),
        ("X-Name", "'X Name'", r#""X Name" is not a header name"#),
        (r#""{id}" }"#, r#""a\nb" }"#, "cannot be sent"),
        (
            sender,
            "as = 'command'\ncommand = 'true'\nrecorded = 'x.har'",
            "a command sends none",
        ),
        (
            sender,
            "as = 'http'\ntarget = 'http://127.0.0.1:1/charge?x=1'",
            "names a path, and so does deliver.path",
        ),
    ]);
}

#[test]
fn encrypted_calls_cannot_be_counted() {
    let options = Options::sample("PAY_URL", "https://pay.example");
    assert!(said(GOOD, &options).contains("`PAY_URL` is encrypted"));
}

#[test]
fn crash_points_are_at_least_one() {
    let mut options = options();
    options.crash_points_max = 0;
    assert!(said(GOOD, &options).contains("--crash-points must be at least 1"));
}

#[test]
fn mistakes_are_told_together_one_on_each_line() {
    let said = with("name = \"handler\"", "name = \"a b\"\nready = \"x\"");
    assert_eq!(said.lines().count(), 3, "{said}");
    let mut later = said.lines().skip(1);
    assert!(later.all(|line| line.starts_with("  ")), "{said}");
}

#[test]
fn domain_id_is_a_member_of_the_body_that_differs() {
    let sender = r#"as = "http""#;
    let body = |domain_id: &str| {
        let body = r#"body = '{"n": {n}, "order": {"id": "{id}", "at": "x"}}'"#;
        with(
            sender,
            &format!("as = 'http'\n{body}\ndomain_id = '{domain_id}'"),
        )
    };
    assert_eq!(body("order.id"), "good");
    for wrong in ["order", "order.at", "id", ""] {
        assert!(
            body(wrong).contains("is not a member of deliver.body"),
            "{wrong}"
        );
    }
}

#[test]
fn newest_state_needs_versions_of_an_entity() {
    let newest = "calls = \"PAY_URL\"\nnewest = true";
    let said = with(r#"calls = "PAY_URL""#, newest);
    assert!(
        said.contains("must contain {entity} and {version}"),
        "{said}"
    );
}
