//! What an operator sees and does, as JSON. The admin address answers with it; `semel records` and
//! `semel letters` with `--store` say the same without a gate.

mod records;
pub(crate) mod history;
pub(crate) mod letters;
mod forget_letters;

pub use history::is_act;
pub use records::Verdict;

use crate::audit::{Audit, Who};
use crate::gate::Gate;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use semel::clock::Time;
use semel::store::{Cursor, Letters};
use semel::{Error, Semel, Store};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The most items of one page.
pub const PAGE_ITEMS_MAX: u32 = 1000;

/// The items of a page when nobody says how many.
pub const PAGE_ITEMS_DEFAULT: u32 = 100;

/// How many letters are looked through or counted: more of them are told as that many.
pub const LETTERS_COUNTED_MAX: usize = 10_000;

/// What an act does to a promise that lets the work of a key run once more, or forgets that it ran.
pub(crate) const VOID: &str =
    "void: what this route promises of its effects does not hold for this key any more";

/// Somebody who looks at a store and acts on it. Each act is audited.
#[derive(Clone, Debug)]
pub struct Operator {
    semel: Semel,
    letters: Arc<dyn Letters>,
    /// How long another gate may answer from memory.
    elsewhere: Duration,
    /// Who it is, and why it acts.
    who: Who,
    audit: Arc<Audit>,
    /// Whose bodies it sees, and values of headers and queries.
    bodies: BodiesSeen,
    /// The gate that it acts through, if it does: it remembers deliveries.
    gate: Option<Arc<Gate>>,
}

/// Whose bodies somebody sees, and values of headers and queries with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodiesSeen {
    All,
    /// Those of routes that say `show_bodies = true`.
    WhereShown,
}

/// In place of a body that is not shown.
const BODY_HIDDEN: &str =
    "the token that views sees bodies only where the route says `show_bodies = true`";

/// Why an operator was not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What HTTP calls it.
    pub status: StatusCode,
    /// What is wrong.
    pub error: String,
    /// What to do about it.
    pub what_to_do: String,
    /// What else there is to say.
    pub details: Map<String, Value>,
}

// === impl Operator ===

impl Operator {
    /// On this store; `letters` is the same one. `elsewhere` is how long other gates may answer from memory; `who` is
    /// for the audit.
    #[must_use]
    pub fn new(semel: Semel, letters: Arc<dyn Letters>, elsewhere: Duration, who: Who) -> Self {
        Self {
            semel,
            letters,
            elsewhere,
            who,
            audit: Arc::default(),
            bodies: BodiesSeen::All,
            gate: None,
        }
    }

    /// Who acts through this gate.
    #[must_use]
    pub(crate) fn at(mut self, gate: &Arc<Gate>) -> Self {
        self.gate = Some(Arc::clone(gate));
        self
    }

    /// Who may look and not act, and sees bodies as such people do on the page.
    #[must_use]
    pub(crate) const fn who_views(mut self) -> Self {
        self.bodies = BodiesSeen::WhereShown;
        self
    }

    /// Whether it sees bodies of this route.
    fn sees_bodies(&self, route: &str) -> bool {
        let shows = |gate: &Arc<Gate>| {
            let route_state = gate.route_state(route);
            route_state.is_some_and(|it| it.settings.show_bodies)
        };
        match self.bodies {
            BodiesSeen::All => true,
            BodiesSeen::WhereShown => self.gate().is_some_and(shows),
        }
    }

    pub(crate) const fn gate(&self) -> Option<&Arc<Gate>> {
        self.gate.as_ref()
    }

    /// Whose acts are remembered there.
    #[must_use]
    pub fn audited(mut self, audit: Arc<Audit>) -> Self {
        self.audit = audit;
        self
    }

    /// Who gives this reason for what it does.
    #[must_use]
    pub fn because(mut self, why: &str) -> Self {
        self.who = self.who.because(why);
        self
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.semel.store()
    }

    pub(crate) fn letter_store(&self) -> &dyn Letters {
        self.letters.as_ref()
    }

    pub(crate) const fn who(&self) -> &Who {
        &self.who
    }

    pub(crate) fn audit(&self) -> &Audit {
        &self.audit
    }
}

// === impl Refused ===

impl Refused {
    /// With these sentences.
    #[must_use]
    pub fn new(
        status: StatusCode,
        error: impl Into<String>,
        what_to_do: impl Into<String>,
    ) -> Self {
        Self {
            status,
            error: error.into(),
            what_to_do: what_to_do.into(),
            details: Map::new(),
        }
    }

    /// A call that is wrong in itself.
    #[must_use]
    pub fn mistaken(error: impl Into<String>, what_to_do: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, what_to_do)
    }

    /// An act that this state does not allow.
    #[must_use]
    pub fn conflict(error: impl Into<String>, what_to_do: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, error, what_to_do)
    }

    /// Something that is not there.
    #[must_use]
    pub fn absent(error: impl Into<String>, what_to_do: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error, what_to_do)
    }

    /// Says one thing more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.into(), value.into());
        self
    }

    /// As the admin address says it.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut told = self.details.clone();
        told.insert("error".into(), self.error.clone().into());
        told.insert("what_to_do".into(), self.what_to_do.clone().into());
        Value::Object(told)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(_) | Error::Denied(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                error.to_string(),
                "look first whether it was done; a retry is safe",
            ),
            Error::Invalid(_) => Self::mistaken(
                error.to_string(),
                "fix the call: a retry of the same one fails again",
            ),
            Error::Corrupt(_) | Error::Bug(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                error.to_string(),
                "look at the store before anything else; a retry fails again",
            ),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.error, self.what_to_do)
    }
}

impl std::error::Error for Refused {}

// === JSON ===

/// One more member of an object.
pub(crate) fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.into(), value);
    }
}

/// A moment as RFC 3339, always of the same length; one that no calendar holds is `null`.
pub(crate) fn moment(time: Time) -> Value {
    let micros = i64::try_from(time.0).ok();
    micros
        .and_then(|micros| Timestamp::from_microsecond(micros).ok())
        .map_or(Value::Null, |at| format!("{at:.6}").into())
}

fn cursor(next: Option<&Cursor>) -> Value {
    next.map_or(Value::Null, |next| hex::encode(&next.0).into())
}

/// A body as text, or as base64 when it is none.
fn body(bytes: &Bytes) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({"encoding": "utf-8", "text": text}),
        Err(_) => json!({"encoding": "base64", "text": STANDARD.encode(bytes)}),
    }
}
