//! Injected faults: what can be done to the processes of a run and to what connects them, and what it met.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A fault that was injected, and what it met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedFault {
    /// What was done.
    pub kind: FaultKind,
    /// To which process, by number, if it was done to one.
    pub process: Option<u32>,
    /// At which point, if it was one with a name.
    pub point: Option<String>,
    /// The deliveries or runs that it met in flight.
    pub in_flight: BTreeSet<u64>,
}

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// SIGKILL.
    Kill(Role),
    /// SIGSTOP, past the lease, then SIGCONT.
    Pause(Role),
    /// SIGTERM, and a new one.
    Drain,
    /// The connections over a wire are cut.
    Cut,
    /// A wire swallows what it is given for a while, and then breaks.
    Blackhole,
    /// A process is killed or paused when half of a message went over a wire.
    PartialMessage,
    /// The store crashes and comes back.
    Outage,
    /// The store's clock jumps.
    ClockJump,
}

/// What a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// It runs deliveries, or races others for keys.
    Worker,
    /// One of the gates, by its number.
    Gate(usize),
    /// The broker.
    Broker,
    /// The handler.
    Handler,
}

/// What is done to a process at a named point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProcessFault {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, past the lease, then SIGCONT.
    Pause,
}

// === impl FaultKind ===

impl FaultKind {
    /// What was done to a process, if it was done to one, and to which role.
    #[must_use]
    pub const fn to_process(self) -> Option<(Role, ProcessFault)> {
        match self {
            Self::Kill(role) => Some((role, ProcessFault::Kill)),
            Self::Pause(role) => Some((role, ProcessFault::Pause)),
            Self::Drain
            | Self::Cut
            | Self::Blackhole
            | Self::PartialMessage
            | Self::Outage
            | Self::ClockJump => None,
        }
    }
}

// === impl Role ===

impl Role {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Gate(_) => "gate",
            Self::Broker => "broker",
            Self::Handler => "handler",
        }
    }
}

// === impl ProcessFault ===

impl ProcessFault {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Kill, Self::Pause];
}
