//! Sweeping tombstones: a row of its own says when each expires, so that only those are read that have.

use crate::codec::{self, RowKey};
use crate::engine::Engine;
use crate::store::EmbeddedStore;
use semel::Error;
use semel::letter::LetterId;

/// How many tombstones go in one request: the writer is busy with them for about a millisecond.
const CHUNK_ITEMS_MAX: usize = 64;

impl EmbeddedStore {
    /// Removes the tombstones of letters that have expired.
    pub(crate) async fn sweep_tombstones(&self) -> Result<(), Error> {
        loop {
            let ids = self.read(expired).await?;
            let found = ids.len();
            let swept = self.ask(move |group| group.sweep_letters(&ids)).await?;
            // One that stays although it was found is looked at again by the next sweep.
            if found < CHUNK_ITEMS_MAX || swept == 0 {
                return Ok(());
            }
        }
    }
}

/// The oldest tombstones that have expired.
fn expired(engine: &Engine) -> Result<Vec<LetterId>, Error> {
    let range = codec::tombstones(engine.now());
    let mut ids = Vec::new();
    for row in engine
        .keyspace
        .range::<RowKey, _>(range)
        .take(CHUNK_ITEMS_MAX)
    {
        let at = row
            .key()
            .map_err(|error| engine.engine_error("read", error))?;
        ids.extend(codec::tombstone_of(&at));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::EmbeddedSettings;
    use semel::clock::{ManualClock, Time};
    use semel::letter::{Letter, Mark, Marked, Put, Reason};
    use semel::protocol::Fence;
    use semel::store::{Letters, Store};
    use std::sync::Arc;
    use std::time::Duration;

    fn letter(n: u8) -> Letter {
        Letter {
            id: LetterId([n; 32]),
            key: None,
            route: "orders".into(),
            reason: Reason::Invalid,
            fence: Fence(0),
            retention: Duration::from_secs(60),
            redriven: false,
            alarmed: false,
            delivery: "delivery".into(),
        }
    }

    async fn rows(store: &EmbeddedStore) -> usize {
        let session = store.session().await.unwrap();
        let keys = session.engine.keyspace.iter().map(|row| row.key());
        let all: Vec<RowKey> = keys.collect::<Result<_, _>>().unwrap();
        all.iter().filter(|at| **at != codec::HEAD).count()
    }

    #[tokio::test]
    async fn nothing_is_left_of_tombstones_that_have_expired() {
        const LETTERS: u8 = 3 * 64;
        let home = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(Time(1_800_000_000_000_000)));
        let settings = EmbeddedSettings {
            clock: Arc::<ManualClock>::clone(&clock),
            ..EmbeddedSettings::default()
        };
        let store = EmbeddedStore::open(home.path().join("data"), settings).unwrap();
        for n in 0..LETTERS {
            assert_eq!(store.put(&letter(n)).await, Ok(Put::Applied));
            let closed = store.mark(&letter(n).id, Mark::Closed).await;
            assert_eq!(closed, Ok(Marked::Applied));
        }
        let reopened = Letter {
            fence: Fence(1),
            ..letter(0)
        };
        assert_eq!(store.put(&reopened).await, Ok(Put::Applied));
        clock.advance(Duration::from_secs(59));
        store.sweep(None).await.unwrap();
        assert_eq!(rows(&store).await, 2 * usize::from(LETTERS));
        clock.advance(Duration::from_secs(2));
        store.sweep(None).await.unwrap();
        assert_eq!(
            rows(&store).await,
            2,
            "the open letter and its place in the list"
        );
        assert_eq!(store.get(&reopened.id).await, Ok(Some(reopened.clone())));
    }
}
