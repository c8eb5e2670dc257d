//! A store that is sound but for at most one fault.

use super::fault::{Fault, Verb};
use async_trait::async_trait;
use bytes::Bytes;
use semel::clock::{Clock, ManualClock, Time};
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put};
use semel::memory::MemoryStore;
use semel::record::{
    self, Acted, Claim, Claimed, Decision, Fail, Fence, Held, Lease, Record, Resolution, State,
    StepBegun, StepDecision, StepRecord,
};
use semel::store::{Cursor, Page, Sharing, Swept, validate_lease, validate_step_name};
use semel::{Error, Key, Store};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct BrokenStore {
    fault: Fault,
    clock: Arc<ManualClock>,
    kept: Mutex<Kept>,
    /// Letters, and what is sound about them.
    letters: MemoryStore,
}

#[derive(Debug, Default)]
struct Kept {
    records: BTreeMap<Key, Record>,
    steps: BTreeMap<(Key, Fence, String), StepRecord>,
    /// Letters that were closed, and their fences.
    closed: BTreeMap<LetterId, Fence>,
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

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of this lock panics")
    }

    /// Decides about one record and writes what was decided: in one step, unless that is the fault.
    async fn apply<A>(
        &self,
        verb: Verb,
        key: &Key,
        decide: impl FnOnce(Option<&Record>, Time) -> Decision<A>,
    ) -> A {
        let two_steps = match verb {
            Verb::Claim => self.has(Fault::ClaimIsTwoSteps),
            Verb::Complete => self.has(Fault::CompleteIsTwoSteps),
            _ => false,
        };
        let now = self.clock.wall();
        if !two_steps {
            let mut kept = self.kept();
            let decision = decide(self.shown(verb, &kept, key, now).as_ref(), now);
            return self.write(verb, &mut kept, key, decision, now);
        }
        let decision = decide(self.shown(verb, &self.kept(), key, now).as_ref(), now);
        tokio::task::yield_now().await;
        self.write(verb, &mut self.kept(), key, decision, now)
    }

    fn shown(&self, verb: Verb, kept: &Kept, key: &Key, now: Time) -> Option<Record> {
        let record = kept.records.get(key).cloned();
        self.fault.shows(verb, record, now)
    }

    fn write<A>(
        &self,
        verb: Verb,
        kept: &mut Kept,
        key: &Key,
        decision: Decision<A>,
        now: Time,
    ) -> A {
        if decision.ended.is_some() && !self.has(Fault::StepsOutliveTheIncarnation) {
            kept.steps.retain(|(k, ..), _| k != key);
        }
        if let Some(new) = decision.write {
            let old = kept.records.get(key);
            let new = self.fault.writes(verb, old, new, now);
            kept.records.insert(*key, new);
        }
        if verb == Verb::Forget && self.has(Fault::ForgetRemovesTheRecord) {
            kept.records
                .retain(|k, record| k != key || !record.expired(now));
        }
        decision.answer
    }

    /// Lets a run say something about itself.
    async fn say(
        &self,
        verb: Verb,
        lease: &Lease,
        decide: impl FnOnce(Option<&Record>, &Lease, Time) -> Decision<Held>,
    ) -> Held {
        let held = self.apply(verb, &lease.key, |record, now| {
            decide(record, &self.fault.trusts(verb, lease, record), now)
        });
        self.fault.tells(held.await)
    }

    fn step<A>(
        &self,
        lease: &Lease,
        name: &str,
        decide: impl FnOnce(Option<&Record>, Option<&StepRecord>, &Lease, Time) -> StepDecision<A>,
    ) -> Result<A, Error> {
        if !self.has(Fault::NothingIsValidated) {
            validate_step_name(name)?;
        }
        let now = self.clock.wall();
        let mut kept = self.kept();
        let record = self.shown(Verb::Step, &kept, &lease.key, now);
        let born = self.fault.keeps_step_under(lease);
        let lease = self.fault.trusts(Verb::Step, lease, record.as_ref());
        let at = (lease.key, born, name.to_owned());
        let decision = decide(record.as_ref(), kept.steps.get(&at), &lease, now);
        if let Some(step) = decision.write {
            kept.steps.insert(at, step);
        }
        Ok(decision.answer)
    }
}

#[async_trait]
impl Store for BrokenStore {
    fn sharing(&self) -> Sharing {
        Sharing::OneProcess
    }

    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        if !self.has(Fault::NothingIsValidated) {
            claim.validate()?;
        }
        let understood = self.fault.understands(claim.clone());
        let decide = |record: Option<&Record>, now| {
            let Some(record) = record else {
                return record::claim(None, &understood, now);
            };
            let shown = self.fault.shows_claim(claim, record.clone());
            let mut decision = record::claim(Some(&shown), &understood, now);
            decision.write = decision
                .write
                .or_else(|| self.fault.disturbs(&decision.answer, record));
            decision
        };
        let claimed = self.apply(Verb::Claim, &claim.key, decide).await;
        Ok(self.fault.tells_claim(claimed))
    }

    async fn renew(
        &self,
        lease: &Lease,
        lease_for: Duration,
        retention: Duration,
    ) -> Result<Held, Error> {
        if !self.has(Fault::NothingIsValidated) {
            validate_lease(lease_for, retention)?;
        }
        let decide = |record: Option<&Record>, lease: &Lease, now| {
            record::renew(record, lease, lease_for, retention, now)
        };
        Ok(self.say(Verb::Renew, lease, decide).await)
    }

    async fn complete(
        &self,
        lease: &Lease,
        result: &Bytes,
        retention: Duration,
    ) -> Result<Held, Error> {
        let result = if self.has(Fault::ResultsAreText) {
            Bytes::from(String::from_utf8_lossy(result).into_owned())
        } else {
            result.clone()
        };
        let decide = |record: Option<&Record>, lease: &Lease, now| {
            record::complete(record, lease, &result, retention, now)
        };
        Ok(self.say(Verb::Complete, lease, decide).await)
    }

    async fn fail(&self, lease: &Lease, how: &Fail) -> Result<Held, Error> {
        let mut how = how.clone();
        if self.has(Fault::AttemptsWithoutLimit) {
            how.max_attempts = None;
        }
        let decide =
            |record: Option<&Record>, lease: &Lease, now| record::fail(record, lease, &how, now);
        Ok(self.say(Verb::Fail, lease, decide).await)
    }

    async fn release(&self, lease: &Lease) -> Result<Held, Error> {
        Ok(self.say(Verb::Release, lease, record::release).await)
    }

    async fn look(&self, key: &Key) -> Result<Option<Record>, Error> {
        let now = self.clock.wall();
        let record = self.shown(Verb::Look, &self.kept(), key, now);
        Ok(record::look(record.as_ref(), now).cloned())
    }

    async fn step_begin(&self, lease: &Lease, name: &str) -> Result<StepBegun, Error> {
        let begun = self.step(lease, name, record::step_begin)?;
        Ok(self.fault.tells_step(begun))
    }

    async fn step_restart(&self, lease: &Lease, name: &str) -> Result<Held, Error> {
        self.step(lease, name, record::step_restart)
    }

    async fn step_complete(
        &self,
        lease: &Lease,
        name: &str,
        result: &Bytes,
    ) -> Result<Held, Error> {
        self.step(lease, name, |record, step, lease, now| {
            record::step_complete(record, step, lease, result, now)
        })
    }

    async fn resolve(&self, key: &Key, how: &Resolution) -> Result<Acted, Error> {
        let decide = |record: Option<&Record>, now| {
            record::resolve(record, &self.fault.hears(how, record), now)
        };
        Ok(self.apply(Verb::Resolve, key, decide).await)
    }

    async fn redrive(&self, key: &Key) -> Result<Acted, Error> {
        Ok(self.apply(Verb::Redrive, key, record::redrive).await)
    }

    async fn release_by_operator(&self, key: &Key) -> Result<Acted, Error> {
        let decide = record::release_by_operator;
        Ok(self.apply(Verb::ReleaseByOperator, key, decide).await)
    }

    async fn forget(&self, key: &Key) -> Result<Acted, Error> {
        Ok(self.apply(Verb::Forget, key, record::forget).await)
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
        kept.records.retain(|_, record| {
            let wrongly = self.fault.sweeps(record);
            !wrongly && !record::sweepable(record, GRACE, now)
        });
        let removed = (before - kept.records.len()) as u64;
        Ok(Swept {
            removed,
            next: None,
        })
    }

    async fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn letter_put(&self, letter: &Letter) -> Result<Put, Error> {
        let higher = Letter {
            fence: Fence(letter.fence.0 + 1),
            ..letter.clone()
        };
        let letters = &self.letters;
        match self.fault {
            Fault::LetterIsPutTwice if letters.letter_get(&letter.id).await?.is_some() => {
                let _closed = letters.letter_mark(&letter.id, Mark::Closed).await?;
                letters.letter_put(&higher).await
            }
            Fault::ClosedLettersComeBack => match letters.letter_put(letter).await? {
                Put::Closed => letters.letter_put(&higher).await,
                put => Ok(put),
            },
            Fault::ClosedLettersStayClosed => {
                let lowest = Letter {
                    fence: Fence(0),
                    ..letter.clone()
                };
                match letters.letter_put(&lowest).await? {
                    Put::Closed => Ok(Put::Closed),
                    put => letters.letter_put(letter).await.map(|_| put),
                }
            }
            Fault::LettersKeepTheirFirstFence => match letters.letter_get(&letter.id).await? {
                Some(_) => Ok(Put::Already),
                None => letters.letter_put(letter).await,
            },
            Fault::TombstonesStayForEver => {
                let closed = self.kept().closed.get(&letter.id).copied();
                match closed {
                    Some(fence) if letter.fence <= fence => Ok(Put::Closed),
                    _ => letters.letter_put(letter).await,
                }
            }
            _ => letters.letter_put(letter).await,
        }
    }

    async fn letter_list(
        &self,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<LetterHead>, Error> {
        let mut page = self.letters.letter_list(after, limit).await?;
        if self.has(Fault::LettersNewestFirst) {
            page.items.reverse();
        }
        Ok(page)
    }

    async fn letter_get(&self, id: &LetterId) -> Result<Option<Letter>, Error> {
        self.letters.letter_get(id).await
    }

    async fn letter_mark(&self, id: &LetterId, mark: Mark) -> Result<Marked, Error> {
        let Some(letter) = self.letters.letter_get(id).await? else {
            return Ok(Marked::Gone);
        };
        match mark {
            Mark::Redriven if self.has(Fault::RedrivesAreNotNoted) => return Ok(Marked::Applied),
            Mark::Redriven => {}
            Mark::Closed => {
                self.kept().closed.insert(*id, letter.fence);
            }
        }
        self.letters.letter_mark(id, mark).await
    }
}
