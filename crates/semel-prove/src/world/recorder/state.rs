//! What the recorder remembers of a trial, and what it decides for each exchange.

use super::attribution::{Attribution, DeliveryIds};
use super::{ConnectionInfo, ExchangeRef, Permit, Release};
use crate::judge::timeline::Event;
use crate::world::exchange::{Boundary, Exchange, Hold, Signature};
use crate::world::protocol::{Message, MessageKind};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// All that the recorder knows.
#[derive(Debug)]
pub(super) struct State {
    pub(super) mode: Mode,
    pub(super) began: Instant,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) notes: Vec<Event>,
    pub(super) seen: BTreeMap<Signature, u32>,
    pub(super) background: BTreeSet<String>,
    /// Connections on which background traffic was seen last.
    pub(super) background_connections: BTreeSet<u64>,
    /// What was asked last, by connection.
    pub(super) asked: BTreeMap<u64, Signature>,
    pub(super) plan: Option<Hold>,
    pub(super) held: Option<Held>,
    pub(super) race: Option<Race>,
    pub(super) active: Instant,
    /// When a delivery was named last, or something was done to one.
    pub(super) named: Instant,
    pub(super) open: BTreeMap<u64, Instant>,
    pub(super) connections: u64,
    pub(super) ids: DeliveryIds,
    /// How often each dependency was called about each delivery of an earlier trial.
    pub(super) calls: BTreeMap<(usize, String), u64>,
}

/// What that which is said now belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing is delivered: whatever is said now is said anyway, and will be said again.
    Listening,
    Idle,
    Trial,
}

/// An exchange that waits.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) exchange: Exchange,
    pub(super) release: oneshot::Sender<Release>,
    pub(super) told: bool,
}

/// Deliveries that are at work at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Race {
    pub(super) runners: u32,
    pub(super) until: Instant,
}

// === impl State ===

impl State {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            mode: Mode::Idle,
            began: now,
            exchanges: Vec::new(),
            notes: Vec::new(),
            seen: BTreeMap::new(),
            background: BTreeSet::new(),
            background_connections: BTreeSet::new(),
            asked: BTreeMap::new(),
            plan: None,
            held: None,
            race: None,
            active: now,
            named: now,
            open: BTreeMap::new(),
            connections: 0,
            ids: DeliveryIds::default(),
            calls: BTreeMap::new(),
        }
    }

    /// Forgets a trial, all but the calls it made: a late one may still be added to them.
    pub(super) fn begin(&mut self) {
        for exchange in std::mem::take(&mut self.exchanges) {
            if exchange.is_request() && exchange.forwarded {
                for name in self.ids.named(&exchange.bytes) {
                    let signature = (exchange.boundary.signature.dependency, name);
                    *self.calls.entry(signature).or_default() += 1;
                }
            }
        }
        let now = Instant::now();
        self.mode = Mode::Trial;
        self.began = now;
        self.active = now;
        self.named = now;
        self.notes.clear();
        self.seen.clear();
        self.open.clear();
        self.ids.own.clear();
        self.plan = None;
        self.held = None;
        self.race = None;
    }

    /// Whether this would be said anyway. What answers background traffic is background traffic.
    pub(super) fn is_background(
        &mut self,
        connection_info: &ConnectionInfo,
        outward: bool,
        shape: &str,
        message: &Message,
    ) -> bool {
        if !outward {
            return self
                .background_connections
                .contains(&connection_info.connection);
        }
        // A write with values in it may be part of a delivery, too.
        let telling = !common(shape) && (message.kind == MessageKind::Read || !shape.contains('#'));
        if self.mode == Mode::Listening && message.kind != MessageKind::Housekeeping && telling {
            self.background.insert(shape.to_owned());
        }
        let background = self.background.contains(shape);
        if background {
            self.background_connections
                .insert(connection_info.connection);
        } else {
            self.background_connections
                .remove(&connection_info.connection);
        }
        background
    }

    pub(super) fn add(
        &mut self,
        connection_info: &ConnectionInfo,
        outward: bool,
        shape: String,
        message: Message,
        bytes: &[u8],
    ) -> ExchangeRef {
        let now = Instant::now();
        // A poll that finds nothing is wrapped in these words, too.
        if !common(&shape) {
            self.active = now;
        }
        if outward {
            if self.ids.attribute(bytes) != Attribution::Unnamed {
                self.named = now;
            }
            self.open.insert(connection_info.connection, now);
        } else {
            self.open.remove(&connection_info.connection);
        }
        let signature = Signature {
            process: connection_info.process,
            dependency: connection_info.dependency,
            outward,
            shape,
        };
        let nth = self.seen.entry(signature.clone()).or_default();
        *nth += 1;
        let boundary = Boundary {
            signature,
            nth: *nth,
        };
        let mut exchange = Exchange {
            number: u32::try_from(self.exchanges.len() + 1).unwrap_or(u32::MAX),
            boundary,
            connection: connection_info.connection,
            lane: connection_info.lane.clone(),
            message,
            at: self.began.elapsed(),
            bytes: Vec::new(),
            forwarded: false,
            late: self.mode != Mode::Trial,
        };
        exchange.keep(bytes);
        self.exchanges.push(exchange);
        ExchangeRef {
            began: self.began,
            index: self.exchanges.len() - 1,
        }
    }

    pub(super) fn permit(
        &mut self,
        connection_info: &ConnectionInfo,
        current: ExchangeRef,
    ) -> Permit {
        let Some(exchange) = self.current(current).cloned() else {
            return Permit::Forward;
        };
        if exchange.late {
            return Permit::Forward;
        }
        let planned = self.plan.as_ref().is_some_and(|hold| exchange.is(hold));
        if planned && self.ids.asked(&exchange) != Attribution::EarlierTrial {
            let (release, wait) = oneshot::channel();
            self.plan = None;
            self.held = Some(Held {
                exchange,
                release,
                told: false,
            });
            return Permit::Wait(wait);
        }
        if exchange.is_request() {
            self.asked
                .insert(connection_info.connection, exchange.boundary.signature);
            return Permit::Forward;
        }
        match (self.race, self.asked.get(&connection_info.connection)) {
            (Some(_), Some(question)) => Permit::Meet(question.clone()),
            (None, _) | (_, None) => Permit::Forward,
        }
    }

    pub(super) fn current(&mut self, current: ExchangeRef) -> Option<&mut Exchange> {
        if self.began != current.began {
            return None;
        }
        self.exchanges.get_mut(current.index)
    }

    pub(super) fn take_held(&mut self) -> Option<Exchange> {
        let held = self.held.as_mut().filter(|held| !held.told)?;
        held.told = true;
        Some(held.exchange.clone())
    }
}

/// Words that any transaction begins and ends with say nothing about who speaks.
fn common(shape: &str) -> bool {
    ["BEGIN", "COMMIT", "ROLLBACK", ""].contains(&shape)
}
