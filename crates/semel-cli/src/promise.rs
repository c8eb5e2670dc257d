//! Promises: what a route's settings and its store prove of its effects, by the table in `docs/promises.md` and nothing
//! else.

mod store;
mod disk;
mod table;
mod span;
mod delivery;
mod line;
#[cfg(test)]
mod tests;

pub(crate) use disk::Disk;
pub(crate) use line::{crash_line, line, lines};
pub(crate) use store::{Declared, Failover, Store, StoreFacts};
pub(crate) use table::{Shown, assumed, demanded, shown};
