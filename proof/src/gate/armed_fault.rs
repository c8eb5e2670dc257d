//! Armed faults: a fault that waits at a named point of a process, for its nth visit.

use super::deployment::Role;
use crate::crash::{Ledger, Line, ProcessFault};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};

/// A fault that waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ArmedFault {
    /// The point's word.
    pub point: String,
    /// On which visit, from 1.
    pub visit: u32,
    /// What happens there.
    pub fault: ProcessFault,
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

/// The armed fault of this process, and how often its point was visited.
#[derive(Debug)]
pub(super) struct FaultPoints {
    ledger: Ledger,
    armed_fault: Option<ArmedFault>,
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
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeEffect => "before_effect",
            Self::AfterEffect => "after_effect",
            Self::BeforeAnswer => "before_answer",
        }
    }
}

// === impl FaultPoints ===

impl FaultPoints {
    pub(super) fn new(ledger: Ledger, armed_fault: Option<ArmedFault>) -> Self {
        Self {
            ledger,
            armed_fault,
            visits: AtomicU32::new(0),
        }
    }

    /// The process comes by: the armed fault closes here if it was set here, and for this visit.
    pub(super) fn pass(&self, point: &str) {
        let Some(armed_fault) = self
            .armed_fault
            .as_ref()
            .filter(|armed_fault| armed_fault.point == point)
        else {
            return;
        };
        let visit = self.visits.fetch_add(1, Ordering::Relaxed) + 1;
        let closes = if armed_fault.again {
            visit.is_multiple_of(armed_fault.visit)
        } else {
            visit == armed_fault.visit
        };
        if !closes {
            return;
        }
        self.ledger.write(&Line::PointHit {
            point: point.to_owned(),
            fault: armed_fault.fault,
        });
        let signal = match armed_fault.fault {
            ProcessFault::Kill => Signal::KILL,
            ProcessFault::Pause => Signal::STOP,
        };
        kill_process(getpid(), signal).expect("a process may signal itself");
    }

    /// Whether a call should be let go for a moment only before it comes by `point`.
    pub(super) fn waits_at(&self, point: &str) -> bool {
        self.armed_fault
            .as_ref()
            .is_some_and(|it| it.point == point)
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
        Role::Handler => HandlerPoint::ALL.map(HandlerPoint::name).to_vec(),
    }
}
