//! A store with somebody listening in.

use async_trait::async_trait;
use bytes::Bytes;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::record::{
    Acted, Claim, Claimed, Fail, Held, Lease, Record, Resolution, State, StepBegun,
};
use semel::store::{Cursor, Page, Sharing, Swept};
use semel::{Error, Key, Store};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// What is done around the calls that decide about a run. Each makes the call itself, or not.
#[async_trait]
pub trait Tap: Debug + Send + Sync + 'static {
    /// Around a claim.
    async fn claim(&self, store: &dyn Store, claim: &Claim) -> Result<Claimed, Error> {
        store.claim(claim).await
    }

    /// Around a renewal.
    async fn renew(
        &self,
        store: &dyn Store,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> Result<Held, Error> {
        store.renew(lease, lease_for, retention).await
    }

    /// Around a completion.
    async fn complete(
        &self,
        store: &dyn Store,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        store.complete(lease, result, retention).await
    }

    /// Around a failure.
    async fn fail(&self, store: &dyn Store, lease: &Lease, how: &Fail) -> Result<Held, Error> {
        store.fail(lease, how).await
    }

    /// Around giving back.
    async fn release(&self, store: &dyn Store, lease: &Lease) -> Result<Held, Error> {
        store.release(lease).await
    }
}

/// A store whose claims, renewals and ends of runs go through a [`Tap`].
#[derive(Debug)]
pub struct Tapped<T> {
    /// The store itself.
    pub store: Arc<dyn Store>,
    /// Who listens in.
    pub tap: T,
}

// === impl Tapped ===

#[async_trait]
impl<T: Tap> Store for Tapped<T> {
    fn sharing(&self) -> Sharing {
        self.store.sharing()
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        self.tap.claim(self.store.as_ref(), claim).await
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> Result<Held, Error> {
        let store = self.store.as_ref();
        self.tap.renew(store, lease, lease_for, retention).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        let store = self.store.as_ref();
        self.tap.complete(store, lease, result, retention).await
    }

    async fn fail(&self, lease: &Lease, how: &Fail) -> Result<Held, Error> {
        self.tap.fail(self.store.as_ref(), lease, how).await
    }

    async fn release(&self, lease: &Lease) -> Result<Held, Error> {
        self.tap.release(self.store.as_ref(), lease).await
    }

    async fn look(&self, key: &Key) -> Result<Option<Record>, Error> {
        self.store.look(key).await
    }

    async fn step_begin(&self, lease: &Lease, name: &str) -> Result<StepBegun, Error> {
        self.store.step_begin(lease, name).await
    }

    async fn step_restart(&self, lease: &Lease, name: &str) -> Result<Held, Error> {
        self.store.step_restart(lease, name).await
    }

    async fn step_complete(
        &self,
        lease: &Lease,
        name: &str,
        result: &Bytes,
    ) -> Result<Held, Error> {
        self.store.step_complete(lease, name, result).await
    }

    async fn resolve(&self, key: &Key, how: &Resolution) -> Result<Acted, Error> {
        self.store.resolve(key, how).await
    }

    async fn redrive(&self, key: &Key) -> Result<Acted, Error> {
        self.store.redrive(key).await
    }

    async fn release_by_operator(&self, key: &Key) -> Result<Acted, Error> {
        self.store.release_by_operator(key).await
    }

    async fn forget(&self, key: &Key) -> Result<Acted, Error> {
        self.store.forget(key).await
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

    async fn ready(&self) -> Result<(), Error> {
        self.store.ready().await
    }

    async fn letter_put(&self, letter: &Letter) -> Result<Put, Error> {
        self.store.letter_put(letter).await
    }

    async fn letter_list(
        &self,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LetterHead>, Error> {
        self.store.letter_list(after, limit).await
    }

    async fn letter_get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        self.store.letter_get(id).await
    }

    async fn letter_mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        self.store.letter_mark(id, mark).await
    }
}
