//! A store that is sound but for at most one fault.

use super::fault::Fault;
use async_trait::async_trait;
use bytes::Bytes;
use semel::clock::{Clock, ManualClock, Time};
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::memory::MemoryStore;
use semel::protocol::{Acted, Answer, Decision, Fence, Operation, Record, State, StepRecord, look};
use semel::store::{
    Cursor, FOUND_KEYS_MAX, Letters, Page, STEPS_SHOWN_MAX, Sharing, Swept, shown_step,
};
use semel::{Error, Key, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct BrokenStore {
    fault: Fault,
    clock: Arc<ManualClock>,
    kept: Mutex<Tables>,
    /// Letters, and what is sound about them.
    letters: MemoryStore,
}

#[derive(Debug, Default)]
struct Tables {
    records: BTreeMap<Key, Record>,
    steps: BTreeMap<(Key, Fence, String), StepRecord>,
    index: BTreeMap<(Bytes, Key), Time>,
    /// Letters that were closed, and their fences.
    closed: BTreeMap<LetterId, Fence>,
    /// Letters of which a mark was lost.
    unmarked: BTreeSet<LetterId>,
}

// === impl BrokenStore ===

impl BrokenStore {
    pub(crate) fn new(fault: Fault, clock: Arc<ManualClock>) -> Self {
        Self {
            fault,
            letters: MemoryStore::with_clock(clock.clone()),
            clock,
            kept: Mutex::default(),
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn kept(&self) -> MutexGuard<'_, Tables> {
        self.kept.lock().expect("no holder of this lock panics")
    }

    fn decide(&self, kept: &Tables, operation: &Operation, now: Time) -> Decision {
        let record = operation.key().and_then(|key| kept.records.get(key));
        let step = self.step(operation).and_then(|at| kept.steps.get(&at));
        self.fault.decide(record, step, operation, now)
    }

    fn write(&self, kept: &mut Tables, operation: &Operation, decision: Decision) -> Answer {
        if let Some(key) = operation.key().copied() {
            if decision.ended.is_some() && !self.has(Fault::StepsOfEveryIncarnationAreShown) {
                kept.steps.retain(|(k, ..), _| *k != key);
            }
            if let Some(mut record) = decision.write {
                if self.has(Fault::HistoryHasNoEnd) {
                    record.history.extend(decision.superseded);
                } else {
                    record.remember(decision.superseded);
                }
                kept.records.insert(key, record);
            }
        }
        if let (Some(at), Some(step)) = (self.step(operation), decision.step) {
            kept.steps.insert(at, step);
        }
        let now = self.clock.wall();
        match operation {
            Operation::Steps(key) => {
                let all = self.has(Fault::StepsOfEveryIncarnationAreShown);
                Answer::Steps(kept.steps_of(key, all, now))
            }
            Operation::Index { key, ids, keep } => {
                for id in ids {
                    let until = kept.index.entry((id.clone(), *key)).or_default();
                    *until = now.plus(*keep).max(*until);
                }
                Answer::Indexed
            }
            Operation::Find(id) => {
                let now = if self.has(Fault::IndexNeverEnds) {
                    Time(0)
                } else {
                    now
                };
                let mut found = kept.found(id, now);
                if self.has(Fault::IndexFindsOneKey) {
                    found.truncate(1);
                }
                Answer::Found(found)
            }
            Operation::Forget(key)
                if decision.answer == Answer::Acted(Acted::Applied)
                    && !self.has(Fault::IndexOutlivesForget) =>
            {
                kept.index.retain(|(_, indexed), _| indexed != key);
                decision.answer
            }
            _ => decision.answer,
        }
    }

    /// Clears the mark that was lost.
    fn unmark(&self, id: &LetterId, redriven: &mut bool, alarmed: &mut bool) {
        if self.kept().unmarked.contains(id) {
            *redriven &= !self.has(Fault::AlarmsEndRedrives);
            *alarmed &= !self.has(Fault::AlarmsAreLostOnPut);
        }
    }

    /// Where the step of an operation is kept.
    fn step(&self, operation: &Operation) -> Option<(Key, Fence, String)> {
        let (lease, name) = operation.step()?;
        let born = self.fault.keeps_step_under(lease);
        Some((lease.key, born, name.to_owned()))
    }
}

// === impl Tables ===

impl Tables {
    fn steps_of(&self, key: &Key, all: bool, now: Time) -> Vec<(String, StepRecord)> {
        let born = look(self.records.get(key), now).map(|record| record.born);
        let mine = |(k, b, _): &(Key, Fence, String)| k == key && (all || Some(*b) == born);
        let steps = self.steps.iter().filter(|(at, _)| mine(at));
        steps
            .map(|((_, _, name), step)| (name.clone(), shown_step(step.clone())))
            .take(STEPS_SHOWN_MAX)
            .collect()
    }

    fn found(&self, id: &Bytes, now: Time) -> Vec<Key> {
        let found = self.index.iter();
        let found = found.filter(|((indexed, _), until)| indexed == id && **until > now);
        found
            .map(|((_, key), _)| *key)
            .take(FOUND_KEYS_MAX)
            .collect()
    }
}

#[async_trait]
impl Store for BrokenStore {
    fn sharing(&self) -> Sharing {
        Sharing::OneProcess
    }

    /// Decides and writes in one step, unless that is the fault.
    async fn apply(&self, operation: &Operation) -> Result<Answer, Error> {
        if !self.has(Fault::NothingIsValidated) {
            operation.validate()?;
        }
        let two_steps = match operation {
            Operation::Claim(_) => self.has(Fault::ClaimIsTwoSteps),
            Operation::Complete { .. } => self.has(Fault::CompleteIsTwoSteps),
            _ => false,
        };
        let now = self.clock.wall();
        if two_steps {
            let decision = self.decide(&self.kept(), operation, now);
            tokio::task::yield_now().await;
            return Ok(self.write(&mut self.kept(), operation, decision));
        }
        let mut kept = self.kept();
        let decision = self.decide(&kept, operation, now);
        Ok(self.write(&mut kept, operation, decision))
    }

    async fn list(
        &self,
        state: Option<State>,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<(Key, Record)>, Error> {
        let now = self.clock.wall();
        let limit = limit as usize;
        let mut items: Vec<_> = self.kept().records.clone().into_iter().collect();
        items.retain(|(key, record)| {
            after.is_none_or(|after| key.as_bytes().as_slice() > after.0.as_ref())
                && state.is_none_or(|state| record.state == state)
                && !record.expired(now)
        });
        let more = items.len() > limit;
        let skipped = usize::from(self.has(Fault::ListSkips));
        let last = items.get((limit - 1 + skipped).min(items.len().saturating_sub(1)));
        let next = last
            .filter(|_| more)
            .map(|(key, _)| Cursor(Bytes::copy_from_slice(key.as_bytes())));
        items.truncate(limit);
        if self.has(Fault::ListRepeats) && items.len() < limit {
            items.extend(items.first().cloned());
        }
        for (_, record) in &mut items {
            record
                .result
                .take_if(|_| !self.has(Fault::ListShowsResults));
        }
        Ok(Page { items, next })
    }

    async fn sweep(&self, _after: Option<&Cursor>) -> Result<Swept, Error> {
        let now = self.clock.wall();
        let _swept = self.letters.sweep(None).await?;
        let mut kept = self.kept();
        let before = kept.records.len();
        kept.records
            .retain(|_, record| !self.fault.sweepable(record, GRACE, now));
        let removed = (before - kept.records.len()) as u64;
        Ok(Swept {
            removed,
            next: None,
        })
    }
}

#[async_trait]
impl Letters for BrokenStore {
    async fn put(&self, letter: &Letter) -> Result<Put, Error> {
        let higher = Letter {
            fence: Fence(letter.fence.0 + 1),
            ..letter.clone()
        };
        let letters = &self.letters;
        match self.fault {
            Fault::LetterIsPutTwice if letters.get(&letter.id).await?.is_some() => {
                let _closed = letters.mark(&letter.id, Mark::Closed).await?;
                letters.put(&higher).await
            }
            Fault::ClosedLettersComeBack => match letters.put(letter).await? {
                Put::Closed => letters.put(&higher).await,
                put => Ok(put),
            },
            Fault::ClosedLettersStayClosed => {
                let lowest = Letter {
                    fence: Fence(0),
                    ..letter.clone()
                };
                match letters.put(&lowest).await? {
                    Put::Closed => Ok(Put::Closed),
                    put => letters.put(letter).await.map(|_| put),
                }
            }
            Fault::LettersKeepTheirFirstFence => match letters.get(&letter.id).await? {
                Some(_) => Ok(Put::Already),
                None => letters.put(letter).await,
            },
            Fault::TombstonesStayForEver => {
                let closed = self.kept().closed.get(&letter.id).copied();
                match closed {
                    Some(fence) if letter.fence <= fence => Ok(Put::Closed),
                    _ => letters.put(letter).await,
                }
            }
            _ => {
                let put = letters.put(letter).await?;
                if put == Put::Already && self.has(Fault::AlarmsAreLostOnPut) {
                    self.kept().unmarked.insert(letter.id);
                }
                Ok(put)
            }
        }
    }

    async fn list(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LetterHead>, Error> {
        let mut page = Letters::list(&self.letters, after, limit).await?;
        if self.has(Fault::LettersNewestFirst) {
            page.items.reverse();
        }
        for head in &mut page.items {
            self.unmark(&head.id, &mut head.redriven, &mut head.alarmed);
        }
        Ok(page)
    }

    async fn get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        let mut letter = self.letters.get(id).await?;
        if let Some(letter) = &mut letter {
            self.unmark(id, &mut letter.redriven, &mut letter.alarmed);
        }
        Ok(letter)
    }

    async fn mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        let Some(letter) = self.letters.get(id).await? else {
            return Ok(Marked::Gone);
        };
        match mark {
            Mark::Redriven if self.has(Fault::RedrivesAreNotNoted) => return Ok(Marked::Applied),
            Mark::Alarmed if self.has(Fault::AlarmsAreNotNoted) => return Ok(Marked::Applied),
            Mark::Alarmed if self.has(Fault::AlarmsEndRedrives) => {
                self.kept().unmarked.insert(*id);
            }
            Mark::Redriven | Mark::Alarmed => {}
            Mark::Closed => {
                self.kept().closed.insert(*id, letter.fence);
            }
        }
        self.letters.mark(id, mark).await
    }
}
