//! The plainest store: one map under one mutex, forgotten with the process. For tests, and as the
//! shortest statement of what a store does.

use crate::Key;
use crate::clock::{Clock, SystemClock, Time};
use crate::letter::{
    self, Letter, LetterDecision, LetterHead, LetterId, Mark, Marked, Put, Stored,
};
use crate::record::{
    self, Acted, Claim, Claimed, Decision, Fail, Fence, Held, Lease, Record, Resolution, State,
    StepBegun, StepDecision, StepRecord,
};
use crate::store::{
    Cursor, Error, Page, Sharing, Store, Swept, validate_lease, validate_step_name,
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
/// use semel::{Key, Store};
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

    /// Decides about one record and writes what was decided.
    fn apply<A>(&self, key: &Key, decide: impl FnOnce(Option<&Record>, Time) -> Decision<A>) -> A {
        let mut kept = self.lock();
        let decision = decide(kept.records.get(key), self.clock.wall());
        if let Some(born) = decision.ended {
            kept.drop_steps(key, born);
        }
        if let Some(record) = decision.write {
            kept.records.insert(*key, record);
        }
        decision.answer
    }

    fn apply_step<A>(
        &self,
        lease: &Lease,
        name: &str,
        decide: impl FnOnce(Option<&Record>, Option<&StepRecord>, Time) -> StepDecision<A>,
    ) -> Result<A, Error> {
        validate_step_name(name)?;
        let mut kept = self.lock();
        let at = (lease.key, lease.born, name.to_owned());
        let decision = decide(
            kept.records.get(&lease.key),
            kept.steps.get(&at),
            self.clock.wall(),
        );
        if let Some(step) = decision.write {
            kept.steps.insert(at, step);
        }
        Ok(decision.answer)
    }

    fn apply_letter<A>(
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

    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        claim.validate()?;
        Ok(self.apply(&claim.key, |record, now| record::claim(record, claim, now)))
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> Result<Held, Error> {
        validate_lease(lease_for, retention)?;
        Ok(self.apply(&lease.key, |record, now| {
            record::renew(record, lease, lease_for, retention, now)
        }))
    }

    async fn complete(
        &self,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        Ok(self.apply(&lease.key, |record, now| {
            record::complete(record, lease, result, retention, now)
        }))
    }

    async fn fail(&self, lease: &Lease, how: &Fail) -> Result<Held, Error> {
        Ok(self.apply(&lease.key, |record, now| {
            record::fail(record, lease, how, now)
        }))
    }

    async fn release(&self, lease: &Lease) -> Result<Held, Error> {
        Ok(self.apply(&lease.key, |record, now| {
            record::release(record, lease, now)
        }))
    }

    async fn look(&self, key: &Key) -> Result<Option<Record>, Error> {
        Ok(record::look(self.lock().records.get(key), self.clock.wall()).cloned())
    }

    async fn step_begin(&self, lease: &Lease, name: &str) -> Result<StepBegun, Error> {
        self.apply_step(lease, name, |record, step, now| {
            record::step_begin(record, step, lease, now)
        })
    }

    async fn step_restart(&self, lease: &Lease, name: &str) -> Result<Held, Error> {
        self.apply_step(lease, name, |record, step, now| {
            record::step_restart(record, step, lease, now)
        })
    }

    async fn step_complete(
        &self,
        lease: &Lease,
        name: &str,
        result: &Bytes,
    ) -> Result<Held, Error> {
        self.apply_step(lease, name, |record, step, now| {
            record::step_complete(record, step, lease, result, now)
        })
    }

    async fn resolve(&self, key: &Key, how: &Resolution) -> Result<Acted, Error> {
        Ok(self.apply(key, |record, now| record::resolve(record, how, now)))
    }

    async fn redrive(&self, key: &Key) -> Result<Acted, Error> {
        Ok(self.apply(key, record::redrive))
    }

    async fn release_by_operator(&self, key: &Key) -> Result<Acted, Error> {
        Ok(self.apply(key, record::release_by_operator))
    }

    async fn forget(&self, key: &Key) -> Result<Acted, Error> {
        Ok(self.apply(key, record::forget))
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
            .filter(|(_, record)| record::sweepable(record, GRACE, now))
            .map(|(key, record)| (*key, record.born))
            .collect();
        for (key, born) in &gone {
            kept.records.remove(key);
            kept.drop_steps(key, *born);
        }
        kept.letters
            .retain(|_, shelved| !shelved.stored.sweepable(now));
        Ok(Swept {
            removed: gone.len() as u64,
            next: None,
        })
    }

    async fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn letter_put(&self, letter: &Letter) -> Result<Put, Error> {
        letter.validate()?;
        Ok(self.apply_letter(&letter.id, |stored, now| letter::put(stored, letter, now)))
    }

    async fn letter_list(
        &self,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LetterHead>, Error> {
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

    async fn letter_get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        let kept = self.lock();
        let letter = kept.letters.get(id).and_then(|kept| kept.stored.open());
        Ok(letter.cloned())
    }

    async fn letter_mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        Ok(self.apply_letter(id, |stored, now| letter::mark(stored, mark, now)))
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
