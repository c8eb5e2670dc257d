//! What the table of fields tells people: `semel init`'s file and `docs/config.md`.

use super::fields::{Fallback, Field, Level};
use super::terms::{Said, terms, usual};
use super::values::written;
use crate::args::GateArgs;
use clap::Args;
use semel_gate::settings::Source;
use std::time::Duration;

/// Fields that a first file says aloud; all others stand there as comments.
const SAID_AT_FIRST: [&str; 3] = ["upstream", "name", "path"];

/// A commented `semel.toml` that is good as it is.
pub(crate) fn commented_file() -> String {
    let head = "# The configuration of `semel gate`. `semel check` judges it; docs/config.md explains it.\n\
                # What is commented out shows the default, or an example where there is none.\n\n";
    let top = Level::Gate.fields().iter();
    let top = top
        .filter(|field| field.name != "route")
        .map(|field| setting(field, true));
    let route = Level::Route.fields().iter();
    let route = route.map(|field| setting(field, field.name != "upstream"));
    let mut file = String::from(head);
    file.extend(top);
    file.push_str("[[route]]\n");
    file.extend(route);
    file.truncate(file.trim_end().len());
    file + "\n"
}

fn setting(field: &Field, may_be_said: bool) -> String {
    let Field { name, doc, .. } = field;
    let said = may_be_said && SAID_AT_FIRST.contains(name);
    let comment = if said { "" } else { "# " };
    format!("# {doc}\n{comment}{name} = {}\n\n", field.example())
}

/// `docs/config.md`.
pub(crate) fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n## The top level\n\n");
    page.push_str(&table(Level::Gate));
    page.push_str("\n## `[[route]]`\n\n");
    page.push_str(&table(Level::Route));
    page.push_str(SOURCES);
    page.extend(Source::ALL.map(source_row));
    page.push_str(KEYS);
    page.push_str(FINGERPRINTS);
    page.push_str(PATHS);
    page.push_str(LETTERS);
    page.push_str(FLAGS);
    page.push_str(&flags());
    page.push_str(CHECKED);
    page
}

fn table(level: Level) -> String {
    let mut table = String::from("| field | value | default | meaning |\n|---|---|---|---|\n");
    table.extend(level.fields().iter().map(row));
    table
}

fn row(field: &Field) -> String {
    let Field {
        name, words, doc, ..
    } = field;
    let usual = match field.fallback {
        Fallback::Needed { .. } => "must be given".into(),
        Fallback::Is(toml) => format!("`{toml}`"),
        Fallback::Says { words, .. } => words.into(),
    };
    format!("| `{name}` | {words} | {usual} | {doc} |\n")
}

fn source_row(source: Source) -> String {
    let said = Said {
        lease: Duration::from_secs(30),
        ..Said::default()
    };
    let terms = terms(source, &said);
    let some = |duration: Option<Duration>| duration.map_or_else(|| "–".into(), written);
    format!(
        "| `{source}` | `{}` | {} | {} | {} | {} | {} |\n",
        usual(source).key,
        some(terms.deadline),
        written(terms.timeout),
        written(terms.retention),
        some(terms.horizon),
        written(terms.wait),
    )
}

fn flags() -> String {
    let command = GateArgs::augment_args(clap::Command::new("gate"));
    let row = |flag: &clap::Arg| {
        let long = flag.get_long()?;
        let variable = flag.get_env()?.to_string_lossy().into_owned();
        let help = flag.get_help()?;
        Some(format!("| `--{long}` | `{variable}` | {help} |\n"))
    };
    command.get_arguments().filter_map(row).collect()
}

const INTRODUCTION: &str = "# Configuration

`semel gate` reads `semel.toml` once, when it starts. `semel init` writes a commented one; `semel check` judges it
without starting anything. Unknown fields are refused, and all mistakes are told together, each with its line; the exit
code is then 64.

```toml
store = \"postgres://semel@localhost/shop\"
upstream = \"http://127.0.0.1:3000\"
pass = [\"/healthz\"]

[[route]]
name = \"orders\"
path = \"/orders\"
source = \"pubsub\"
key = \"/order_id\"

[[route]]
name = \"charges\"
path = \"/charges\"
source = \"api\"
caller = \"header:x-client-id\"
```

Durations are a whole number and a unit: `500ms`, `30s`, `10m`, `24h`, `7d`; none is longer than `366d`. Sizes are bytes, or a whole number and `KiB`,
`MiB` or `GiB`.

<!-- This page is made from the table of fields in crates/semel-cli/src/config: change it there, then run
SEMEL_UPDATE_DOCS=1 cargo test -p semel-cli -->
";

const SOURCES: &str = "
## Defaults by source

| source | key | `deadline` | `timeout` | `retention` | `horizon` | `wait` |
|---|---|---|---|---|---|---|
";

const KEYS: &str = "
Where a route takes several sources, each delivery gets the terms of its own, and what the route says itself holds for all
of them. `source = \"auto\"` takes `cloud-tasks`, `pubsub` and `cloudevents`, told apart by the form of each request; on a route
with a `caller` it takes `api` alone, because there whoever calls could pose as a broker and fill the store with letters. To
take both, name them: `source = [\"api\", \"pubsub\"]`. `timeout` follows `deadline` (1s less), `wait` is never longer than that by default, and for Cloud Tasks `horizon`
is `max_backoff` + `deadline`.

A request belongs to the first route of the file whose path and methods fit; what no route takes is passed when `pass`
names it, and refused otherwise.

## Keys

A key is made of parts, in order: `/json/pointer` into the payload, `header:NAME`, `attribute:NAME` (Pub/Sub), `ce:NAME`
(CloudEvents), `message-id`, `task-name`, `queue`, `subscription`, or `body` (a digest of the whole payload). Presets:
`cloud-tasks`, `pubsub`, `cloudevents`, `idempotency-key`. Senders that sign what they send (Stripe, GitHub, Shopify,
Standard Webhooks) are refused until their signatures are checked. `semel key` shows what a rule makes of a payload.
";

const FINGERPRINTS: &str = "
## Fingerprints

A key says which deliveries are the same work; the fingerprint says whether a repeat of it is honest. By default (`full`)
it covers

- Cloud Tasks and API clients: method, path with query, payload;
- CloudEvents, in either mode: method, path without query, `type`, `subject`, `dataschema`, data; of an event of Eventarc that
  carries a Pub/Sub message, that message's attributes and data;
- Pub/Sub: method, path without query, attributes and data. Left out are `googclient_*`, `CloudPubSubDeadLetterSource*`,
  `traceparent`, `tracestate`, `baggage` and what `fingerprint_ignores` lists. A push without its envelope has its
  attributes among all other headers: there they count only if named, as `fingerprint = [\"attribute:type\"]`.

A payload is compared as a JSON value, whatever the order of its members, its spacing and the spelling of its numbers, when
its content type is `application/json` or ends in `+json`, and without a content type (data of Pub/Sub, and of events that
name none) when it can be read so. JSON with a member twice, half a surrogate pair, a number beyond 64 bits or a double,
more than 64 levels or 1000000 members, and everything else, is compared as bytes.

A repeat that differs is a mismatch. An API client hears 422. A broker's delivery is kept as a letter and answered 200, so
that nothing is lost; while the first still runs or waits it hears 409. With `off`, it is answered as a duplicate and lost.
";

const PATHS: &str = "
## Paths and headers

A path has one form, which is matched, compared and forwarded: encodings of unreserved characters (letters, digits, `-._~`)
are decoded, all others have upper-case digits, and what may not stand in a path is encoded. Method and query stay as they
came. Refused with 400, also under `pass`: dot segments, backslashes, control characters, `//` at the beginning, encodings
that are broken, encoded twice or not UTF-8; and, unless the route allows them by `path_allows`, `;` (`semicolons`), `%2F` and
`%5C` (`encoded-slashes`), `//` (`double-slashes`), `%3F` and `%23` (`encoded-delimiters`).

A path that is a route's but for letter case, a slash at its end, an encoding, or what some handlers ignore (dots and spaces
at the end of a name, parameters) is refused for the methods that the route takes: it is neither passed nor another
route's. `/orders` looks like `/orders/*`, too; it is passed only if `pass` names it as it is. Which other paths lead to the
same code (`/orders.json`, a rewrite) the gate cannot know: name what is passed one by one, and `semel check` warns where
`pass` surrounds a route.

With `methods` left out, an API client's GET, HEAD and OPTIONS are forwarded unprotected, without a key: with an
`Idempotency-Key` they are refused, because it would promise what does not hold. A method that `methods` lists is
protected. A route that lists GET has HEAD, too, because handlers run the same code for both: it is never passed, and hears 405
unless `methods` lists it. Preflights of browsers (OPTIONS) are for the handler to answer: leave `methods` out, or let `pass` name the path.

To the handler goes what its sender said, less hop-by-hop headers; less `Semel-*`, in every spelling that a CGI-style server
takes for it (`Semel_Key`); less every other spelling of `Idempotency-Key`, of a header that `caller` or `key` names, and
of one that is in the same request. A request whose `Connection` names a header that somebody relies on (a caller's, one of a key,
`Authorization`, `Cookie`, `Host`, `Content-*`, `Idempotency-Key`, `Semel-*`, trace context, those of brokers and proxies)
is refused. `Host` reaches the handler as it came, over HTTP/2 as `:authority`.

Refused with 400 on every path, in every spelling: headers by which frameworks read another method than the request has
(`X-HTTP-Method-Override`, `X-HTTP-Method`, `X-Method-Override`) or another path (`X-Original-URL`, `X-Rewrite-URL`,
`X-Original-URI`). The gate does not look for overrides in queries and bodies (`_method`): switch them off in the handler, or
leave `methods` out, so that the route has all of them.

Handlers with `upstream_h2c` share one connection, and have one for each run under `in_doubt = \"park\"`. A stream that the
handler refused (`REFUSED_STREAM`, or a GOAWAY that names an earlier one as its last) was not processed: it is released
and not in doubt. A handler that owes an answer is pinged every 10s and is gone if it does not answer within 5s.
";

const LETTERS: &str = "
## Letters

A broker's delivery that is acknowledged without success is kept as a letter, in the store, before the sender hears of it. How it
stands follows from the record of its key: once that has succeeded, by whichever gate, handler or operator, the letter is closed.
Lists, `show` and `redrive` look at the record, and so does every gate once a minute. Closing, like `discard`, leaves a tombstone
without the delivery for the route's `retention`: while the record stays as it is, a duplicate does not bring the letter back. After
`semel records resolve` or `forget`, or when the record has expired, a duplicate may run, or be kept as a letter again. `semel letters redrive` runs nothing that may have run before and of which no record is left; it says so, and `--run-again`
runs it all the same. A letter whose record cannot be read is listed as `damaged` and counts for the quota; the log says what is wrong.

A letter keeps no credentials: `Authorization`, `Proxy-Authorization`, `Cookie`, `X-Serverless-Authorization` and
`X-Goog-IAP-JWT-Assertion` are dropped, and a redrive reaches the handler without them. A handler that asks for them answers 401 or
403; let it take what comes from the gate, or let the sender deliver again.

A mismatched letter runs under a key of its own when it is redriven, because the key of its delivery stands for other work. Once the
retention of that work is over, a duplicate of the delivery runs under the delivery's key. Its success closes the letter, and while
it is unfinished there a redrive is refused. The other way round nothing remembers the redrive: when a mismatched letter was redriven
and its sender, or whoever seeks back in a subscription, delivers the same again after the other work's retention, it may run once
more. So redriving such a letter is an operator's act: first stop the sender from delivering it again, or discard the letter and send
the work under a new key.

A delivery without a key that its sender names (a task's name, a message's or an event's id) has one letter, however often it comes.
One that nothing names, such as an unwrapped push without metadata, has a letter for each arrival, within the quota: two with the same
bytes may be two messages. Before you redrive several of them, find out whether they are.

Under `in_doubt = \"park\"` work takes effect at most once only if nothing that may have taken effect runs again: a handler can
charge and then answer 500, and a proxy can answer 502 for it. So every answer that is not a success parks the work, unless its
status is listed in `undone` (nothing happened, it may run again) or `final` (it failed for good). For API clients 2xx, 3xx and those
4xx that are recorded by default are settled as ever. With `completes = \"handler\"` nothing is in doubt.
";

const FLAGS: &str = "
## Flags and variables

One route needs no file: `semel gate --upstream http://127.0.0.1:3000 --path /orders --source pubsub --key /order_id`.
With a file, the flags of the route are refused; `--listen`, `--admin`, `--store` and `--single-instance` come before the
file. A flag comes before its variable. The variables `SEMEL_ADMIN_TOKEN` (before `admin_token`) and `PORT` (where
`listen` is not given) are read too.

| flag | variable | meaning |
|---|---|---|
";

const CHECKED: &str = "
## What is proved

`semel check`, and the gate before it starts, prove for each route and source, and name what does not hold:

- `timeout` + 1s ≤ `deadline`: the handler is cut off before its sender gives up;
- `lease` ≤ `retention`: no run outlives its record;
- `retention` ≥ `horizon`: an outcome is remembered as long as the sender may deliver again;
- `wait` < `deadline`, for brokers: a waiting duplicate is answered in time;
- `body_bytes_max` ≤ `bodies_bytes_max`: the largest body fits;
- a `dir:` store is not used on Cloud Run or Kubernetes, unless `single_instance = true`.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_repository_is_the_one_made_here() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
        if std::env::var_os("SEMEL_UPDATE_DOCS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == page(),
            "docs/config.md is out of date: run SEMEL_UPDATE_DOCS=1 cargo test -p semel-cli"
        );
    }
}
