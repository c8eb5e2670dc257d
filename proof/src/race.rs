//! Races: many processes on a few hot keys, with leases of a few milliseconds, every kind of lateness, and an operator
//! and a sweeper in between. The checker knows only the rules of the protocol, and judges every answer that anybody
//! got; on PostgreSQL also every change of every record.

mod call;
mod worker;
mod attack;
mod caller;
mod handler;
mod log;
mod drive;
mod history;
mod check;
mod report;
mod sabotage;
mod suite;

pub use call::{
    Act, Asked, Call, Ending, Failing, Kind, Mark, Nonce, OwnerId, RunId, Terms, Told, digest,
    micros,
};
pub use check::{Rule, Verdict, Violation, check};
pub use drive::drive;
pub use history::{Change, Effect, History, Version};
pub use report::{Report, Tally};
pub use sabotage::Sabotage;
pub use suite::{Arena, prove, show_teeth};
pub use worker::{Order, work};
