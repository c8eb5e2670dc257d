//! Partial messages: points in the middle of a message, which no process can name; the wire that carries it does.

use crate::harness::{ProcessFault, Role};
use semel_rig::Direction;

/// A point in the middle of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartialMessage {
    pub(super) point: &'static str,
    /// Who is hit when half of it went over; a gate is the one at its end.
    pub(super) victim: Role,
    pub(super) link: Between,
    pub(super) way: Direction,
}

/// Whom a message goes between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// The broker and a gate.
    Front,
    /// A gate and the handler.
    Handler,
}

// === impl PartialMessage ===

impl PartialMessage {
    pub(super) const ALL: [Self; 5] = [
        Self {
            point: "half_body_sent",
            victim: Role::Gate(0),
            link: Between::Handler,
            way: Direction::ToTarget,
        },
        Self {
            point: "half_resp",
            victim: Role::Gate(0),
            link: Between::Handler,
            way: Direction::ToClient,
        },
        Self {
            point: "half_reply",
            victim: Role::Gate(0),
            link: Between::Front,
            way: Direction::ToClient,
        },
        Self {
            point: "half_dispatched",
            victim: Role::Broker,
            link: Between::Front,
            way: Direction::ToTarget,
        },
        Self {
            point: "half_answered",
            victim: Role::Handler,
            link: Between::Handler,
            way: Direction::ToClient,
        },
    ];

    /// Every one with every fault.
    pub(super) fn faults() -> Vec<(Self, ProcessFault)> {
        let partial_messages = Self::ALL.into_iter();
        partial_messages
            .flat_map(|partial| ProcessFault::ALL.map(|fault| (partial, fault)))
            .collect()
    }
}
