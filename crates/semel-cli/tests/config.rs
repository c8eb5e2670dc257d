//! Configurations, judged by `semel check` as a person would run it.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const GOOD: &str = r#"upstream = "http://127.0.0.1:3000"
[[route]]
name = "orders"
path = "/orders"
"#;

/// What can be wrong on line 5, in a route, and what is said of it.
const IN_A_ROUTE: &[(&str, &str)] = &[
    (
        "timout = \"3s\"",
        "`timout` is no field of a route: did you mean `timeout`?",
    ),
    (
        "listen = \"127.0.0.1:1\"",
        "`listen` is no field of a route: move it above the first [[route]]",
    ),
    (
        "frobnicate = 1",
        "`frobnicate` is no field of a route: docs/config.md lists them all",
    ),
    ("lease = 30", "`lease` must be a duration like"),
    ("lease = 30", "this is an integer"),
    ("lease = 1.5", "this is a number with a fraction"),
    (
        "lease = \"30 seconds\"",
        "`lease`: \"30 seconds\" is no duration",
    ),
    ("lease = \"0s\"", "`lease` must be from 1ms to 24h"),
    (
        "retention = \"400d\"",
        "`retention`: \"400d\" is too long: write 366d at the most",
    ),
    ("timeout = \"0s\"", "0 would let no handler answer"),
    (
        "key = \"order_id\"",
        "`key`: \"order_id\" is no key part: write /json/pointer",
    ),
    ("key = []", "the key rule is empty"),
    ("key = [\"/a\", 1]", "`key` must be a key part"),
    (
        "key = \"stripe\"",
        "stripe is not supported yet: its signature would not be checked",
    ),
    ("source = \"github\"", "github is not supported yet"),
    ("source = \"kafka\"", "\"kafka\" is not a source"),
    (
        "source = [\"pubsub\", \"kafka\"]",
        "\"kafka\" is not a source",
    ),
    ("source = [\"auto\"]", "\"auto\" is not a source"),
    ("source = []", "name at least one source"),
    (
        "source = [\"pubsub\", \"pubsub\"]",
        "\"pubsub\" is named twice",
    ),
    (
        "undone = [502]",
        "502 may not be listed: a proxy answers so",
    ),
    ("undone = [\"500-599\"]", "502 may not be listed"),
    ("undone = [504]", "504 may not be listed"),
    (
        "undone = [409]\nfinal = [\"400-499\"]",
        "409 is in `final` too",
    ),
    ("undone = [200]", "write statuses from 300 to 599"),
    ("letters_max = 0", "0 would let nothing through"),
    (
        "letters_bytes_max = \"lots\"",
        "`letters_bytes_max`: \"lots\" is no size",
    ),
    (
        "caller = \"everybody\"",
        "\"everybody\" tells no callers apart",
    ),
    ("caller = \"header:no good\"", "names no header"),
    (
        "fingerprint = \"body\"",
        "\"body\" is unknown: write \"full\", \"payload\", \"off\"",
    ),
    (
        "fingerprint_ignores = [\"a*b\"]",
        "\"a*b\" names no attribute",
    ),
    ("fingerprint = [\"/a\"]", "/a is in the payload"),
    (
        "require = [\"order_id\"]",
        "\"order_id\" is no JSON pointer",
    ),
    ("methods = [\"post\"]", "\"post\" is no method"),
    ("methods = \"POST\"", "`methods` must be a list of methods"),
    (
        "in_doubt = \"pray\"",
        "\"pray\" is unknown: write \"retry\" or \"park\"",
    ),
    ("completes = \"handler\"", "needs a postgres:// store"),
    ("on_invalid = \"drop\"", "write \"letter\" or \"reject\""),
    ("final = [200]", "write statuses from 300 to 599"),
    ("final = [\"499-400\"]", "write statuses from 300 to 599"),
    ("final = [true]", "`final` must be a list of statuses"),
    ("max_attempts = -1", "-1 is less than nothing"),
    (
        "backoff = { first = \"1s\" }",
        "`backoff` must be a duration, or",
    ),
    (
        "backoff = { first = \"9s\", max = \"1s\" }",
        "`max` is shorter than `first`",
    ),
    (
        "backoff = { first = \"1s\", max = \"2s\", x = 1 }",
        "only `first` and `max`",
    ),
    (
        "concurrency = 0",
        "0 would let nothing through: write at least 1",
    ),
    ("body_bytes_max = \"16MB\"", "\"16MB\" is no size"),
    (
        "upstream_h2c = 1",
        "`upstream_h2c` must be true or false; this is an integer",
    ),
    (
        "upstream = \"https://h\"",
        "https:// is not supported yet: put the gate on the handler's host",
    ),
    ("upstream = \"http://h/path\"", "leave the path out"),
    (
        "upstream = \"http://h:99999\"",
        "the port must be from 1 to 65535",
    ),
    (
        "upstream = \"http://h:0\"",
        "the port must be from 1 to 65535",
    ),
    (
        "upstream = \"localhost:3000\"",
        "write http:// and the handler's host and port",
    ),
    (
        "max_backoff = \"1h\"\nsource = \"pubsub\"",
        "`max_backoff` belongs to a Cloud Tasks queue",
    ),
    (
        "horizon = \"1h\"\nsource = \"cloud-tasks\"\nmax_backoff = \"1h\"",
        "write one of the two",
    ),
];

/// Runs `semel` in a directory, with these variables and no others of its own.
fn semel(directory: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.args(args).current_dir(directory).env_clear();
    command.envs(variables.iter().copied()).output().unwrap()
}

fn check_with(toml: &str, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("semel.toml"), toml).unwrap();
    let args: Vec<_> = ["check"].iter().chain(args).copied().collect();
    semel(directory.path(), &args, variables)
}

fn check(toml: &str) -> Output {
    check_with(toml, &[], &[])
}

fn good(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The good file with one more line in its route: line 5.
fn in_route(line: &str) -> String {
    format!("{GOOD}{line}\n")
}

/// The good file with one more line on top: line 1.
fn on_top(line: &str) -> String {
    format!("{line}\n{GOOD}")
}

#[test]
fn each_mistake_of_a_route_is_named_with_its_line() {
    for (lines, expected) in IN_A_ROUTE {
        let said = refused(&check(&in_route(lines)));
        assert!(
            said.contains("semel.toml:5: route orders: "),
            "{lines}: {said}"
        );
        assert!(said.contains(expected), "{lines}: {said}");
    }
}

#[test]
fn what_is_missing_is_named_with_the_line_of_its_route() {
    for line in ["source = \"api\"", "key = \"idempotency-key\""] {
        let said = refused(&check(&in_route(line)));
        let expected = "semel.toml:2: route orders: `caller` is missing: clients choose their own keys, \
                        and one caller must never receive another's stored answer";
        assert!(said.contains(expected), "{said}");
    }
    let said = refused(&check("[[route]]\nname = \"a\"\n"));
    assert!(
        said.contains("semel.toml:1: route a: `path` is missing: write path = \"/orders\""),
        "{said}"
    );
    assert!(
        said.contains("semel.toml:1: route a: `upstream` is missing"),
        "{said}"
    );
}

#[test]
fn each_mistake_of_the_top_level_is_named_with_its_line() {
    let cases = [
        (
            "listn = \"127.0.0.1:1\"",
            "`listn` is no field of the top level: did you mean `listen`?",
        ),
        (
            "lease = \"1s\"",
            "`lease` is no field of the top level: move it below a [[route]]",
        ),
        ("listen = \"localhost\"", "\"localhost\" is no address"),
        ("listen = 8080", "`listen` must be an address"),
        (
            "admin = \"0.0.0.0:8081\"",
            "`admin` 0.0.0.0:8081 can be reached by others",
        ),
        ("admin = \"127.0.0.1:8080\"", "are the same port"),
        ("admin_token = \"\"", "`admin_token` is empty"),
        ("namespace = \"\"", "`namespace` has 0 bytes"),
        (
            "store = \"mysql://u:secret@h\"",
            "there is no store for mysql:",
        ),
        ("steps_url = \"gate\"", "this is no URL"),
        ("steps_url = \"http://gate:1\"", "give `steps` a fixed port"),
        ("pass = [\"healthz\"]", "\"healthz\" is no path"),
        ("connections_max = 0", "write at least 1"),
        (
            "proxies = [\"lb\"]",
            "`proxies`: \"lb\" is not an address or network: write",
        ),
        ("proxies = [\"10.1.2.3/8\"]", "write 10.0.0.0/8"),
        ("proxies = \"10.0.0.0/8\"", "`proxies` must be a list of"),
        (
            "cache_ms = \"5s\"",
            "`cache_ms` must be a whole number of milliseconds; this is text",
        ),
        (
            "single_instance = \"yes\"",
            "`single_instance` must be true or false; this is text",
        ),
        ("store = dir", "this is not TOML"),
    ];
    for (line, expected) in cases {
        let said = refused(&check(&on_top(line)));
        assert!(said.contains("semel.toml:1: "), "{line}: {said}");
        assert!(said.contains(expected), "{line}: {said}");
        assert!(!said.contains("secret"), "{line}: {said}");
    }
}

#[test]
fn all_mistakes_are_told_together_in_the_order_of_the_file() {
    let said = refused(&check(
        "storr = \"x\"\n\n[[route]]\npath = \"a\"\nlease = 1\n\n[[route]]\nname = \"b\"\npath = \"/b\"\nqueue = \"x\"\n",
    ));
    let lines: Vec<_> = said
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        lines,
        [
            "semel",
            "  semel.toml:1",
            "  semel.toml:3",
            "  semel.toml:3",
            "  semel.toml:4",
            "  semel.toml:5",
            "  semel.toml:7",
            "  semel.toml:10",
        ],
        "{said}"
    );
    assert!(said.contains("the configuration has 7 mistakes"), "{said}");
    assert!(
        said.contains("semel.toml:3: route number 1: `name` is missing"),
        "{said}"
    );
    assert!(
        said.contains("semel.toml:7: route b: `upstream` is missing"),
        "{said}"
    );
}

#[test]
fn routes_must_be_apart() {
    let twice =
        format!("{GOOD}methods = [\"POST\"]\n[[route]]\nname = \"orders\"\npath = \"/orders\"\n");
    let said = refused(&check(&twice));
    assert!(
        said.contains("semel.toml:6: route orders: another route has this name"),
        "{said}"
    );
    assert!(
        said.contains("route orders has the path /orders and the same methods already"),
        "{said}"
    );

    let apart = format!(
        "{GOOD}methods = [\"POST\"]\n[[route]]\nname = \"other\"\npath = \"/orders\"\nmethods = [\"PUT\"]\n"
    );
    good(&check(&apart));

    let said = refused(&check("upstream = \"http://h\"\n"));
    assert!(said.contains("there is no [[route]]"), "{said}");
    let said = refused(&check("[route]\nname = \"a\"\n"));
    assert!(said.contains("write [[route]] with two brackets"), "{said}");
    let long = GOOD.replace("\"orders\"", &format!("\"{}\"", "x".repeat(256)));
    let said = refused(&check(&long));
    assert!(
        said.contains("`name` has 256 bytes: write 1 to 255"),
        "{said}"
    );
}

#[test]
fn what_no_request_could_reach_is_refused() {
    let wide = GOOD.replace("/orders", "/*");
    let said = refused(&check(&format!(
        "{wide}[[route]]\nname = \"b\"\npath = \"/b/*\"\n"
    )));
    let expected = "semel.toml:5: route b: route orders stands before and takes all of /*: put this route first";
    assert!(said.contains(expected), "{said}");
    let first = "[[route]]\nname = \"b\"\npath = \"/b/*\"\n";
    let wide_last = wide.replace("[[route]]", &format!("{first}[[route]]"));
    good(&check(&wide_last));

    let said = refused(&check(&format!("pass = [\"/healthz\"]\n{wide}")));
    assert!(
        said.contains("semel.toml:3: route orders: /healthz is never passed"),
        "{said}"
    );
    let posts = format!("pass = [\"/healthz\", \"/orders\"]\n{wide}methods = [\"POST\"]\n");
    good(&check(&posts));
}

#[test]
fn the_inequalities_are_proved_or_named_for_each_source() {
    let said = good(&check(GOOD));
    for expected in [
        "proved   route orders, cloud-tasks: timeout 599s + 1s ≤ deadline 10m",
        "proved   route orders, cloud-tasks: retention 24h ≥ horizon 70m",
        "proved   route orders, cloud-tasks: wait 30s < deadline 10m",
        "proved   route orders, pubsub: timeout 9s + 1s ≤ deadline 10s",
        "proved   route orders, pubsub: lease 30s ≤ retention 7d",
        "proved   route orders, pubsub: retention 7d ≥ horizon 7d",
        "proved   route orders, cloudevents: retention 24h ≥ horizon 24h",
        "holds its key for 39s at the most",
        "warning  the senders' identity is not checked yet on orders",
        "note     a route's name and the namespace enter every key",
        "note     route orders: requests of API clients are refused",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!said.contains("orders, api"), "{said}");

    let broken = [
        (
            "source = \"pubsub\"\ntimeout = \"10s\"",
            "orders, pubsub: timeout 10s + 1s > deadline 10s",
        ),
        (
            "lease = \"2h\"\nretention = \"1h\"",
            "lease 2h > retention 1h",
        ),
        (
            "retention = \"24h\"",
            "orders, pubsub: retention 24h < horizon 7d",
        ),
        (
            "source = \"cloud-tasks\"\nmax_backoff = \"24h\"",
            "retention 24h < horizon 1450m",
        ),
        ("wait = \"10s\"", "orders, pubsub: wait 10s ≥ deadline 10s"),
        ("deadline = \"1s\"", "timeout is 0s"),
        (
            "body_bytes_max = \"1GiB\"",
            "body_bytes_max 1073741824 > bodies_bytes_max",
        ),
    ];
    for (lines, expected) in broken {
        let output = check(&in_route(lines));
        let said = refused(&output);
        assert!(
            said.contains("the configuration does not hold together"),
            "{said}"
        );
        assert!(said.contains(expected), "{lines}: {said}");
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("broken   route orders"),
            "{output:?}"
        );
    }
}

#[test]
fn api_routes_have_their_own_terms_and_warnings() {
    let said = good(&check(&in_route(
        "source = \"api\"\ncaller = \"header:Authorization\"",
    )));
    assert!(
        said.contains(
            "warning  route orders: caller = \"header:authorization\" is for static API keys"
        ),
        "{said}"
    );
    assert!(
        said.contains("orders, api: lease 30s ≤ retention 24h"),
        "{said}"
    );
    assert!(said.contains("holds its key for 90s at the most"), "{said}");
    assert!(
        !said.contains("pubsub") && !said.contains("identity is not checked"),
        "{said}"
    );
    let said = good(&check(&in_route(
        "source = \"pubsub\"\nkey = \"task-name\"",
    )));
    assert!(
        said.contains("warning  route orders, pubsub: task-name is never in a delivery"),
        "{said}"
    );
}

#[test]
fn the_embedded_store_is_refused_where_many_gates_may_run() {
    for (variable, platform) in [
        ("K_SERVICE", "Cloud Run"),
        ("KUBERNETES_SERVICE_HOST", "Kubernetes"),
    ] {
        let said = refused(&check_with(GOOD, &[], &[(variable, "x")]));
        assert!(
            said.contains(&format!("{platform} may run several gates")),
            "{said}"
        );
        let said = good(&check_with(
            &on_top("single_instance = true"),
            &[],
            &[(variable, "x")],
        ));
        assert!(said.contains("warning  the embedded store"), "{said}");
        good(&check_with(
            GOOD,
            &["--single-instance"],
            &[(variable, "x")],
        ));
        good(&check_with(
            GOOD,
            &["--store", "postgres://h/d"],
            &[(variable, "x")],
        ));
    }
    let relaxed = on_top("store = \"postgres://h/d\"\nrelaxed_claims = true");
    assert!(good(&check(&relaxed)).contains("warning  relaxed_claims"));
    assert!(good(&check(&on_top("pooler = true"))).contains("this one does not look at them"));
}

#[test]
fn a_gate_that_others_reach_is_told_of_load_balancers() {
    let reached = "listen = \"0.0.0.0:8080\"\nstore = \"postgres://h/d\"";
    let said = good(&check(&on_top(reached)));
    assert!(
        said.contains("note     one address may take a quarter"),
        "{said}"
    );
    let said = good(&check_with(&on_top(reached), &[], &[("K_SERVICE", "x")]));
    assert!(
        said.contains("warning  one address may take a quarter"),
        "{said}"
    );
    let listed = format!("{reached}\nproxies = [\"169.254.0.0/16\", \"2001:db8::7\"]");
    let said = good(&check_with(&on_top(&listed), &[], &[("K_SERVICE", "x")]));
    assert!(!said.contains("a quarter"), "{said}");
    assert!(!good(&check(GOOD)).contains("a quarter"));
}

#[test]
fn a_file_that_says_nearly_everything_is_good() {
    let full = r#"
listen = "127.0.0.1:9000"
admin = "0.0.0.0:9001"
steps = "0.0.0.0:9002"
steps_url = "http://gate:9002"
namespace = "shop"
store = "postgres://h/d"
pass = ["/healthz", "/static/*"]
upstream = "http://handler:3000/"
upstream_h2c = true
bodies_bytes_max = 268435456
cache_ms = 0

[[route]]
name = "orders"
path = "/orders/*"
methods = ["POST", "PUT"]
source = "cloud-tasks"
key = ["/order_id", "header:X-Region"]
fingerprint = ["header:x-version"]
require = ["/order_id"]
lease = "10s"
timeout = "20s"
deadline = "30s"
retention = "24h"
max_backoff = "10m"
wait = "0s"
in_doubt = "park"
completes = "handler"
final = [422, "400-499"]
max_attempts = 5
backoff = { first = "1s", max = "60s" }
queue = 0
upstream = "http://[::1]:4000"
upstream_h2c = false
on_invalid = "reject"
answer_bytes_max = "64KiB"
"#;
    let said = good(&check_with(full, &[], &[("SEMEL_ADMIN_TOKEN", "long")]));
    assert!(said.contains("retention 24h ≥ horizon 630s"), "{said}");
    assert!(
        said.contains("note     forwarded unprotected, as pass says: /healthz, /static/*"),
        "{said}"
    );
    let said = refused(&check(full));
    assert!(said.contains("can be reached by others"), "{said}");
}

#[test]
fn check_says_what_a_mismatch_does() {
    let shared = format!("{GOOD}caller = \"shared\"\n");
    let all = format!("{shared}source = [\"api\", \"cloud-tasks\", \"pubsub\", \"cloudevents\"]\n");
    let said = good(&check(&all));
    for expected in [
        "route orders, api: a repeat of a key with another method, path, query or payload is refused with 422",
        "route orders, cloud-tasks: a repeat of a key with another method, path, query or payload is a mismatch: it is \
         kept as a letter and answered 200",
        "route orders, pubsub: a repeat of a key with another method, path, attribute or data is a mismatch",
        "route orders, cloudevents: a repeat of a key with another method, path, type, subject, dataschema or data is",
        "route orders, pubsub: a push without its envelope (noWrapper) has its attributes among all other headers",
    ] {
        assert!(said.contains(expected), "{said}");
    }

    let line = |line: &str| good(&check(&format!("{all}{line}\n")));
    let said = line("fingerprint = \"payload\"");
    assert!(said.contains("pubsub: a repeat of a key with another payload is a mismatch"));
    assert!(!said.contains("noWrapper"), "{said}");
    let said = line("fingerprint = [\"attribute:type\"]");
    assert!(!said.contains("noWrapper"), "{said}");
    let said = line("fingerprint = \"off\"");
    let lost = "warning  route orders, pubsub: fingerprint = \"off\": other work under a known key";
    assert!(said.contains(lost), "{said}");

    let unused = "warning  route orders: fingerprint_ignores lists attributes of Pub/Sub messages";
    let ignores = "fingerprint_ignores = [\"published_at\", \"trace_*\"]";
    assert!(!line(ignores).contains(unused));
    for (other, is_unused) in [
        ("source = \"pubsub\"", false),
        ("source = \"api\"", true),
        ("fingerprint = \"payload\"", true),
    ] {
        let said = good(&check(&format!("{shared}{ignores}\n{other}\n")));
        assert_eq!(said.contains(unused), is_unused, "{said}");
    }
}

#[test]
fn check_warns_of_bodies_that_there_may_be_no_memory_to_read() {
    let with = |all: &str| good(&check(&format!("bodies_bytes_max = \"{all}\"\n{GOOD}")));
    let warns = "warning  route orders: body_bytes_max 16777216 × 4 > bodies_bytes_max 33554432";
    assert!(with("32MiB").contains(warns));
    assert!(!with("64MiB").contains("× 4"));
}

#[test]
fn the_example_of_the_page_is_good() {
    let page = include_str!("../../../docs/config.md");
    let example = page.split("```toml\n").nth(1).unwrap();
    let said = good(&check(example.split("```").next().unwrap()));
    assert!(
        said.contains("route orders, pubsub: ") && said.contains("route charges, api: "),
        "{said}"
    );
}

#[test]
fn one_route_needs_no_file() {
    let empty = TempDir::new().unwrap();
    let flags = [
        "check",
        "--upstream",
        "http://h",
        "--path",
        "/x",
        "--source",
        "pubsub",
        "--key",
        "/order_id",
    ];
    let said = good(&semel(empty.path(), &flags, &[]));
    assert!(said.contains("route default, pubsub: "), "{said}");
    let variables = [
        ("SEMEL_UPSTREAM", "http://h"),
        ("SEMEL_NAME", "n"),
        ("PORT", "9090"),
    ];
    let said = good(&semel(empty.path(), &["check"], &variables));
    assert!(
        said.contains("route n, cloud-tasks: ") && said.contains("whoever reaches 0.0.0.0:9090"),
        "{said}"
    );

    let said = refused(&semel(empty.path(), &["check"], &[]));
    assert!(
        said.contains("there is no semel.toml and no --upstream"),
        "{said}"
    );
    let wrong = [
        "check",
        "--upstream",
        "https://h",
        "--source",
        "api",
        "--store",
        "x",
        "--listen",
        "y",
    ];
    let said = refused(&semel(empty.path(), &wrong, &[("PORT", "z")]));
    for expected in [
        "--upstream (SEMEL_UPSTREAM): `upstream`: https:// is not supported yet",
        "the flags: route default: `caller` is missing",
        "--store (SEMEL_STORE): `store`: \"x\" names no store",
        "--listen (SEMEL_LISTEN): `listen`: \"y\" is no address",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let said = refused(&semel(
        empty.path(),
        &["check", "--upstream", "http://h"],
        &[("PORT", "z")],
    ));
    assert!(
        said.contains("PORT: `listen`: \"0.0.0.0:z\" is no address"),
        "{said}"
    );
    let said = refused(&semel(
        empty.path(),
        &["check", "--config", "none.toml"],
        &[],
    ));
    assert!(said.contains("none.toml: cannot be read"), "{said}");
}

#[test]
fn flags_come_before_the_file_but_describe_no_route_beside_it() {
    let said = good(&check_with(
        GOOD,
        &["--listen", "127.0.0.1:7000"],
        &[("PORT", "1")],
    ));
    assert!(said.contains("whoever reaches 127.0.0.1:7000"), "{said}");
    let without = GOOD.replace("upstream = \"http://127.0.0.1:3000\"\n", "");
    good(&check_with(&without, &["--upstream", "http://h"], &[]));
    refused(&check_with(GOOD, &["--upstream", "https://h"], &[]));
    let listens = on_top("listen = \"127.0.0.1:7001\"");
    let said = good(&check_with(&listens, &[], &[("PORT", "1")]));
    assert!(said.contains("whoever reaches 127.0.0.1:7001"), "{said}");
    let said = refused(&check_with(
        GOOD,
        &["--path", "/x"],
        &[("SEMEL_KEY", "/id")],
    ));
    assert!(
        said.contains("--path (SEMEL_PATH): semel.toml describes the routes"),
        "{said}"
    );
    assert!(
        said.contains("--key (SEMEL_KEY): semel.toml describes the routes"),
        "{said}"
    );
}

#[test]
fn check_speaks_json() {
    let output = check_with(GOOD, &["--json"], &[]);
    let said: Value = serde_json::from_str(&good(&output)).unwrap();
    assert_eq!(said["good"], true);
    let findings = said["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding["verdict"] == "proved" && finding["source"] == "pubsub")
    );
    let output = check_with(&in_route("timout = 1"), &["--json"], &[]);
    refused(&output);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["good"], false);
    assert_eq!(said["mistakes"][0]["place"], "semel.toml:5");
    assert_eq!(said["mistakes"][0]["route"], "orders");
}

#[test]
fn init_writes_a_good_file_once() {
    let empty = TempDir::new().unwrap();
    good(&semel(empty.path(), &["init"], &[]));
    let said = good(&semel(empty.path(), &["check"], &[]));
    assert!(said.contains("route orders, pubsub: "), "{said}");
    let before = std::fs::read_to_string(empty.path().join("semel.toml")).unwrap();
    let again = semel(empty.path(), &["init"], &[]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert_eq!(
        std::fs::read_to_string(empty.path().join("semel.toml")).unwrap(),
        before
    );
}

#[test]
fn every_commented_line_of_init_is_readable_when_said() {
    let empty = TempDir::new().unwrap();
    good(&semel(empty.path(), &["init"], &[]));
    let file = std::fs::read_to_string(empty.path().join("semel.toml")).unwrap();
    let commented: Vec<_> = file
        .lines()
        .filter(|line| line.starts_with("# ") && line.contains(" = "))
        .collect();
    assert!(commented.len() > 30, "{file}");
    for line in commented {
        let said = file.replacen(line, line.trim_start_matches("# "), 1);
        let output = check(&said);
        // Examples may not fit together with the defaults around them; each must be readable.
        let refusal = String::from_utf8_lossy(&output.stderr).into_owned();
        let fits = !refusal.contains("mistake") || refusal.contains("give `steps` a fixed port");
        assert!(fits, "{line}: {refusal}");
    }
}
