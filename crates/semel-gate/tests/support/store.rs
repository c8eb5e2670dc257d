//! A store in memory that can be switched off, in whole or in part.

use super::within;
use async_trait::async_trait;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::memory::MemoryStore;
use semel::protocol::{Answer, Operation, Record, State};
use semel::store::{Cursor, Letters, Page, Sharing, Swept};
use semel::{Error, Key, Store};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::watch;

/// What cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Down {
    #[default]
    Nothing,
    Everything,
    /// What is said at the end of a run.
    Outcomes,
    /// What is said at the end of a run, and whoever reads it.
    OutcomesAndLooks,
    Letters,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Switch {
    kept: MemoryStore,
    down: Mutex<Down>,
    /// It is there, but takes nothing.
    denies: AtomicBool,
    /// The record under this key cannot be read.
    damaged: Mutex<Option<Key>>,
    refused: watch::Sender<usize>,
    outcomes: watch::Sender<usize>,
    marked: watch::Sender<usize>,
    listed: watch::Sender<usize>,
    /// Whether letters wait before they are put, and how many do.
    held: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
    letter_calls: AtomicUsize,
}

// === impl Switch ===

impl Switch {
    /// Before this store.
    pub(crate) fn on(kept: MemoryStore) -> Self {
        Self {
            kept,
            ..Self::default()
        }
    }

    /// The store behind the switch, which is always there.
    pub(crate) fn kept(&self) -> &MemoryStore {
        &self.kept
    }

    pub(crate) fn is(&self, down: Down) {
        self.denies.store(false, Ordering::SeqCst);
        *self.down.lock().unwrap() = down;
    }

    /// The same, for a store that can be reached and does not take these calls.
    pub(crate) fn denies(&self, down: Down) {
        *self.down.lock().unwrap() = down;
        self.denies.store(true, Ordering::SeqCst);
    }

    /// The record under this key cannot be read any more.
    pub(crate) fn damage(&self, key: Key) {
        *self.damaged.lock().unwrap() = Some(key);
    }

    /// Waits until a call met the closed store.
    pub(crate) async fn refused(&self) {
        reaches(&self.refused, "a call to the store", 1).await;
    }

    /// Waits until so many ends of runs were written.
    pub(crate) async fn outcomes(&self, count: usize) {
        reaches(&self.outcomes, "a record", count).await;
    }

    fn ask(&self, part: Down) -> Result<(), Error> {
        let reached = self.reaches(part);
        if reached.is_err() {
            self.refused.send_modify(|calls| *calls += 1);
        }
        reached
    }

    fn ask_for_letter(&self) -> Result<(), Error> {
        self.letter_calls.fetch_add(1, Ordering::SeqCst);
        self.ask(Down::Letters)
    }

    fn reaches(&self, part: Down) -> Result<(), Error> {
        let down = *self.down.lock().unwrap();
        let outcome = [Down::Outcomes, Down::OutcomesAndLooks].contains(&part);
        let refuses = match down {
            Down::Nothing => false,
            Down::Everything => true,
            Down::OutcomesAndLooks => outcome,
            Down::Outcomes | Down::Letters => down == part,
        };
        if refuses {
            return Err(if self.denies.load(Ordering::SeqCst) {
                Error::Denied("switched off".into())
            } else {
                Error::Unavailable("switched off".into())
            });
        }
        Ok(())
    }

    /// Lets letters wait before they are put, until it is called with `false`.
    pub(crate) fn hold_letters(&self, hold: bool) {
        self.held.send_replace(hold);
    }

    /// Waits until so many letters were about to be put.
    pub(crate) async fn puts(&self, count: usize) {
        reaches(&self.waiting, "a letter", count).await;
    }

    /// Waits until reconciliation has begun and ended a round after this call.
    pub(crate) async fn reconciled(&self) {
        let until = *self.listed.borrow() + 2;
        reaches(&self.listed, "a round", until).await;
    }

    /// Number of calls about single letters so far.
    pub(crate) fn letter_calls(&self) -> usize {
        self.letter_calls.load(Ordering::SeqCst)
    }

    /// Waits until so many letters were marked.
    pub(crate) async fn marked(&self, count: usize) {
        reaches(&self.marked, "a mark", count).await;
    }
}

/// Waits until so much was counted.
async fn reaches(counter: &watch::Sender<usize>, what: &str, count: usize) {
    let mut counted = counter.subscribe();
    let enough = counted.wait_for(|counted| *counted >= count);
    drop(within(what, enough).await.unwrap());
}

#[async_trait]
impl Store for Switch {
    fn sharing(&self) -> Sharing {
        self.kept.sharing()
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        let looks = matches!(operation, Operation::Look(_));
        let ends = matches!(
            operation,
            Operation::Complete { .. } | Operation::Fail { .. } | Operation::Release { .. }
        );
        let part = if looks {
            Down::OutcomesAndLooks
        } else if ends || *operation == Operation::Ready {
            Down::Outcomes
        } else {
            Down::Nothing
        };
        self.ask(part)?;
        if looks && *self.damaged.lock().unwrap() == operation.key().copied() {
            return Err(Error::Corrupt("a record is cut off".into()));
        }
        let answer = self.kept.apply(operation).await;
        if ends {
            self.outcomes.send_modify(|written| *written += 1);
        }
        answer
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        self.ask(Down::Nothing)?;
        Store::list(&self.kept, state, after, limit).await
    }

    async fn sweep(&self, after: Option<&Cursor>) -> Result<Swept, Error> {
        self.kept.sweep(after).await
    }
}

#[async_trait]
impl Letters for Switch {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        self.ask_for_letter()?;
        let mut held = self.held.subscribe();
        self.waiting.send_modify(|waiting| *waiting += 1);
        held.wait_for(|held| !held).await.unwrap();
        self.kept.put(letter).await
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        // Reconciliation lists whenever it likes, so this is not counted as a call of the test's.
        self.reaches(Down::Letters)?;
        self.listed.send_modify(|listed| *listed += 1);
        Letters::list(&self.kept, after, limit).await
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        self.ask_for_letter()?;
        self.kept.get(id).await
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        self.ask_for_letter()?;
        let marked = self.kept.mark(id, mark).await;
        self.marked.send_modify(|marked| *marked += 1);
        marked
    }
}
