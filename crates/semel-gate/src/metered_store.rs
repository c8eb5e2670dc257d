//! A store whose calls are metered: seconds of every operation, by its word.

use crate::metrics::Seconds;
use crate::store_times::StoreTimes;
use async_trait::async_trait;
use prometheus_client::encoding::EncodeLabelSet;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::protocol::{Answer, Operation, Record, State};
use semel::store::{Cursor, Letters, Page, Sharing, Swept};
use semel::{Error, Key, Store};
use std::future::Future;
use std::sync::Arc;
use tokio::time::Instant;

/// What was asked of a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Verb {
    verb: &'static str,
}

/// Hands every call on, and notes how long it took, whatever it answered.
#[derive(Debug)]
pub(crate) struct MeteredStore {
    store: Arc<dyn Letters>,
    seconds: Seconds<Verb>,
    /// Of operations on records, for the page.
    times: Arc<StoreTimes>,
}

impl MeteredStore {
    pub(crate) fn new(
        store: Arc<dyn Letters>,
        seconds: Seconds<Verb>,
        times: Arc<StoreTimes>,
    ) -> Self {
        Self {
            store,
            seconds,
            times,
        }
    }

    async fn time<T>(&self, verb: &'static str, call: impl Future<Output = T> + Send) -> T {
        let begun = Instant::now();
        let answer = call.await;
        let seconds = begun.elapsed().as_secs_f64();
        self.seconds.get_or_create(&Verb { verb }).observe(seconds);
        answer
    }
}

#[async_trait]
impl Store for MeteredStore {
    fn sharing(&self) -> Sharing {
        self.store.sharing()
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        let begun = Instant::now();
        let answer = self.time(operation.word(), self.store.apply(operation));
        let answer = answer.await;
        self.times.add(begun.elapsed());
        answer
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        let list = Store::list(self.store.as_ref(), state, after, limit);
        self.time("list", list).await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        self.time("sweep", self.store.sweep(after)).await
    }
}

#[async_trait]
impl Letters for MeteredStore {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        self.time("letter_put", self.store.put(letter)).await
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        let list = Letters::list(self.store.as_ref(), after, limit);
        self.time("letter_list", list).await
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        self.time("letter_get", self.store.get(id)).await
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        self.time("letter_mark", self.store.mark(id, mark)).await
    }
}
