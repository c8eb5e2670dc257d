//! Snares: a fault that waits at a named point of a process, for its so-manieth visit.

use super::scene::Role;
use crate::crash::{Fault, Ledger, Line};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};

/// A fault that waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Snare {
    /// The point's word.
    pub point: String,
    /// On which visit, from 1.
    pub visit: u32,
    /// What happens there.
    pub fault: Fault,
    /// Whether it closes again after as many visits more.
    pub again: bool,
}

/// A point of the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerPoint {
    /// The request is read, and nothing was done.
    BeforeEffect,
    /// The effect has happened.
    AfterEffect,
    /// The answer is made and not sent.
    BeforeAnswer,
}

/// The snare of this process, and how often its point was visited.
#[derive(Debug)]
pub(super) struct Set {
    ledger: Ledger,
    snare: Option<Snare>,
    visits: AtomicU32,
}

/// The points of a gate that lie around its calls to the store.
pub(super) const CLAIM_SENT: &str = "claim_sent";
pub(super) const BEFORE_COMPLETE: &str = "before_complete";
pub(super) const COMPLETE_SENT: &str = "complete_sent";

// === impl HandlerPoint ===

impl HandlerPoint {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::BeforeEffect, Self::AfterEffect, Self::BeforeAnswer];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::BeforeEffect => "before_effect",
            Self::AfterEffect => "after_effect",
            Self::BeforeAnswer => "before_answer",
        }
    }
}

// === impl Set ===

impl Set {
    pub(super) fn new(ledger: Ledger, snare: Option<Snare>) -> Self {
        Self {
            ledger,
            snare,
            visits: AtomicU32::new(0),
        }
    }

    /// The process comes by: the snare closes here if it was set here, and for this visit.
    pub(super) fn pass(&self, point: &str) {
        let Some(snare) = self.snare.as_ref().filter(|snare| snare.point == point) else {
            return;
        };
        let visit = self.visits.fetch_add(1, Ordering::Relaxed) + 1;
        let closes = if snare.again {
            visit.is_multiple_of(snare.visit)
        } else {
            visit == snare.visit
        };
        if !closes {
            return;
        }
        self.ledger.write(&Line::Sprung {
            point: point.to_owned(),
            fault: snare.fault,
        });
        let signal = match snare.fault {
            Fault::Kill => Signal::KILL,
            Fault::Pause => Signal::STOP,
        };
        kill_process(getpid(), signal).expect("a process may signal itself");
    }

    /// Whether a call should be let go for a moment only before it comes by `point`.
    pub(super) fn waits_at(&self, point: &str) -> bool {
        self.snare.as_ref().is_some_and(|it| it.point == point)
    }
}

/// Every point of a role, by word.
pub(super) fn points(role: Role) -> Vec<&'static str> {
    match role {
        Role::Gate(_) => {
            let of_the_way = semel_gate::failpoint::Point::ALL.map(|point| point.word());
            let mut points = of_the_way.to_vec();
            points.extend([CLAIM_SENT, BEFORE_COMPLETE, COMPLETE_SENT]);
            points
        }
        Role::Broker => semel_broker::failpoint::Point::ALL
            .map(|point| point.word())
            .to_vec(),
        Role::Handler => HandlerPoint::ALL.map(HandlerPoint::word).to_vec(),
    }
}
