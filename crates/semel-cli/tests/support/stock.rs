//! The stock example behind gates, on one database.

use super::gate::Gate;
use super::python::{Handler, Points, example, script};
use super::sender::deliver;
use semel_rig::http::Request;

/// The pieces of each item before anything happens.
const PIECES: u32 = 10;

/// A database with a stock.
#[derive(Debug)]
pub(crate) struct Stock {
    pub(crate) database: String,
}

/// A gate before a handler.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) gate: Gate,
    pub(crate) handler: Handler,
}

/// How long a run may take, and how soon it can be overtaken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) lease: &'static str,
    pub(crate) timeout: &'static str,
}

// === impl Terms ===

impl Terms {
    /// Neither plays a part, however slow the machine is.
    pub(crate) const LONG: Self = Self {
        lease: "30s",
        timeout: "20s",
    };
    /// The lease of a dead gate lapses soon.
    pub(crate) const SHORT_LEASE: Self = Self {
        lease: "2s",
        ..Self::LONG
    };
    /// A run that stands still is given up soon.
    pub(crate) const SHORT: Self = Self {
        lease: "2s",
        timeout: "3s",
    };
}

// === impl Stock ===

impl Stock {
    pub(crate) fn new() -> Self {
        let database = testbed::fresh_database("stock").unwrap();
        let schema = std::fs::read_to_string(example("stock/schema.sql")).unwrap();
        testbed::query(&database, &schema).unwrap();
        Self { database }
    }

    /// Puts an item there.
    pub(crate) fn put(&self, item: &str) {
        let insert = format!("INSERT INTO stock VALUES ('{item}', {PIECES})");
        testbed::query(&self.database, &insert).unwrap();
    }

    /// How often one piece was taken.
    pub(crate) fn taken(&self, item: &str) -> u32 {
        let select = format!("SELECT {PIECES} - pieces FROM stock WHERE item = '{item}'");
        self.ask(&select).parse().unwrap()
    }

    pub(crate) fn ask(&self, select: &str) -> String {
        testbed::query(&self.database, select).unwrap()
    }

    /// Starts a gate and a handler.
    pub(crate) fn pair(&self, points: &Points, terms: Terms) -> Pair {
        let env = vec![
            points.env(),
            ("EXAMPLE", example("stock")),
            ("DATABASE_URL", self.database.clone()),
        ];
        let handler = Handler::start(&script("stock_at.py"), env);
        let gate = Gate::start(&self.database, handler.port, &routes(terms));
        Pair { gate, handler }
    }

    /// Delivers until it is heard, and once more: one piece is gone, and the answer is always the stored one.
    pub(crate) fn settle(&self, case: &str, port: u16, item: &str) {
        let truth = truth(item);
        let heard = deliver(port, &order(item));
        assert_eq!((heard.status, &*heard.body), (200, &*truth), "{case}");
        let again = deliver(port, &order(item));
        assert_eq!((again.status, &*again.body), (200, &*truth), "{case}");
        assert_eq!(again.header("idempotent-replayed"), Some("true"), "{case}");
        assert_eq!(self.taken(item), 1, "{case}");
    }
}

/// The same handler for API clients and for Cloud Tasks.
fn routes(terms: Terms) -> String {
    let Terms { lease, timeout } = terms;
    let route = |rest: &str| {
        format!(
            "[[route]]\n{rest}\ncompletes = \"handler\"\nfinal = [404, 409]\n\
             lease = \"{lease}\"\ntimeout = \"{timeout}\"\nwait = \"1s\"\n"
        )
    };
    let api = "name = \"stock\"\npath = \"/stock\"\nsource = \"api\"\ncaller = \"shared\"";
    let tasks = "name = \"tasks\"\npath = \"/tasks\"\nsource = \"cloud-tasks\"\nkey = \"/item\"";
    route(api) + &route(tasks)
}

/// The one true answer to one order of one piece.
pub(crate) fn truth(item: &str) -> String {
    format!(r#"{{"item": "{item}", "left": {}}}"#, PIECES - 1)
}

/// An order of one piece; there is one order per item.
pub(crate) fn order(item: &str) -> Request {
    let body = format!(r#"{{"item": "{item}", "pieces": 1}}"#);
    Request::post("/stock", body).header("Idempotency-Key", item)
}
