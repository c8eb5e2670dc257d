//! What `semel dev` prints: lines to copy. The broker delivers everything twice.

use std::net::SocketAddr;

/// The routes before the demo handler.
pub(super) const DEMO_ROUTES: &str = r#"
pass = ["/ledger", "/send/*"]
[[route]]
name = "charge"
path = "/charge"
source = "cloud-tasks"
key = "/order"
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
source = ["api", "cloud-tasks", "pubsub", "cloudevents"]
caller = "shared"
"#;

/// {"order": "A-1"}
const TASK_BODY: &str = "eyJvcmRlciI6ICJBLTEifQ==";

/// {"order": "A-2", "cents": 900}
const MESSAGE_DATA: &str = "eyJvcmRlciI6ICJBLTIiLCAiY2VudHMiOiA5MDB9";

/// Who listens where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) gate: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) broker: SocketAddr,
}

/// A port that was not free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) port: u16,
    pub(super) who: &'static str,
    pub(super) found: SocketAddr,
}

/// Where deliveries go behind the gate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paths {
    pub(super) task: &'static str,
    pub(super) message: &'static str,
    pub(super) call: &'static str,
}

// === impl Paths ===

impl Paths {
    pub(super) const DEMO: Self = Self {
        task: "/charge",
        message: "/invoice",
        call: "/orders",
    };
    pub(super) const ANY: Self = Self {
        task: "/",
        message: "/",
        call: "/",
    };
}

/// The queue, topic and subscription that are there from the start.
pub(super) fn declared(gate: SocketAddr, paths: Paths) -> String {
    let path = paths.message;
    format!(
        r#"project = "demo"
location = "local"
faults = ["duplicate=1"]
[[queue]]
name = "orders"
[[topic]]
name = "invoices"
[[subscription]]
name = "invoices"
topic = "invoices"
push = "http://{gate}{path}"
"#
    )
}

/// What is said of ports that somebody else has: lines that were copied from elsewhere would reach them.
pub(super) fn taken(ports: &[Taken]) -> String {
    let line = |taken: &Taken| {
        let Taken { port, who, found } = taken;
        format!("Port {port} is taken by another program: {who} listens on {found} instead.\n")
    };
    let lines: String = ports.iter().map(line).collect();
    if lines.is_empty() {
        lines
    } else {
        lines + "\n"
    }
}

/// The first screen.
pub(super) fn first_screen(at: Addresses, paths: Paths, upstream: Option<&str>) -> String {
    let Addresses {
        gate,
        admin,
        broker,
    } = at;
    let before = upstream.map_or_else(
        || "a demo handler, which counts how often each order took effect".into(),
        |url| format!("your handler at {url}"),
    );
    let (send, look) = match upstream {
        None => (send_demo(gate), format!("  curl -s {gate}/ledger\n")),
        Some(_) => (send_raw(at, paths), String::new()),
    };
    let call = paths.call;
    format!(
        r#"Semel's gate listens on http://{gate} before {before}.
Semel's broker listens on http://{broker}: Cloud Tasks and Pub/Sub, told to deliver everything twice.
See it happen:  http://{admin}/ui

Create a task, publish a message, and call twice like an impatient API client:

{send}  for i in 1 2; do curl -s {gate}{call} -H 'Idempotency-Key: key-1' -d '{{"order": "A-3"}}'; done

Each is delivered twice and takes effect once:

  curl -s -X POST {broker}/_semel/wait-idle
  curl -s {broker}/_semel/history
{look}
Google's clients:   semel broker snippets
What became of it:  semel find --admin http://{admin} A-1
Live, elsewhere:    semel watch --admin http://{admin}
Metrics:            curl -s {admin}/metrics
Ctrl-C ends it; what it remembered goes with it.
"#
    )
}

/// The demonstration's shortcut to the local cloud's API: payloads as they are.
fn send_demo(gate: SocketAddr) -> String {
    format!(
        r#"  curl -s {gate}/send/task -d '{{"order": "A-1"}}'
  curl -s {gate}/send/message -d '{{"order": "A-2", "cents": 900}}'
"#
    )
}

/// The local cloud's API itself, where everything else is the user's.
fn send_raw(at: Addresses, paths: Paths) -> String {
    let Addresses { gate, broker, .. } = at;
    let task = paths.task;
    format!(
        r#"  curl -s {broker}/v2/projects/demo/locations/local/queues/orders/tasks -d '{{"task": {{"httpRequest": {{"url": "http://{gate}{task}", "body": "{TASK_BODY}"}}}}}}'
  curl -s {broker}/v1/projects/demo/topics/invoices:publish -d '{{"messages": [{{"data": "{MESSAGE_DATA}"}}]}}'
"#
    )
}
