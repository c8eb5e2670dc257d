//! Each mistake is named, with its line and what to write instead.

use crate::{GOOD, Says, check, good, in_route, on_top, refused};

/// What can be wrong on line 5, in a route, and what is said of it.
const IN_A_ROUTE: &[(&str, &str)] = &[
    (
        "timout = \"3s\"",
        "`timout` is not a field of a route: did you mean `timeout`?",
    ),
    (
        "listen = \"127.0.0.1:1\"",
        "`listen` is not a field of a route: move it above the first [[route]]",
    ),
    (
        "frobnicate = 1",
        "`frobnicate` is not a field of a route: docs/config.md lists them all",
    ),
    ("lease = 30", "`lease` must be a duration like"),
    ("lease = 30", "this is an integer"),
    ("lease = 1.5", "this is a number with a fraction"),
    (
        "lease = \"30 seconds\"",
        "`lease`: \"30 seconds\" is not a duration",
    ),
    ("lease = \"0s\"", "`lease` must be from 1ms to 24h"),
    (
        "retention = \"400d\"",
        "`retention`: \"400d\" is too long: write 366d at the most",
    ),
    ("timeout = \"0s\"", "0 would let no handler answer"),
    (
        "key = \"order_id\"",
        "`key`: \"order_id\" is not a key part: write /json/pointer",
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
        "`letters_bytes_max`: \"lots\" is not a size",
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
        "\"order_id\" is not a JSON pointer",
    ),
    ("methods = [\"post\"]", "\"post\" is not a method"),
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
    ("body_bytes_max = \"16MB\"", "\"16MB\" is not a size"),
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
        said.has(expected);
    }
    let said = refused(&check("[[route]]\nname = \"a\"\n"));
    said.has("semel.toml:1: route a: `path` is missing: write path = \"/orders\"");
    said.has("semel.toml:1: route a: `upstream` is missing");
}

#[test]
fn each_mistake_of_the_top_level_is_named_with_its_line() {
    let cases = [
        (
            "listn = \"127.0.0.1:1\"",
            "`listn` is not a field of the top level: did you mean `listen`?",
        ),
        (
            "lease = \"1s\"",
            "`lease` is not a field of the top level: move it below a [[route]]",
        ),
        ("listen = \"localhost\"", "\"localhost\" is not an address"),
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
        ("steps_url = \"gate\"", "this is not a URL"),
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
    said.has("the configuration has 7 mistakes");
    said.has("semel.toml:3: route number 1: `name` is missing");
    said.has("semel.toml:7: route b: `upstream` is missing");
}

#[test]
fn routes_must_be_apart() {
    let twice =
        format!("{GOOD}methods = [\"POST\"]\n[[route]]\nname = \"orders\"\npath = \"/orders\"\n");
    let said = refused(&check(&twice));
    said.has("semel.toml:6: route orders: another route has this name");
    said.has("route orders has the path /orders and the same methods already");

    let apart = format!(
        "{GOOD}methods = [\"POST\"]\n[[route]]\nname = \"other\"\npath = \"/orders\"\nmethods = [\"PUT\"]\n"
    );
    good(&check(&apart));

    let said = refused(&check("upstream = \"http://h\"\n"));
    said.has("there is no [[route]]");
    let said = refused(&check("[route]\nname = \"a\"\n"));
    said.has("write [[route]] with two brackets");
    let long = GOOD.replace("\"orders\"", &format!("\"{}\"", "x".repeat(256)));
    let said = refused(&check(&long));
    said.has("`name` has 256 bytes: write 1 to 255");
}

#[test]
fn what_no_request_could_reach_is_refused() {
    let wide = GOOD.replace("/orders", "/*");
    let said = refused(&check(&format!(
        "{wide}[[route]]\nname = \"b\"\npath = \"/b/*\"\n"
    )));
    let expected = "semel.toml:5: route b: route orders stands before and takes all of /*: put this route first";
    said.has(expected);
    let first = "[[route]]\nname = \"b\"\npath = \"/b/*\"\n";
    let wide_last = wide.replace("[[route]]", &format!("{first}[[route]]"));
    good(&check(&wide_last));

    let said = refused(&check(&format!("pass = [\"/healthz\"]\n{wide}")));
    said.has("semel.toml:3: route orders: /healthz is never passed");
    let posts = format!("pass = [\"/healthz\", \"/orders\"]\n{wide}methods = [\"POST\"]\n");
    good(&check(&posts));
}
