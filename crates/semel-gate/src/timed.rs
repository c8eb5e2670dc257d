//! A store that is timed: seconds of every call, by verb.

use async_trait::async_trait;
use bytes::Bytes;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::record::{
    Acted, Claim, Claimed, Fail, Held, Lease, Record, Resolution, State, StepBegun,
};
use semel::store::{Cursor, Page, Sharing, Swept};
use semel::{Error, Key, Store};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Seconds of store calls.
pub(crate) type StoreSeconds = Family<Verb, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Verb {
    verb: &'static str,
}

/// Hands every call on, and notes how long it took, whatever it answered.
#[derive(Debug)]
pub(crate) struct Timed {
    store: Arc<dyn Store>,
    seconds: StoreSeconds,
}

impl Timed {
    pub(crate) fn new(store: Arc<dyn Store>, seconds: StoreSeconds) -> Self {
        Self { store, seconds }
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
impl Store for Timed {
    fn sharing(&self) -> Sharing {
        self.store.sharing()
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        self.time("claim", self.store.claim(claim)).await
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> Result<Held, Error> {
        self.time("renew", self.store.renew(lease, lease_for, retention))
            .await
    }

    async fn complete(
        &self,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        self.time("complete", self.store.complete(lease, result, retention))
            .await
    }

    async fn fail(&self, lease: &Lease, how: &Fail) -> Result<Held, Error> {
        self.time("fail", self.store.fail(lease, how)).await
    }

    async fn release(&self, lease: &Lease) -> Result<Held, Error> {
        self.time("release", self.store.release(lease)).await
    }

    async fn look(&self, key: &Key) -> Result<Option<Record>, Error> {
        self.time("look", self.store.look(key)).await
    }

    async fn step_begin(&self, lease: &Lease, name: &str) -> Result<StepBegun, Error> {
        self.time("step_begin", self.store.step_begin(lease, name))
            .await
    }

    async fn step_restart(&self, lease: &Lease, name: &str) -> Result<Held, Error> {
        self.time("step_restart", self.store.step_restart(lease, name))
            .await
    }

    async fn step_complete(
        &self,
        lease: &Lease,
        name: &str,
        result: &Bytes,
    ) -> Result<Held, Error> {
        self.time(
            "step_complete",
            self.store.step_complete(lease, name, result),
        )
        .await
    }

    async fn resolve(&self, key: &Key, how: &Resolution) -> Result<Acted, Error> {
        self.time("resolve", self.store.resolve(key, how)).await
    }

    async fn redrive(&self, key: &Key) -> Result<Acted, Error> {
        self.time("redrive", self.store.redrive(key)).await
    }

    async fn release_by_operator(&self, key: &Key) -> Result<Acted, Error> {
        self.time("release_by_operator", self.store.release_by_operator(key))
            .await
    }

    async fn forget(&self, key: &Key) -> Result<Acted, Error> {
        self.time("forget", self.store.forget(key)).await
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        self.time("list", self.store.list(state, after, limit))
            .await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        self.time("sweep", self.store.sweep(after)).await
    }

    async fn ready(&self) -> Result<(), Error> {
        self.time("ready", self.store.ready()).await
    }

    async fn letter_put(&self, letter: &Letter) -> Result<Put, Error> {
        self.time("letter_put", self.store.letter_put(letter)).await
    }

    async fn letter_list(
        &self,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LetterHead>, Error> {
        self.time("letter_list", self.store.letter_list(after, limit))
            .await
    }

    async fn letter_get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        self.time("letter_get", self.store.letter_get(id)).await
    }

    async fn letter_mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        self.time("letter_mark", self.store.letter_mark(id, mark))
            .await
    }
}
