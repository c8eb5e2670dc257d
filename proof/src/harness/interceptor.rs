//! A store with somebody listening in.

use async_trait::async_trait;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::protocol::{Answer, Operation, Record, State};
use semel::store::{Cursor, Letters, Page, Sharing, Swept};
use semel::{Error, Key, Store};
use std::fmt::Debug;
use std::sync::Arc;

/// Somebody around the operations of a store: makes each of them, or not.
#[async_trait]
pub(crate) trait Interceptor: Debug + Send + Sync + 'static {
    async fn apply(&self, store: &dyn Store, operation: &Operation) -> Result<Answer, Error>;
}

/// A store whose operations go through a [`Interceptor`].
#[derive(Debug)]
pub(crate) struct Intercepted<T> {
    pub(crate) store: Arc<dyn Letters>,
    pub(crate) interceptor: T,
}

// === impl Intercepted ===

#[async_trait]
impl<T: Interceptor> Store for Intercepted<T> {
    fn sharing(&self) -> Sharing {
        self.store.sharing()
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        self.interceptor.apply(self.store.as_ref(), operation).await
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        Store::list(self.store.as_ref(), state, after, limit).await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        self.store.sweep(after).await
    }
}

#[async_trait]
impl<T: Interceptor> Letters for Intercepted<T> {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        self.store.put(letter).await
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        Letters::list(self.store.as_ref(), after, limit).await
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        self.store.get(id).await
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        self.store.mark(id, mark).await
    }
}
