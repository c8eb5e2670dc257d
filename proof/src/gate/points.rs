//! The named points of gate, broker and handler, where a fault can be armed.

use crate::harness::Role;

/// A point of the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandlerPoint {
    /// The request is read, and nothing was done.
    BeforeEffect,
    /// The effect has happened.
    AfterEffect,
    /// The answer is made and not sent.
    BeforeAnswer,
}

/// The points of a gate that lie around its calls to the store.
pub(super) const CLAIM_SENT: &str = "claim_sent";
pub(super) const BEFORE_COMPLETE: &str = "before_complete";
pub(super) const COMPLETE_SENT: &str = "complete_sent";

// === impl HandlerPoint ===

impl HandlerPoint {
    pub(crate) const ALL: [Self; 3] = [Self::BeforeEffect, Self::AfterEffect, Self::BeforeAnswer];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::BeforeEffect => "before_effect",
            Self::AfterEffect => "after_effect",
            Self::BeforeAnswer => "before_answer",
        }
    }
}

/// Every point of a role, by name.
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
        Role::Worker => Vec::new(),
    }
}
