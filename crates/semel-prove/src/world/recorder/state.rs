//! What the recorder remembers of a trial, and what it decides for each exchange.

use super::attribution::{Attribution, DeliveryIds};
use super::calls::{self, Call};
use super::{ExchangeRef, Permit, Release};
use crate::judge::timeline::Event;
use crate::world::exchange::{Boundary, Exchange, Hold, Signature};
use crate::world::protocol::{Message, MessageKind};
use crate::world::proxy::ProxyConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// All that the recorder knows.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) mode: Mode,
    pub(super) trial: TrialRecord,
    pub(super) ids: DeliveryIds,
    /// The processes of the world, by where they listen.
    pub(super) names: BTreeMap<SocketAddr, String>,
    background: BTreeSet<String>,
    /// Connections on which background traffic was seen last.
    pub(super) background_connections: BTreeSet<u64>,
    /// What was asked last, by connection.
    pub(super) asked: BTreeMap<u64, Signature>,
    pub(super) connections: u64,
    /// The calls of each dependency about each delivery of an earlier trial.
    pub(super) calls: BTreeMap<(usize, String), Vec<Call>>,
}

/// What is known of the trial that runs.
#[derive(Debug)]
pub(super) struct TrialRecord {
    pub(super) began: Instant,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) notes: Vec<Event>,
    pub(super) seen: BTreeMap<Signature, u32>,
    pub(super) plan: Option<Hold>,
    /// Whose bytes wait, until somebody has asked.
    pub(super) held: Option<Exchange>,
    /// Lets them go.
    pub(super) release: Option<oneshot::Sender<Release>>,
    pub(super) race: Option<Race>,
    pub(super) active: Instant,
    /// When a delivery was named last, or something was done to one.
    pub(super) named: Instant,
    /// Requests that wait for an answer, by connection.
    pub(super) open: BTreeMap<u64, Instant>,
}

/// What that which is said now belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing is delivered: whatever is said now is said anyway, and will be said again.
    Listening,
    #[default]
    Idle,
    Trial,
}

/// Deliveries that are at work at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Race {
    pub(super) runners: u32,
    /// When they are let go; known once the first waits.
    pub(super) until: Option<Instant>,
}

// === impl State ===

impl State {
    /// Forgets a trial, all but the calls it made: a late one may still be added to them.
    pub(super) fn begin(&mut self) {
        let last = std::mem::take(&mut self.trial);
        for (dependency, exchange, call) in calls::of_trial(&last.exchanges) {
            for name in self.ids.named(&exchange.bytes) {
                let calls = self.calls.entry((dependency, name)).or_default();
                calls.push(call.clone());
            }
        }
        self.mode = Mode::Trial;
        self.ids.own.clear();
    }

    /// Whether this would be said anyway. What answers background traffic is background traffic.
    pub(super) fn is_background(
        &mut self,
        connection: u64,
        Signature { outward, shape, .. }: &Signature,
        kind: MessageKind,
    ) -> bool {
        if !outward {
            return self.background_connections.contains(&connection);
        }
        // A write with values in it may be part of a delivery, too.
        let telling = !common(shape) && (kind == MessageKind::Read || !shape.contains('#'));
        if self.mode == Mode::Listening && kind != MessageKind::Housekeeping && telling {
            self.background.insert(shape.clone());
        }
        let background = self.background.contains(shape);
        if background {
            self.background_connections.insert(connection);
        } else {
            self.background_connections.remove(&connection);
        }
        background
    }

    pub(super) fn add(
        &mut self,
        connection: u64,
        proxy: &ProxyConfig,
        signature: Signature,
        message: Message,
        bytes: &[u8],
    ) -> ExchangeRef {
        let trial = &mut self.trial;
        let now = Instant::now();
        // A poll that finds nothing is wrapped in these words, too.
        if !common(&signature.shape) {
            trial.active = now;
        }
        if signature.outward {
            if self.ids.attribute(bytes) != Attribution::Unnamed {
                trial.named = now;
            }
            trial.open.insert(connection, now);
        } else {
            trial.open.remove(&connection);
        }
        let times = trial.seen.entry(signature.clone()).or_default();
        *times += 1;
        let nth = *times;
        let mut exchange = Exchange {
            number: u32::try_from(trial.exchanges.len() + 1).unwrap_or(u32::MAX),
            boundary: Boundary { signature, nth },
            connection,
            lane: proxy.lane.clone(),
            speaker: proxy.speaker.clone(),
            message,
            at: trial.began.elapsed(),
            bytes: Vec::new(),
            forwarded: false,
            late: self.mode != Mode::Trial,
        };
        exchange.keep(bytes);
        trial.exchanges.push(exchange);
        ExchangeRef {
            began: trial.began,
            index: trial.exchanges.len() - 1,
        }
    }

    /// What becomes of an exchange that was just added.
    pub(super) fn permit(&mut self, current: ExchangeRef) -> Permit {
        let Some(exchange) = self.current(current).cloned() else {
            return Permit::Forward;
        };
        if exchange.late {
            return Permit::Forward;
        }
        let trial = &mut self.trial;
        let planned = trial.plan.as_ref().is_some_and(|hold| exchange.is(hold));
        if planned && self.ids.asked(&exchange) != Attribution::EarlierTrial {
            let (release, wait) = oneshot::channel();
            trial.plan = None;
            trial.held = Some(exchange);
            trial.release = Some(release);
            return Permit::Wait(wait);
        }
        if exchange.is_request() {
            let Boundary { signature, .. } = exchange.boundary;
            self.asked.insert(exchange.connection, signature);
        }
        match (trial.race, self.asked.get(&exchange.connection)) {
            (Some(_), Some(question)) => Permit::Meet(question.clone()),
            (None, _) | (_, None) => Permit::Forward,
        }
    }

    pub(super) fn current(&mut self, current: ExchangeRef) -> Option<&mut Exchange> {
        if self.trial.began != current.began {
            return None;
        }
        self.trial.exchanges.get_mut(current.index)
    }
}

// === impl TrialRecord ===

impl Default for TrialRecord {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            exchanges: Vec::new(),
            notes: Vec::new(),
            seen: BTreeMap::new(),
            plan: None,
            held: None,
            release: None,
            race: None,
            active: now,
            named: now,
            open: BTreeMap::new(),
        }
    }
}

/// Words that any transaction begins and ends with say nothing about who speaks.
fn common(shape: &str) -> bool {
    ["BEGIN", "COMMIT", "ROLLBACK", ""].contains(&shape)
}
