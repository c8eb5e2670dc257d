//! The fields of a `[[route]]`.

use super::Field;

const DURATION: &str = "a duration like \"500ms\", \"30s\", \"10m\", \"24h\" or \"7d\"";
const SIZE: &str = "a size in bytes, or like \"16MiB\"";
const BY_SOURCE: &str = "by source, see below";

pub(super) const FIELDS: &[Field] = &[
    Field::needed(
        "name",
        "text of 1 to 255 bytes",
        "\"orders\"",
        "Names the route in keys, logs and metrics. Renaming a route forgets its keys.",
    ),
    Field::needed(
        "path",
        "a path like \"/orders\", or \"/orders/*\" for all below",
        "\"/orders\"",
        "Which requests are this route's.",
    ),
    Field::is(
        "path_allows",
        "a list of \"semicolons\", \"encoded-slashes\", \"double-slashes\", \"encoded-delimiters\"",
        "[]",
        "Spellings of paths that are refused otherwise, see below; only for paths with `/*`.",
    ),
    Field::says(
        "methods",
        "a list of methods like [\"POST\"]",
        (
            "all; GET, HEAD and OPTIONS of API clients are then forwarded unprotected",
            "[\"POST\", \"PUT\"]",
        ),
        "Which methods are this route's. A method that is listed is protected.",
    ),
    Field::is(
        "source",
        "\"auto\", \"api\", \"cloud-tasks\", \"pubsub\" or \"cloudevents\", or a list like [\"api\", \"pubsub\"]",
        "\"auto\"",
        "Who delivers here. `auto` takes every broker's deliveries, told apart by each request; on a route that names a \
         `caller` it takes API requests only, so that no client can pose as a broker. Name both to take both.",
    ),
    Field::says(
        "key",
        "a key part like \"/order_id\", a list of them, or a preset like \"pubsub\"",
        ("the source's own preset, see below", "[\"/order_id\"]"),
        "Which deliveries are the same work; holds for every source of the route.",
    ),
    Field::says(
        "caller",
        "\"shared\" or \"header:NAME\"",
        (
            "none: requests of API clients are refused",
            "\"header:x-client-id\"",
        ),
        "How API clients are told apart: one must never receive another's stored answer.",
    ),
    Field::is(
        "fingerprint",
        "\"full\", \"payload\", \"off\", or a list of names like [\"header:x-version\"]",
        "\"full\"",
        "What a repeat of a key is compared by, see below; names are added to `full`, `payload` is the payload alone.",
    ),
    Field::says(
        "fingerprint_ignores",
        "a list of attribute names like [\"published_at\", \"trace_*\"]",
        ("none", "[\"published_at\"]"),
        "Pub/Sub attributes that are not compared because a repeat may have others.",
    ),
    Field::says(
        "require",
        "a list of JSON pointers like [\"/order_id\"]",
        ("nothing", "[\"/order_id\"]"),
        "What a payload must have; a delivery without it is invalid.",
    ),
    Field::is(
        "lease",
        DURATION,
        "\"30s\"",
        "How long the right to run lasts unless renewed; renewed every third of it.",
    ),
    Field::says(
        "timeout",
        DURATION,
        (BY_SOURCE, "\"9s\""),
        "How long the handler may take.",
    ),
    Field::says(
        "deadline",
        DURATION,
        (BY_SOURCE, "\"10s\""),
        "When the sender gives up on one delivery: the task's dispatch deadline, the subscription's ack deadline.",
    ),
    Field::says(
        "retention",
        DURATION,
        (BY_SOURCE, "\"7d\""),
        "How long an outcome is remembered.",
    ),
    Field::says(
        "horizon",
        DURATION,
        (BY_SOURCE, "\"7d\""),
        "How long the sender may deliver again: the subscription's message retention.",
    ),
    Field::says(
        "max_backoff",
        DURATION,
        ("`\"3600s\"`; the horizon is this + `deadline`", "\"3600s\""),
        "Cloud Tasks: the queue's `max_backoff`.",
    ),
    Field::says(
        "wait",
        DURATION,
        (BY_SOURCE, "\"5s\""),
        "How long a duplicate waits for the running one.",
    ),
    Field::is(
        "in_doubt",
        "\"retry\" or \"park\"",
        "\"retry\"",
        "When the effect may or may not have happened: run again, or let a person decide.",
    ),
    Field::is(
        "completes",
        "\"gate\" or \"handler\"",
        "\"gate\"",
        "Who records success; `handler` calls `semel.complete` in its own PostgreSQL transaction.",
    ),
    Field::says(
        "final",
        "a list of statuses like [422, \"400-499\"]",
        ("none", "[422, \"400-499\"]"),
        "Which statuses of the handler are failures for good.",
    ),
    Field::says(
        "undone",
        "a list of statuses like [409, 503]",
        ("none", "[503]"),
        "Where doubt is parked: which statuses of the handler say that nothing happened, so that it may run again. \
         Every other answer that is not a success is in doubt and parks; 502 and 504 may not be listed, a proxy says \
         them of a handler that may have run.",
    ),
    Field::is(
        "max_attempts",
        "a whole number",
        "0",
        "How many runs before the work is parked; 0 is no limit.",
    ),
    Field::is(
        "backoff",
        "a duration, or { first = \"1s\", max = \"60s\" }",
        "\"0s\"",
        "The pause after a failure, doubled up to `max`; 0 lets the sender pace.",
    ),
    Field::is(
        "concurrency",
        "a whole number from 1",
        "10",
        "How many runs at once. A handler mostly holds a database connection while it runs: no more of them than it has to \
         give. Whoever waits is in the queue, and `slot_ms` in its log line says how long.",
    ),
    Field::is(
        "queue",
        "a whole number",
        "100",
        "How many deliveries may wait for a slot; beyond it senders hear 429.",
    ),
    Field::says(
        "upstream",
        "a URL like \"http://127.0.0.1:3000\"",
        ("the gate's `upstream`", "\"http://127.0.0.1:3000\""),
        "The handler.",
    ),
    Field::says(
        "upstream_h2c",
        "true or false",
        ("the gate's `upstream_h2c`", "false"),
        "Whether the handler speaks HTTP/2 without TLS.",
    ),
    Field::is(
        "on_invalid",
        "\"letter\" or \"reject\"",
        "\"letter\"",
        "A broker's delivery that can have no key: keep it as a letter, or refuse it.",
    ),
    Field::says(
        "cors",
        "a list of origins like [\"https://shop.example\"]",
        ("none", "[\"https://shop.example\"]"),
        "Web origins whose pages may read the gate's own problem answers; the handler's answers are its own matter.",
    ),
    Field::is(
        "letters_max",
        "a whole number from 1",
        "10000",
        "How many letters of this route the store may keep: as many as a person can look through with \
         `semel letters list`. Invalid and mismatched ones get at most half. While it is full senders hear 409 and keep \
         what they deliver, and `max_attempts` is not applied. Each gate counts once a minute and adds what it puts \
         itself, so several gates may exceed it by what the others put within that minute.",
    ),
    Field::is(
        "letters_bytes_max",
        SIZE,
        "\"256MiB\"",
        "The same for the bytes of these letters: 16 of the largest bodies, or 10000 of 26 KiB.",
    ),
    Field::is(
        "body_bytes_max",
        SIZE,
        "\"16MiB\"",
        "The largest body that is taken in.",
    ),
    Field::is(
        "answer_bytes_max",
        SIZE,
        "\"1MiB\"",
        "The largest answer that is kept.",
    ),
];
