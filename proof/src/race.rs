//! Races: many processes on a few hot keys, with leases of a few milliseconds, every kind of lateness, and an operator
//! and a sweeper in between. The checker knows only the rules of the protocol, and judges every answer that anybody
//! got; on PostgreSQL also every change of every record.

mod call;
mod worker;
mod racer;
mod caller;
mod transaction;
mod log;
mod drive;
mod history;
mod check;
mod report;
mod sabotage;
mod suite;

pub use call::{
    Call, ClaimTerms, FailureKind, FailureTerms, Nonce, OperatorCall, OwnerId, RecordedEnd,
    Request, Response, ResultId, RunId, digest, micros,
};
pub use check::{RaceVerdict, RaceViolation, Rule, check};
pub use drive::drive;
pub use history::{Change, Effect, History, Version};
pub use report::{RaceCounts, RaceReport};
pub use sabotage::Sabotage;
pub use suite::{SharedStore, convict_broken_builds, prove};
pub use worker::{RacerConfig, work};
