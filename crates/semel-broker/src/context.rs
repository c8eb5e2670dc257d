//! What both services stand on.

use crate::clock::Clock;
use crate::faults::Faults;
use crate::history::History;
use crate::http_client::HttpClient;
use crate::interface::Refusals;
use crate::issuer::Issuer;
use crate::policies::Policies;
use crate::storage::{Batch, Storage, StorageError, Table};
use std::sync::Arc;
use std::time::Duration;

/// Where the clock's distance from the machine's is kept: microseconds.
const FORWARD: &[u8] = b"clock forward";

/// The clock, the storage, the faults, and the way out.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) clock: Clock,
    pub(crate) storage: Storage,
    pub(crate) faults: Faults,
    pub(crate) history: History,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) http_client: HttpClient,
    pub(crate) issuer: Issuer,
    pub(crate) policies: Policies,
}

// === impl Context ===

impl Context {
    /// A context whose tokens name `issuer`, a URL.
    pub(crate) fn open(
        storage: Storage,
        issuer: String,
        faults: Faults,
        history_max: usize,
    ) -> Result<Self, StorageError> {
        let forward = storage.get(Table::Meta, FORWARD)?;
        let forward = forward.and_then(|bytes| <[u8; 8]>::try_from(&*bytes).ok());
        let forward = Duration::from_micros(forward.map_or(0, u64::from_be_bytes));
        let clock = Clock::start(forward);
        Ok(Self {
            http_client: HttpClient::new(clock.clone()),
            issuer: Issuer::new(clock.clone(), storage.clone(), issuer),
            history: History::new(history_max),
            refusals: Arc::new(Refusals::new(clock.clone())),
            policies: Policies::new(storage.clone()),
            faults,
            storage,
            clock,
        })
    }

    /// Puts the clock forward, also for a broker that is started later in the same directory.
    pub(crate) async fn advance(&self, by: Duration) -> Result<(), StorageError> {
        let forward = self.clock.advance(by);
        let micros = u64::try_from(forward.as_micros()).unwrap_or(u64::MAX);
        let mut batch = Batch::default();
        batch.put(Table::Meta, FORWARD, micros.to_be_bytes().to_vec());
        self.storage.commit(batch).await
    }

    /// For tests: on a storage, with these faults.
    #[cfg(test)]
    pub(crate) fn in_test(storage: Storage, faults: &[&str]) -> Arc<Self> {
        let faults = faults.iter().map(|text| text.parse().unwrap()).collect();
        let (issuer, faults) = ("http://127.0.0.1:1".to_owned(), Faults::new(1, faults));
        Arc::new(Self::open(storage, issuer, faults, 10_000).unwrap())
    }
}
