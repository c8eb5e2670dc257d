//! The table: which settings, on which store, prove which promise. A configuration without a row has no promise.

use super::StoreFacts;
use super::delivery::{always, kept, undone};
use super::span::{delivered, names, remembered, windows};
use crate::config::needs_memory;
use semel::protocol::InDoubt;
use semel::work::Completes;
use semel_gate::settings::{DownstreamKeys, Promise, Route, Source};

/// What is shown of a route's effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The settings and the store prove it.
    Proved(Promise, Covers),
    /// The settings do, and this remains to be read from the server.
    Unread(Promise, Covers, Vec<String>),
    /// Nothing is, until this is changed.
    Unproved(Vec<String>),
}

/// Whose effects a promise is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covers {
    /// All that a handler does.
    Everything,
    /// What its transaction writes into the store's database.
    Transaction,
    /// What it does downstream.
    Downstream,
}

/// A promise that rests on what its sender or its callers do, and that nothing in the settings says they do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assumed {
    pub(crate) promise: Promise,
    pub(crate) covers: Covers,
    /// The assumptions, after "as long as".
    pub(crate) assumptions: Vec<String>,
}

/// The verdict on a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    /// Holds by an operator's declaration.
    Declared(String),
    /// Holds as long as the sender keeps to its documented default.
    Supposed(String),
    /// This is to be read first.
    Unread(String),
    /// Not before this is changed.
    No(String),
    /// Not before `change`; until then only as long as `assumed`.
    Assumed {
        change: String,
        assumed: String,
    },
}

/// The sentences that a proof stands on, besides what can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grounds {
    pub(crate) declared: Vec<String>,
    pub(crate) supposed: Vec<String>,
}

/// A row of the table that a route's settings lead to, with its conditions.
#[derive(Clone)]
struct Row {
    promise: Promise,
    covers: Covers,
    conditions: Vec<Holds>,
}

/// The strongest promise that a route can show, or may once its server was read.
pub(crate) fn shown(route: &Route, store: &StoreFacts) -> Shown {
    let rows = rows(route, store).into_iter().map(Row::shown);
    first(rows, |shown| !matches!(shown, Shown::Unproved(_))).unwrap_or(Shown::Unproved(Vec::new()))
}

/// The strongest promise that only assumptions keep from being proved; none, where a row above it is proved.
pub(crate) fn assumed(route: &Route, store: &StoreFacts) -> Option<Assumed> {
    let mut rows = rows(route, store).into_iter();
    let first = rows.find(|row| !row.conditions.iter().any(|it| matches!(it, Holds::No(_))))?;
    let is_assumed = |holds: &Holds| matches!(holds, Holds::Assumed { .. });
    let rests = first.conditions.iter().any(is_assumed);
    let assumptions = first.conditions.into_iter().filter_map(Holds::assumption);
    rests.then(|| Assumed {
        promise: first.promise,
        covers: first.covers,
        assumptions: assumptions.collect(),
    })
}

/// What a route can show of the promise that it demands.
pub(crate) fn demanded(route: &Route, store: &StoreFacts, promise: Promise) -> Shown {
    let rows = rows(route, store).into_iter();
    let enough = rows.filter(|row| row.promise.implies(promise));
    let mut enough: Vec<_> = enough.map(Row::shown).collect();
    // What holds already need not wait for what is to be read.
    enough.sort_by_key(|shown| matches!(shown, Shown::Unread(..)));
    first(enough.into_iter(), |shown| {
        !matches!(shown, Shown::Unproved(_))
    })
    .unwrap_or_else(|| Shown::Unproved(vec![missing(route, promise)]))
}

/// The grounds of what is shown; none, where nothing is proved.
pub(crate) fn grounds(route: &Route, store: &StoreFacts, shown: &Shown) -> Grounds {
    let mut rows = rows(route, store).into_iter();
    let row =
        rows.find(|row| row.clone().shown() == *shown && !matches!(shown, Shown::Unproved(_)));
    let mut grounds = Grounds::default();
    for condition in row.map(|row| row.conditions).unwrap_or_default() {
        let (all, says) = match condition {
            Holds::Declared(says) => (&mut grounds.declared, says),
            Holds::Supposed(says) => (&mut grounds.supposed, says),
            Holds::Yes | Holds::Unread(_) | Holds::No(_) | Holds::Assumed { .. } => continue,
        };
        if !all.contains(&says) {
            all.push(says);
        }
    }
    grounds
}

/// The first that is good, or else the first.
fn first(
    mut shown: impl Iterator<Item = Shown>,
    is_good: impl Fn(&Shown) -> bool,
) -> Option<Shown> {
    let first = shown.next()?;
    if is_good(&first) {
        return Some(first);
    }
    Some(shown.find(is_good).unwrap_or(first))
}

/// The rows for a route, strongest first.
fn rows(route: &Route, store: &StoreFacts) -> Vec<Row> {
    if !route.keeps_records() {
        return vec![Row::stateless(route, store)];
    }
    let mut rows = Vec::new();
    match route.completes {
        Completes::Handler => rows.push(Row {
            promise: Promise::ExactlyOnce,
            covers: Covers::Transaction,
            conditions: store.commits_together(),
        }),
        Completes::Run => {}
    }
    if let Some(downstream) = route.downstream {
        let mut conditions = match downstream.keys {
            DownstreamKeys::Key => letters_kept(route, store),
            DownstreamKeys::Steps => store.loses_nothing(route.parks_doubt()),
        };
        conditions.extend(windows(route, downstream));
        rows.push(Row {
            promise: Promise::ExactlyOnce,
            covers: Covers::Downstream,
            conditions,
        });
    }
    if route.probe.as_ref().is_some_and(|probe| probe.fences) {
        let fences =
            "the handler refuses runs with a lower fence than one that it has answered about";
        let mut conditions = store.loses_nothing(route.parks_doubt());
        conditions.push(Holds::Declared(fences.into()));
        rows.push(Row {
            promise: Promise::ExactlyOnce,
            covers: Covers::Everything,
            conditions,
        });
    }
    match (route.in_doubt, route.completes) {
        (InDoubt::Park, Completes::Run) => rows.push(Row {
            promise: Promise::AtMostOnce,
            covers: Covers::Everything,
            conditions: store.loses_nothing(true),
        }),
        (InDoubt::Retry | InDoubt::Probe, Completes::Run)
        | (InDoubt::Retry, Completes::Handler) => rows.push(Row {
            promise: Promise::AtLeastOnce,
            covers: Covers::Everything,
            conditions: letters_kept(route, store),
        }),
        // What was forgotten runs once more.
        (InDoubt::Park | InDoubt::Probe, Completes::Handler) => rows.push(Row {
            promise: Promise::AtLeastOnce,
            covers: Covers::Everything,
            conditions: store.commits_together(),
        }),
    }
    for row in &mut rows {
        row.conditions.extend(always(route));
        row.conditions.extend(store.keeps_rows(&route.name));
        row.conditions.extend(names(route));
        if needs_memory(row.promise) {
            row.conditions.extend(remembered(route, store));
        }
        if needs_memory(row.promise) && row.covers == Covers::Everything {
            row.conditions.extend(undone(route));
        }
        if row.promise != Promise::AtMostOnce {
            row.conditions.extend(delivered(route));
            row.conditions.extend(kept(route));
        }
    }
    rows
}

/// Only brokers' deliveries become letters: an API client keeps its request until it hears of a success.
fn letters_kept(route: &Route, store: &StoreFacts) -> Vec<Holds> {
    if route.sources.iter().any(|source| source.is_broker()) {
        store.keeps_letters()
    } else {
        Vec::new()
    }
}

/// What a route would have to say for a promise that none of its rows leads to.
fn missing(route: &Route, promise: Promise) -> String {
    let leads = leads_to(promise);
    if route.keeps_records() {
        leads.into()
    } else {
        format!(
            "record = \"none\" remembers nothing, so every repeat runs: leave it out, and {leads}"
        )
    }
}

/// Which settings lead to a promise.
pub(super) const fn leads_to(promise: Promise) -> &'static str {
    match promise {
        Promise::ExactlyOnce => {
            "set completes = \"handler\" (the effect is in the PostgreSQL or Firestore database of the store), or downstream = \
             \"deduplicates\" (the effect is in a service that drops repeats of a key)"
        }
        Promise::AtMostOnce => "set in_doubt = \"park\"",
        Promise::AtLeastOnce => "set in_doubt = \"retry\"",
    }
}

// === impl Row ===

impl Row {
    /// Nothing is acknowledged without success, and nothing is kept of what the sender gives up.
    fn stateless(route: &Route, store: &StoreFacts) -> Self {
        let keeps = |source: &Source| match source {
            Source::Api => Holds::Yes,
            Source::PubSub if route.dead_letter_topic => Holds::Declared(format!(
                "the subscription of {source} has a dead-letter topic that keeps what it gives up"
            )),
            Source::PubSub => Holds::no(
                "record = \"none\" keeps no letters, and a sender gives up after a while: let it keep what it gives up \
                 (a dead-letter topic), and write dead_letter_topic = true",
            ),
            Source::CloudTasks | Source::CloudEvents | Source::Webhook(_) => Holds::no(format!(
                "record = \"none\" keeps no letters, and {source} drops what it gives up: keep records"
            )),
        };
        let mut conditions: Vec<_> = route.sources.iter().map(keeps).collect();
        conditions.extend(store.keeps_rows(&route.name));
        conditions.extend(kept(route));
        Self {
            promise: Promise::AtLeastOnce,
            covers: Covers::Everything,
            conditions,
        }
    }

    fn shown(self) -> Shown {
        let (mut unread, mut wrong) = (Vec::new(), Vec::new());
        for condition in self.conditions {
            match condition {
                Holds::Yes | Holds::Declared(_) | Holds::Supposed(_) => {}
                Holds::Unread(what) => unread.push(what),
                Holds::No(what) | Holds::Assumed { change: what, .. } => wrong.push(what),
            }
        }
        match (wrong.is_empty(), unread.is_empty()) {
            (false, _) => Shown::Unproved(wrong),
            (true, false) => Shown::Unread(self.promise, self.covers, unread),
            (true, true) => Shown::Proved(self.promise, self.covers),
        }
    }
}

// === impl Holds ===

impl Holds {
    pub(super) fn no(says: impl Into<String>) -> Self {
        Self::No(says.into())
    }

    pub(super) fn unread(what: impl Into<String>) -> Self {
        Self::Unread(what.into())
    }

    fn assumption(self) -> Option<String> {
        match self {
            Self::Assumed { assumed, .. } => Some(assumed),
            Self::Unread(what) => Some(format!(
                "nothing is lost by {what}, which the gate has yet to read"
            )),
            Self::Yes | Self::Declared(_) | Self::Supposed(_) | Self::No(_) => None,
        }
    }

    pub(super) fn unless(wrong: bool, says: impl FnOnce() -> String) -> Self {
        if wrong { Self::No(says()) } else { Self::Yes }
    }
}
