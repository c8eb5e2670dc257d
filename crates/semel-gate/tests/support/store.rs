//! A store in memory that can be switched off, in whole or in part.

use super::within;
use async_trait::async_trait;
use bytes::Bytes;
use semel::letter::{Dropped, Letter, LetterHead, LetterId, Put};
use semel::memory::MemoryStore;
use semel::record::{
    Acted, Claim, Claimed, Fail, Held, Lease, Record, Resolution, State, StepBegun,
};
use semel::store::{Cursor, Page, Sharing, Swept};
use semel::{Error, Key, Store};
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::watch;

/// What cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Down {
    #[default]
    Nothing,
    Everything,
    /// What is said at the end of a run.
    Outcomes,
    Letters,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Switch {
    kept: MemoryStore,
    down: Mutex<Down>,
    refused: watch::Sender<usize>,
    outcomes: watch::Sender<usize>,
}

// === impl Switch ===

impl Default for Switch {
    fn default() -> Self {
        Self {
            kept: MemoryStore::new(),
            down: Mutex::default(),
            refused: watch::Sender::new(0),
            outcomes: watch::Sender::new(0),
        }
    }
}

impl Switch {
    /// The store behind the switch, which is always there.
    pub(crate) fn kept(&self) -> &MemoryStore {
        &self.kept
    }

    pub(crate) fn is(&self, down: Down) {
        *self.down.lock().unwrap() = down;
    }

    /// Waits until a call met the closed store.
    pub(crate) async fn refused(&self) {
        let mut refused = self.refused.subscribe();
        within("a call to the store", refused.wait_for(|calls| *calls > 0))
            .await
            .unwrap();
    }

    /// Waits until so many ends of runs were written.
    pub(crate) async fn outcomes(&self, count: usize) {
        let mut outcomes = self.outcomes.subscribe();
        within("a record", outcomes.wait_for(|written| *written >= count))
            .await
            .unwrap();
    }

    fn ask(&self, part: Down) -> Result<(), Error> {
        let down = *self.down.lock().unwrap();
        if down == Down::Everything || (down == part && down != Down::Nothing) {
            self.refused.send_modify(|calls| *calls += 1);
            return Err(Error::Unavailable("switched off".into()));
        }
        Ok(())
    }

    fn written<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        self.outcomes.send_modify(|written| *written += 1);
        result
    }
}

#[async_trait]
impl Store for Switch {
    fn sharing(&self) -> Sharing {
        self.kept.sharing()
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        self.ask(Down::Nothing)?;
        self.kept.claim(claim).await
    }

    async fn renew(&self, l: &Lease, lease: Duration, retention: Duration) -> Result<Held, Error> {
        self.ask(Down::Nothing)?;
        self.kept.renew(l, lease, retention).await
    }

    async fn complete(
        &self,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        self.ask(Down::Outcomes)?;
        self.written(self.kept.complete(lease, result, retention).await)
    }

    async fn fail(&self, lease: &Lease, how: &Fail) -> Result<Held, Error> {
        self.ask(Down::Outcomes)?;
        self.written(self.kept.fail(lease, how).await)
    }

    async fn release(&self, lease: &Lease) -> Result<Held, Error> {
        self.ask(Down::Outcomes)?;
        self.written(self.kept.release(lease).await)
    }

    async fn look(&self, key: &Key) -> Result<Option<Record>, Error> {
        self.ask(Down::Nothing)?;
        self.kept.look(key).await
    }

    async fn step_begin(&self, lease: &Lease, name: &str) -> Result<StepBegun, Error> {
        self.ask(Down::Nothing)?;
        self.kept.step_begin(lease, name).await
    }

    async fn step_restart(&self, lease: &Lease, name: &str) -> Result<Held, Error> {
        self.ask(Down::Nothing)?;
        self.kept.step_restart(lease, name).await
    }

    async fn step_complete(&self, l: &Lease, name: &str, result: &Bytes) -> Result<Held, Error> {
        self.ask(Down::Nothing)?;
        self.kept.step_complete(l, name, result).await
    }

    async fn resolve(&self, key: &Key, how: &Resolution) -> Result<Acted, Error> {
        self.ask(Down::Nothing)?;
        self.kept.resolve(key, how).await
    }

    async fn redrive(&self, key: &Key) -> Result<Acted, Error> {
        self.ask(Down::Nothing)?;
        self.kept.redrive(key).await
    }

    async fn release_by_operator(&self, key: &Key) -> Result<Acted, Error> {
        self.ask(Down::Nothing)?;
        self.kept.release_by_operator(key).await
    }

    async fn forget(&self, key: &Key) -> Result<Acted, Error> {
        self.ask(Down::Nothing)?;
        self.kept.forget(key).await
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        self.ask(Down::Nothing)?;
        self.kept.list(state, after, limit).await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        self.kept.sweep(after).await
    }

    async fn letter_put(&self, letter: &Letter) -> Result<Put, Error> {
        self.ask(Down::Letters)?;
        self.kept.letter_put(letter).await
    }

    async fn letter_list(
        &self,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LetterHead>, Error> {
        self.ask(Down::Letters)?;
        self.kept.letter_list(after, limit).await
    }

    async fn letter_get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        self.ask(Down::Letters)?;
        self.kept.letter_get(id).await
    }

    async fn letter_drop(&self, id: &LetterId) -> Result<Dropped, Error> {
        self.ask(Down::Letters)?;
        self.kept.letter_drop(id).await
    }
}
