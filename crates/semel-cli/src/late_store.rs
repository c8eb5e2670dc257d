//! A store that is opened while its gate already listens: until then every call hears that it is not there, which is
//! what the same call hears of a store that went away. So senders are told to come again, `/readyz` is 503, and the
//! platform does not end the process for its store.

use crate::store_url::StoreUrl;
use async_trait::async_trait;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::protocol::{Answer, Operation, Record, State};
use semel::store::{Cursor, Letters, Page, Sharing, Swept};
use semel::{Error, Key, Store};
use std::sync::{Arc, OnceLock};

/// A store to be.
#[derive(Debug)]
pub(crate) struct LateStore {
    sharing: Sharing,
    opened: OnceLock<Arc<dyn Letters>>,
}

// === impl LateStore ===

impl LateStore {
    pub(crate) const fn of(url: &StoreUrl) -> Self {
        let sharing = match url {
            StoreUrl::Embedded(_) => Sharing::OneProcess,
            StoreUrl::Postgres(_) | StoreUrl::Redis(_) | StoreUrl::Firestore(_) => Sharing::Shared,
        };
        Self {
            sharing,
            opened: OnceLock::new(),
        }
    }

    /// From now on it is this one. Only the first call counts.
    pub(crate) fn is(&self, store: Arc<dyn Letters>) {
        self.opened.get_or_init(|| store);
    }

    fn store(&self) -> Result<&dyn Letters, Error> {
        let opened = self.opened.get().map(|store| &**store);
        opened.ok_or_else(|| {
            Error::unavailable(
                "the gate waits for its store since it started; nothing was written, a retry is safe",
            )
        })
    }
}

#[async_trait]
impl Store for LateStore {
    fn sharing(&self) -> Sharing {
        self.sharing
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        self.store()?.apply(operation).await
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        Store::list(self.store()?, state, after, limit).await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        self.store()?.sweep(after).await
    }
}

#[async_trait]
impl Letters for LateStore {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        self.store()?.put(letter).await
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        Letters::list(self.store()?, after, limit).await
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        self.store()?.get(id).await
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        self.store()?.mark(id, mark).await
    }
}
