//! What both services stand on.

use crate::clock::Clock;
use crate::courier::Courier;
use crate::faults::Faults;
use crate::history::History;
use crate::issuer::Issuer;
use crate::shelf::{Batch, Shelf, ShelfError, Table};
use std::time::Duration;

/// Where the clock's distance from the machine's is kept: microseconds.
const FORWARD: &[u8] = b"clock forward";

/// The time, the place where things are kept, the dice, and the way out.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) shelf: Shelf,
    pub(crate) faults: Faults,
    pub(crate) history: History,
    pub(crate) courier: Courier,
    pub(crate) issuer: Issuer,
}

// === impl World ===

impl World {
    /// A world whose tokens name `issuer`, a URL.
    pub(crate) fn open(
        shelf: Shelf,
        issuer: String,
        faults: Faults,
        history_max: usize,
    ) -> Result<Self, ShelfError> {
        let forward = shelf.get(Table::Meta, FORWARD)?;
        let forward = forward.and_then(|bytes| <[u8; 8]>::try_from(&*bytes).ok());
        let forward = Duration::from_micros(forward.map_or(0, u64::from_be_bytes));
        let clock = Clock::start(forward);
        Ok(Self {
            courier: Courier::new(clock.clone()),
            issuer: Issuer::new(clock.clone(), shelf.clone(), issuer),
            history: History::new(history_max),
            faults,
            shelf,
            clock,
        })
    }

    /// Puts the clock forward, also for a broker that is started later in the same directory.
    pub(crate) async fn advance(&self, by: Duration) -> Result<(), ShelfError> {
        let forward = self.clock.advance(by);
        let micros = u64::try_from(forward.as_micros()).unwrap_or(u64::MAX);
        let mut batch = Batch::default();
        batch.put(Table::Meta, FORWARD, micros.to_be_bytes().to_vec());
        self.shelf.commit(batch).await
    }

    /// For tests: in memory, with these faults.
    #[cfg(test)]
    pub(crate) fn for_test(faults: &[&str]) -> std::sync::Arc<Self> {
        let faults = faults.iter().map(|text| text.parse().unwrap()).collect();
        let faults = Faults::new(1, faults);
        let issuer = "http://127.0.0.1:1".to_owned();
        std::sync::Arc::new(Self::open(Shelf::in_memory(), issuer, faults, 10_000).unwrap())
    }
}
