//! A store that wraps another: here it counts what is asked of it. A wrapper has one method to think about.

use async_trait::async_trait;
use semel::memory::MemoryStore;
use semel::protocol::{Answer, Operation, Record, State};
use semel::store::{Cursor, Page, Sharing, Swept};
use semel::{Error, Fingerprint, Key, Outcome, Semel, Settings, Store, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug)]
struct Counted<S> {
    store: S,
    claims: AtomicU32,
    completions: AtomicU32,
}

#[async_trait]
impl<S: Store> Store for Counted<S> {
    fn sharing(&self) -> Sharing {
        self.store.sharing()
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        if matches!(operation, Operation::Claim(_)) {
            self.claims.fetch_add(1, Ordering::Relaxed);
        }
        if matches!(operation, Operation::Complete { .. }) {
            self.completions.fetch_add(1, Ordering::Relaxed);
        }
        self.store.apply(operation).await
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        self.store.list(state, after, limit).await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        self.store.sweep(after).await
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Error> {
    let store = Arc::new(Counted {
        store: MemoryStore::new(),
        claims: AtomicU32::new(0),
        completions: AtomicU32::new(0),
    });
    let semel = Semel::with_settings(store.clone(), Settings::default());
    for _ in 0..3 {
        let work = Work::new(Key::from_bytes([7; 32]), Fingerprint::of(b"order 7"));
        let ended = semel.run(work, |_run| async { Ok(Outcome::ok("charged")) });
        drop(ended.await?);
    }
    // The second and third delivery were answered from memory.
    assert_eq!(store.claims.load(Ordering::Relaxed), 1);
    assert_eq!(store.completions.load(Ordering::Relaxed), 1);
    Ok(())
}
