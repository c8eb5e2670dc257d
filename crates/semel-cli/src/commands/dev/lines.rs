//! What `semel dev` prints: lines to copy, each of them sent twice.

use std::net::SocketAddr;

/// The routes before the demo handler.
pub(super) const DEMO_ROUTES: &str = r#"
pass = ["/ledger"]
[[route]]
name = "charge"
path = "/charge"
source = "cloud-tasks"
[[route]]
name = "invoice"
path = "/invoice"
source = "pubsub"
key = "/order"
[[route]]
name = "orders"
path = "/orders"
source = "api"
caller = "shared"
"#;

/// The route before a handler of the user's: whatever it is sent.
pub(super) const ANY_ROUTE: &str = r#"
[[route]]
name = "dev"
path = "/*"
source = "auto"
caller = "shared"
"#;

/// {"order": "A-2", "cents": 900}
const PUBSUB_DATA: &str = "eyJvcmRlciI6ICJBLTIiLCAiY2VudHMiOiA5MDB9";

/// The first screen.
pub(super) fn first_screen(
    listen: SocketAddr,
    admin: SocketAddr,
    upstream: Option<&str>,
) -> String {
    let (charge, invoice, orders) = match upstream {
        None => ("/charge", "/invoice", "/orders"),
        Some(_) => ("/", "/", "/"),
    };
    // A handler of the user's is behind a route that goes by the message's id.
    let (caption, message_id) = match upstream {
        None => (
            ": the second message has another id, but the same order",
            "'$i'",
        ),
        Some(_) => ("", "7"),
    };
    let before = upstream.map_or_else(
        || "a demo handler, which counts how often each order took effect".into(),
        |url| format!("your handler at {url}"),
    );
    let look = match upstream {
        None => format!(
            "\nHow often did each order take effect? Once:\n\n  curl -s http://{listen}/ledger\n"
        ),
        Some(_) => String::new(),
    };
    format!(
        r#"Semel listens on http://{listen} before {before}.
Send each delivery twice, as a queue would after a lost answer:

A task of Cloud Tasks

  for i in 1 2; do curl -si http://{listen}{charge} -H 'X-CloudTasks-QueueName: orders' -H 'X-CloudTasks-TaskName: task-1' -d '{{"order": "A-1"}}'; done

A push of Pub/Sub{caption}

  for i in 1 2; do curl -si http://{listen}{invoice} -H 'Content-Type: application/json' -d '{{"message": {{"messageId": "{message_id}", "data": "{PUBSUB_DATA}"}}, "subscription": "projects/p/subscriptions/s"}}'; done

A call of an API client

  for i in 1 2; do curl -si http://{listen}{orders} -H 'Idempotency-Key: key-1' -d '{{"order": "A-3"}}'; done
{look}
What became of it:  semel records list --admin http://{admin}
Metrics:            curl -s http://{admin}/metrics
Ctrl-C ends it; what it remembered goes with it.
"#
    )
}
