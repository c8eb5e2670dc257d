//! Flags, variables, and the files that `semel` itself writes.

use super::{GOOD, Says, check, check_with, in_route, on_top, semel};
use tempfile::TempDir;

#[test]
fn the_example_of_the_page_is_good() {
    let page = include_str!("../../../../docs/config.md");
    let example = page.split("```toml\n").nth(1).unwrap();
    let said = check(example.split("```").next().unwrap()).good();
    said.has("route orders, pubsub: ");
    said.has("route charges, api: ");
}

#[test]
fn one_route_needs_no_file() {
    let empty = TempDir::new().unwrap();
    let flags = "check --upstream http://h --path /x --source pubsub --key /order_id";
    let said = semel(empty.path(), flags, &[]).good();
    said.has("route default, pubsub: ");
    let variables = [
        ("SEMEL_UPSTREAM", "http://h"),
        ("SEMEL_NAME", "n"),
        ("PORT", "9090"),
    ];
    let said = semel(empty.path(), "check", &variables).good();
    said.has("route n, cloud-tasks: ");
    said.has("whoever reaches 0.0.0.0:9090");

    semel(empty.path(), "check", &[]).ends(64, "there is no semel.toml and no --upstream");
    let wrong = "check --upstream ftp://h --source api --store x --listen y";
    let said = semel(empty.path(), wrong, &[("PORT", "z")]).refused();
    for expected in [
        "--upstream (SEMEL_UPSTREAM): `upstream`: write http:// or https://",
        "the flags: route default: `caller` is missing",
        "--store (SEMEL_STORE): `store`: this names no store",
        "--listen (SEMEL_LISTEN): `listen`: \"y\" is not an address",
    ] {
        said.has(expected);
    }
    semel(empty.path(), "check --upstream http://h", &[("PORT", "z")])
        .ends(64, "PORT: `listen`: \"0.0.0.0:z\" is not an address");
    semel(empty.path(), "check --config none.toml", &[]).ends(64, "none.toml: cannot be read");
}

#[test]
fn a_celery_app_is_judged_by_the_python_package() {
    let directory = TempDir::new().unwrap();
    for flags in ["--celery shop:app", "--celery=shop:app"] {
        let said = semel(directory.path(), &format!("check {flags}"), &[]);
        said.ends(64, "`pip install ./python` in the environment");
    }
    let said = semel(directory.path(), "check --celery shop:app --json", &[]);
    said.ends(64, "cannot be used with one or more of the other");
}

#[test]
fn flags_come_before_the_file_but_describe_no_route_beside_it() {
    let said = check_with(GOOD, "--listen 127.0.0.1:7000", &[("PORT", "1")]).good();
    said.has("whoever reaches 127.0.0.1:7000");
    let without = GOOD.replace("upstream = \"http://127.0.0.1:3000\"\n", "");
    check_with(&without, "--upstream http://h", &[]).good();
    check_with(GOOD, "--upstream ftp://h", &[]).refused();
    let listens = on_top("listen = \"127.0.0.1:7001\"");
    let said = check_with(&listens, "", &[("PORT", "1")]).good();
    said.has("whoever reaches 127.0.0.1:7001");
    let said = check_with(GOOD, "--path /x", &[("SEMEL_KEY", "/id")]).refused();
    said.has("--path (SEMEL_PATH): semel.toml describes the routes");
    said.has("--key (SEMEL_KEY): semel.toml describes the routes");
}

#[test]
fn the_admin_address_is_written_in_one_way_for_the_gate_and_for_who_asks_it() {
    for admin in [
        "127.0.0.1:7002",
        "http://127.0.0.1:7002",
        "http://127.0.0.1:7002/",
    ] {
        check_with(GOOD, "", &[("SEMEL_ADMIN", admin)]).good();
    }
    let says = "--admin (SEMEL_ADMIN): `admin`: \"gate:7002\" is not an address";
    check_with(GOOD, "", &[("SEMEL_ADMIN", "http://gate:7002")]).ends(64, says);
}

#[test]
fn check_speaks_json() {
    let output = check_with(GOOD, "--json", &[]);
    output.good();
    let said = output.json();
    assert_eq!(said["good"], true);
    let findings = said["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding["verdict"] == "proved" && finding["source"] == "pubsub")
    );
    let output = check_with(&in_route("timout = 1"), "--json", &[]);
    output.refused();
    let said = output.json();
    assert_eq!(said["good"], false);
    assert_eq!(said["mistakes"][0]["place"], "semel.toml:5");
    assert_eq!(said["mistakes"][0]["route"], "orders");
}

#[test]
fn switches_of_the_environment_are_written_as_elsewhere() {
    let toml = on_top("store = \"dir:./data\"");
    let on_kubernetes = |switch: &str| {
        let here = ("KUBERNETES_SERVICE_HOST", "x");
        check_with(&toml, "", &[here, ("SEMEL_SINGLE_INSTANCE", switch)])
    };
    for on in ["1", "true", "yes"] {
        on_kubernetes(on).good().has("relies on single_instance");
    }
    for off in ["0", "false"] {
        on_kubernetes(off).ends(64, "store is a directory");
    }
    on_kubernetes("maybe").ends(64, "invalid value 'maybe'");
}

#[test]
fn init_writes_a_good_file_once() {
    let empty = TempDir::new().unwrap();
    semel(empty.path(), "init", &[]).good();
    let said = semel(empty.path(), "check", &[]).good();
    said.has("route orders, pubsub: ");
    let crash = "after a crash of the handler or the gate the work runs again, and its effect can happen twice";
    said.has(&format!("route orders: {crash}; "));
    let before = std::fs::read_to_string(empty.path().join("semel.toml")).unwrap();
    let again = semel(empty.path(), "init", &[]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert_eq!(
        std::fs::read_to_string(empty.path().join("semel.toml")).unwrap(),
        before
    );
    before.has(&format!("# {crash}; for exactly once, set completes"));
}

/// What is said of a setting that needs another one beside it.
const LONELY: [&str; 15] = [
    "the variable LABEL_KEY is not set",
    "`admin_view_token` needs `admin_token`",
    "give `steps` a fixed port",
    "`audience` is missing",
    "`emails` is missing",
    "is for routes that verify tokens",
    "is for senders that sign",
    "the variable STRIPE_SECRET is not set",
    "write both, or none",
    "is for https:// handlers",
    "is for in_doubt = \"probe\"",
    "is missing beside `downstream`",
    "is for routes with downstream",
    "is for record = \"none\"",
    "is for routes that `land`",
];

#[test]
fn init_takes_flags_and_writes_a_short_file_that_check_accepts() {
    let empty = TempDir::new().unwrap();
    let file = |name: &str| std::fs::read_to_string(empty.path().join(name)).unwrap();
    let flags = "--upstream http://127.0.0.1:9 --store redis://h --path /users/{id}/pay";
    for (name, flags, proved) in [
        ("a.toml", "", "route orders, pubsub: "),
        (
            "b.toml",
            "--path /charge --source cloud-tasks --key /order_id",
            "route charge, cloud-tasks: ",
        ),
        (
            "c.toml",
            &format!("{flags} --source api --caller shared --name pay"),
            "route pay, api: ",
        ),
        (
            "e.toml",
            "--path /pay --source cloud-tasks --verify google --audience https://gate/pay --email a@b",
            "route pay, cloud-tasks: ",
        ),
    ] {
        semel(empty.path(), &format!("init {name} {flags}"), &[]).good();
        let lines = file(name).lines().count();
        assert!(lines <= 15, "{lines} lines: {}", file(name));
        let said = semel(empty.path(), &format!("check --config {name}"), &[]).good();
        said.has(proved);
    }
    file("c.toml").has("path = \"/users/{id}/pay\"");
    for (name, horizon) in [("a.toml", "31d"), ("b.toml", "31d"), ("c.toml", "24h")] {
        file(name).has(&format!("# horizon = \"{horizon}\""));
    }
    semel(
        empty.path(),
        "init span.toml --source pubsub --horizon 7d",
        &[],
    )
    .good();
    file("span.toml").has("\nhorizon = \"7d\"");
    // What the gate would refuse is not written.
    for (flags, why) in [
        ("--key /a,b", "\"b\" is not a key part"),
        ("--key ,", "the key rule is empty"),
        ("--source api", "`caller` is missing"),
        (
            "--upstream https://h --store mysql://h",
            "there is no store for mysql:",
        ),
        ("--path /users/{id}.json", "with a name in braces"),
        ("--source stripe", "`secrets` is missing"),
        ("--horizon soon", "`horizon`"),
        (
            "--source stripe --secret whsec_canary",
            "a secret does not stand in the file itself",
        ),
        ("--verify google --email a@b", "`audience` is missing"),
        ("--audience x", "--verify"),
    ] {
        semel(empty.path(), &format!("init d.toml {flags}"), &[]).ends(64, why);
        assert!(!empty.path().join("d.toml").exists(), "{flags}");
    }
}

#[test]
fn init_separates_parts_of_a_key_however_they_are_given() {
    let empty = TempDir::new().unwrap();
    let file = |name: &str| std::fs::read_to_string(empty.path().join(name)).unwrap();
    for (name, flags, key) in [
        ("f.toml", "--key /a,/b,/c", r#"["/a", "/b", "/c"]"#),
        ("g.toml", "--key /a --key form:b", r#"["/a", "form:b"]"#),
        (
            "h.toml",
            "--key /a, --key /b~json/c,/d?null",
            r#"["/a", "/b~json/c", "/d?null"]"#,
        ),
        ("i.toml", "--key /a,", r#""/a""#),
    ] {
        semel(empty.path(), &format!("init {name} {flags}"), &[]).good();
        file(name).has(&format!("\nkey = {key} "));
        semel(empty.path(), &format!("check --config {name}"), &[]).good();
    }
    semel(empty.path(), "init --help", &[])
        .good()
        .has("--key /order_id,/line");
}

/// The secret is where the gate runs, and the file is written elsewhere.
#[test]
fn init_writes_a_route_for_a_webhook_without_its_secret() {
    for source in ["stripe", "github", "shopify", "standard-webhooks"] {
        let empty = TempDir::new().unwrap();
        let init = format!("init --path /hook --source {source} --secret env:HOOK_SECRET");
        let said = semel(empty.path(), &init, &[]).good();
        said.has("must be there where the gate runs");
        semel(empty.path(), "check", &[]).ends(64, "the variable HOOK_SECRET is not set");
        let secret = "whsec_bmV3IHNlY3JldCBuZXcgc2VjcmV0";
        let said = semel(empty.path(), "check", &[("HOOK_SECRET", secret)]).good();
        said.has(&format!("route hook, {source}: "));
    }
}

#[cfg(unix)]
#[test]
fn a_file_with_a_password_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let empty = TempDir::new().unwrap();
    let store = "--store postgres://u:canary@h/d --path /a";
    semel(empty.path(), &format!("init a.toml {store}"), &[]).good();
    let mode = |name: &str| {
        let metadata = std::fs::metadata(empty.path().join(name)).unwrap();
        metadata.permissions().mode() & 0o077
    };
    assert_eq!(mode("a.toml"), 0);
    let said = semel(empty.path(), "init b.toml", &[]).good();
    said.has("It verifies no sender");
    assert_ne!(mode("b.toml"), 0);
}

#[test]
fn every_commented_line_of_init_is_readable_when_said() {
    let empty = TempDir::new().unwrap();
    semel(empty.path(), "init --all", &[]).good();
    let file = std::fs::read_to_string(empty.path().join("semel.toml")).unwrap();
    let commented: Vec<_> = file
        .lines()
        .filter(|line| line.starts_with("# ") && line.contains(" = ") && !line.contains("a crash"))
        .collect();
    assert!(commented.len() > 30, "{file}");
    for line in commented {
        let said = file.replacen(line, line.trim_start_matches("# "), 1);
        let output = check(&said);
        // Examples may not fit together with the defaults around them; each must be readable.
        let refusal = &output.stderr;
        let mut mistakes = refusal.lines().filter(|line| line.contains("semel.toml:"));
        let lonely = |mistake: &str| LONELY.iter().any(|why| mistake.contains(why));
        assert!(mistakes.all(lonely), "{line}: {refusal}");
    }
}
