//! The fields of the top level.

use super::Field;

const ADDRESS: &str = "an address like \"127.0.0.1:8080\"";
const SWITCH: &str = "true or false";
const SIZE: &str = "a size in bytes, or like \"16MiB\"";
const URL: &str = "a URL like \"http://127.0.0.1:3000\"";

pub(super) const FIELDS: &[Field] = &[
    Field::says(
        "listen",
        ADDRESS,
        (
            "`\"127.0.0.1:8080\"`; `\"0.0.0.0:$PORT\"` when PORT is set",
            "\"127.0.0.1:8080\"",
        ),
        "Where deliveries arrive.",
    ),
    Field::is(
        "admin",
        ADDRESS,
        "\"127.0.0.1:8081\"",
        "Where operators and Prometheus ask.",
    ),
    Field::says(
        "admin_token",
        "text",
        (
            "none; or the variable SEMEL_ADMIN_TOKEN, which comes first",
            "\"a long random text\"",
        ),
        "What an operator must show; needed when `admin` is not a loopback address.",
    ),
    Field::is(
        "steps",
        ADDRESS,
        "\"127.0.0.1:0\"",
        "Where a run's steps are begun and recorded; port 0 is any free port.",
    ),
    Field::says(
        "steps_url",
        "a URL like \"http://gate:8082\"",
        (
            "none: only handlers on this host can use steps",
            "\"http://gate:8082\"",
        ),
        "How handlers on other hosts reach `steps`, which then needs a fixed port.",
    ),
    Field::is(
        "namespace",
        "text of 1 to 255 bytes",
        "\"default\"",
        "Keeps installations apart that share a store; enters every key.",
    ),
    Field::is(
        "store",
        "a store like \"dir:./semel-data\", \"postgres://…\" or \"redis://…\"",
        "\"dir:./semel-data\"",
        "Where records and letters are kept; the variable SEMEL_STORE comes first.",
    ),
    Field::is(
        "single_instance",
        SWITCH,
        "false",
        "Promises that never two gates run at once, so that `dir:` may be used on Cloud Run or Kubernetes.",
    ),
    Field::is(
        "relaxed_claims",
        SWITCH,
        "false",
        "PostgreSQL: grant claims before they are safe on disk; a crash of the server may forget them.",
    ),
    Field::is(
        "pooler",
        SWITCH,
        "false",
        "PostgreSQL: the URL leads to PgBouncer or another pooler in transaction mode.",
    ),
    Field::says(
        "pass",
        "a list of paths like [\"/healthz\", \"/static/*\"]",
        ("nothing", "[\"/healthz\", \"/static/*\"]"),
        "What is forwarded to `upstream` as it is, unprotected.",
    ),
    Field::says(
        "upstream",
        URL,
        (
            "none: every route names its own",
            "\"http://127.0.0.1:3000\"",
        ),
        "The handler, for routes that name none, and for `pass`.",
    ),
    Field::is(
        "upstream_h2c",
        SWITCH,
        "false",
        "Whether handlers speak HTTP/2 without TLS, for routes that do not say.",
    ),
    Field::is(
        "bodies_bytes_max",
        SIZE,
        "\"256MiB\"",
        "The largest sum of all bodies in hand, of which one connection, and one address, may hold a quarter, or four of the largest bodies if that is more; beyond it clients hear 429, brokers 409.",
    ),
    Field::is(
        "connections_max",
        "a whole number from 1",
        "10000",
        "The most connections at once, of which one address may have a quarter; lowered, with a warning, when this process may not open so many files.",
    ),
    Field::says(
        "proxies",
        "a list of addresses or networks like [\"10.0.0.0/8\"]",
        ("none", "[\"10.0.0.0/8\"]"),
        "Load balancers, from which the traffic of many comes: none of these addresses is held to a quarter. Loopback never is.",
    ),
    Field::is(
        "grace",
        "a duration like \"10s\"",
        "\"10s\"",
        "How long runs may take to end after the gate was told to stop.",
    ),
    Field::is(
        "cache_ms",
        "a whole number of milliseconds",
        "5000",
        "How long a settled outcome is answered from memory on a store that others share.",
    ),
    Field::says(
        "route",
        "a [[route]] table",
        ("at least one is needed", "[]"),
        "The protected paths, one table each.",
    ),
];
