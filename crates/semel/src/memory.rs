//! The plainest store: one map under one mutex, forgotten with the process. For tests, and as the
//! shortest statement of what a store does.

use crate::Key;
use crate::clock::{Clock, SystemClock, Time};
use crate::letter::{
    self, Letter, LetterDecision, LetterHead, LetterId, Mark, Marked, Put, Stored,
};
use crate::record::{
    Acted, Answer, Decision, Fence, Operation, Record, State, StepRecord, decide, look, sweepable,
};
use crate::store::{
    Cursor, Error, FOUND_KEYS_MAX, Letters, Page, STEPS_SHOWN_MAX, Sharing, Store, Swept,
    index_digest, shown_step,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How long an expired record stays, so that fences cannot fall.
const GRACE: Duration = Duration::from_secs(60);

/// A store in this process's memory.
///
/// ```
/// use semel::memory::MemoryStore;
/// use semel::Key;
/// use semel::store::StoreExt;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = MemoryStore::new();
/// assert_eq!(store.look(&Key::from_bytes([1; 32])).await.unwrap(), None);
/// # });
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    records: BTreeMap<Key, Record>,
    steps: BTreeMap<(Key, Fence, String), StepRecord>,
    /// By transport id: its digest, the key that is found under it, and until when.
    index: BTreeMap<([u8; 32], Key), Time>,
    letters: BTreeMap<LetterId, Shelved>,
    letters_put: u64,
}

/// A letter or its tombstone, its place in the order of letters, and since when it is there.
#[derive(Debug)]
struct Shelved {
    number: u64,
    created_at: Time,
    stored: Stored,
}

// === impl MemoryStore ===

impl MemoryStore {
    /// An empty store on this machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// An empty store on a clock of the caller's.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            kept: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of this lock panics")
    }

    fn decide_letter<A>(
        &self,
        id: &LetterId,
        decide: impl FnOnce(Option<&Stored>, Time) -> LetterDecision<A>,
    ) -> A {
        let (mut kept, now) = (self.lock(), self.clock.wall());
        let decision = decide(kept.letters.get(id).map(|shelved| &shelved.stored), now);
        if let Some(stored) = decision.write {
            kept.shelve(*id, stored, now);
        }
        decision.answer
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn sharing(&self) -> Sharing {
        Sharing::OneProcess
    }

    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        operation.validate()?;
        Ok(self.lock().apply(operation, self.clock.wall()))
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        let now = self.clock.wall();
        let kept = self.lock();
        let mut items = Vec::new();
        for (key, record) in &kept.records {
            let seen = after.is_some_and(|after| key.as_bytes().as_slice() <= after.0.as_ref());
            let asked = state.is_none_or(|state| record.state == state);
            if !seen && asked && !record.expired(now) {
                items.push((
                    *key,
                    Record {
                        result: None,
                        label: Bytes::new(),
                        history: Vec::new(),
                        ..record.clone()
                    },
                ));
            }
        }
        let next = |(key, _): &(Key, Record)| Bytes::copy_from_slice(key.as_bytes());
        Ok(page(items, limit, next))
    }

    async fn sweep(&self, _after: Option<&Cursor>) -> Result<Swept, Error> {
        let now = self.clock.wall();
        let mut kept = self.lock();
        let gone: Vec<_> = kept
            .records
            .iter()
            .filter(|(_, record)| sweepable(record, GRACE, now))
            .map(|(key, record)| (*key, record.born))
            .collect();
        for (key, born) in &gone {
            kept.records.remove(key);
            kept.drop_steps(key, *born);
        }
        kept.index.retain(|_, until| *until > now);
        kept.letters
            .retain(|_, shelved| !shelved.stored.sweepable(now));
        Ok(Swept {
            removed: gone.len() as u64,
            next: None,
        })
    }
}

#[async_trait]
impl Letters for MemoryStore {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        letter.validate()?;
        Ok(self.decide_letter(&letter.id, |stored, now| letter::put(stored, letter, now)))
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        let kept = self.lock();
        let seen = |number: u64| after.is_some_and(|after| number.to_be_bytes()[..] <= *after.0);
        let mut heads: Vec<_> = kept
            .letters
            .values()
            .filter(|shelved| !seen(shelved.number))
            .filter_map(|shelved| {
                let letter = shelved.stored.open()?;
                Some((shelved.number, letter.head(shelved.created_at)))
            })
            .collect();
        heads.sort_by_key(|(number, _)| *number);
        let next = |(number, _): &(u64, LetterHead)| Bytes::copy_from_slice(&number.to_be_bytes());
        let Page { items, next } = page(heads, limit, next);
        Ok(Page {
            items: items.into_iter().map(|(_, head)| head).collect(),
            next,
        })
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        let kept = self.lock();
        let letter = kept.letters.get(id).and_then(|kept| kept.stored.open());
        Ok(letter.cloned())
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        Ok(self.decide_letter(id, |stored, now| letter::mark(stored, mark, now)))
    }
}

/// The first `limit` items, and a cursor at the last of them if there are more.
fn page<T>(mut items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> Bytes) -> Page<T> {
    let limit = limit.max(1) as usize;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items
        .last()
        .filter(|_| more)
        .map(|last| Cursor(cursor(last)));
    Page { items, next }
}

// === impl Kept ===

impl Kept {
    /// Decides an operation and writes what was decided.
    fn apply(&mut self, operation: &Operation, now: Time) -> Answer {
        let step = operation
            .step()
            .map(|(lease, name)| (lease.key, lease.born, name.to_owned()));
        let found = step.as_ref().and_then(|step| self.steps.get(step));
        let key = operation.key();
        let record = key.and_then(|key| self.records.get(key));
        let decision: Decision = decide(record, found, operation, now);
        if let (Some(key), Some(born)) = (key, decision.ended) {
            self.drop_steps(key, born);
        }
        if let (Some(key), Some(mut record)) = (key, decision.write) {
            record.remember(decision.superseded);
            self.records.insert(*key, record);
        }
        if let (Some(at), Some(step)) = (step, decision.step) {
            self.steps.insert(at, step);
        }
        match operation {
            Operation::Steps(key) => Answer::Steps(self.steps(key, now)),
            Operation::Index { key, ids, keep } => {
                for id in ids {
                    let until = self.index.entry((index_digest(id), *key)).or_default();
                    *until = now.plus(*keep).max(*until);
                }
                Answer::Indexed
            }
            Operation::Find(id) => Answer::Found(self.find(index_digest(id), now)),
            Operation::Forget(key) if decision.answer == Answer::Acted(Acted::Applied) => {
                self.index.retain(|(_, indexed), _| indexed != key);
                decision.answer
            }
            Operation::Claim(_)
            | Operation::Renew { .. }
            | Operation::Complete { .. }
            | Operation::Fail { .. }
            | Operation::Release { .. }
            | Operation::Look(_)
            | Operation::StepBegin { .. }
            | Operation::StepRestart { .. }
            | Operation::StepComplete { .. }
            | Operation::Resolve { .. }
            | Operation::Redrive { .. }
            | Operation::Retain { .. }
            | Operation::ReleaseByOperator { .. }
            | Operation::Forget(_)
            | Operation::Ready => decision.answer,
        }
    }

    fn steps(&self, key: &Key, now: Time) -> Vec<(String, StepRecord)> {
        let Some(born) = look(self.records.get(key), now).map(|record| record.born) else {
            return Vec::new();
        };
        self.steps
            .range((*key, born, String::new())..)
            .take_while(|((k, b, _), _)| (k, b) == (key, &born))
            .take(STEPS_SHOWN_MAX)
            .map(|((_, _, name), step)| (name.clone(), shown_step(step.clone())))
            .collect()
    }

    fn find(&self, id: [u8; 32], now: Time) -> Vec<Key> {
        self.index
            .range((id, Key::from_bytes([0; 32]))..)
            .take_while(|((found, _), _)| *found == id)
            .filter(|(_, until)| **until > now)
            .take(FOUND_KEYS_MAX)
            .map(|((_, key), _)| *key)
            .collect()
    }

    /// Keeps a letter where it is; one that is new, or reopened, comes last.
    fn shelve(&mut self, id: LetterId, stored: Stored, now: Time) {
        let was_open = self
            .letters
            .get(&id)
            .filter(|shelved| shelved.stored.open().is_some())
            .map(|shelved| (shelved.number, shelved.created_at));
        let (number, created_at) = was_open.unwrap_or_else(|| {
            self.letters_put += 1;
            (self.letters_put, now)
        });
        let shelved = Shelved {
            number,
            created_at,
            stored,
        };
        self.letters.insert(id, shelved);
    }

    fn drop_steps(&mut self, key: &Key, born: Fence) {
        let first = (*key, born, String::new());
        let mine = self
            .steps
            .range(first..)
            .take_while(|((k, b, _), _)| (k, b) == (key, &born));
        for at in mine.map(|(at, _)| at.clone()).collect::<Vec<_>>() {
            self.steps.remove(&at);
        }
    }
}
