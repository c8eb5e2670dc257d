//! One operation on a record: read, decide, commit on condition that nothing changed.
//!
//! A run's own word whose answer was lost needs no care: the next turn reads, and `decide` finds the same owner or fence there.
//! What an operator did leaves no such sign, so it is remembered ([`Attempts`]). A commit that arrives late fails its condition.

use crate::attempts::{Attempts, Outcome};
use crate::belief::Beliefs;
use crate::client::{Client, Failure};
use crate::errors;
use crate::forget::{delete_steps, is_husk};
use crate::index;
use crate::parts::{Parts, Placed};
use crate::proto::Write;
use crate::record_document::{record_fields, step_fields};
use crate::snapshot::Snapshot;
use crate::turn::Turns;
use crate::writes::{delete, replace, verify};
use semel::clock::Time;
use semel::protocol::{Answer, Claimed, Decision, Fence, Held, Lease, Operation, Record};
use semel::{Error, Key};
use std::time::Duration;

/// For how long a write shows that others would be taken, while nothing goes wrong.
const READY_FOR: Duration = Duration::from_secs(60);

/// What the turns of one operation have come to.
#[derive(Default)]
struct Progress {
    /// An operator's acts that may have been made.
    acts: Attempts<Record, Done>,
    /// It is written, or there is nothing to write; what goes with it may be left to do.
    done: Option<Done>,
}

/// What is answered, and what goes with it.
#[derive(Clone)]
struct Done {
    answer: Answer,
    /// The incarnation that ended: its steps go, and what the index has of the key.
    ended: Option<Fence>,
}

/// Who does an operation.
#[derive(Clone, Copy)]
struct Doer<'a> {
    client: &'a Client,
    beliefs: Option<&'a Beliefs>,
    operation: &'a Operation,
}

/// Does one operation. The first turn begins with what is believed, the others read.
pub(crate) async fn apply(
    client: &Client,
    beliefs: Option<&Beliefs>,
    operation: &Operation,
    timeout: Duration,
) -> Result<Answer, Error> {
    let doer = Doer {
        client,
        beliefs,
        operation,
    };
    let mut turns = Turns::new(client, timeout);
    let mut progress = Progress::default();
    let believed = beliefs.and_then(|it| it.for_operation(client, operation));
    let mut believed = believed.map(Snapshot::believed);
    loop {
        match doer.turn(believed.take(), &mut turns, &mut progress).await {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(failure) => {
                if let (Some(beliefs), Some(key)) = (beliefs, operation.key()) {
                    beliefs.is_unknown(key);
                }
                turns.after(failure).await?;
            }
        }
    }
}

// === impl Doer ===

impl Doer<'_> {
    /// One turn; none is a belief by which nothing would be written: it is no answer.
    async fn turn(
        self,
        believed: Option<Snapshot>,
        turns: &mut Turns<'_>,
        progress: &mut Progress,
    ) -> Result<Option<Answer>, Failure> {
        let Some(key) = self.operation.key() else {
            return ready(self.client, turns).await.map(Some);
        };
        if progress.done.is_none() {
            let is_believed = believed.is_some();
            let seen = match believed {
                Some(believed) => believed,
                None => Snapshot::read(self.client, self.operation, key, turns).await?,
            };
            let record = seen.record.as_ref().map(|it| (&it.value, it.version));
            progress.done = match progress.acts.compare(record) {
                Outcome::Made(done) => Some(done),
                Outcome::Unknown => return Err(errors::unknown(&self.client.place).into()),
                Outcome::Open => {
                    let acts = &mut progress.acts;
                    self.decide(key, &seen, is_believed, turns, acts).await?
                }
            };
        }
        let Some(done) = progress.done.clone() else {
            return Ok(None);
        };
        if let Some(born) = done.ended {
            delete_steps(self.client, key, born, turns).await?;
            index::forget(self.client, key, turns).await?;
        }
        Ok(Some(done.answer))
    }

    /// Decides by what was seen, and writes that.
    async fn decide(
        self,
        key: &Key,
        seen: &Snapshot,
        is_believed: bool,
        turns: &mut Turns<'_>,
        acts: &mut Attempts<Record, Done>,
    ) -> Result<Option<Done>, Failure> {
        let mut decision = seen.decide(self.operation);
        if let Some(record) = &mut decision.write {
            record.remember(decision.superseded.take());
        }
        if decision.write.is_some() || decision.step.is_some() {
            self.write(key, seen, &decision, turns, acts).await?;
        } else if is_believed {
            return Ok(None);
        } else if acts.may_be_late() {
            return Err(errors::unknown(&self.client.place).into());
        } else if let (Some(beliefs), Some(_)) = (self.beliefs, &seen.record) {
            beliefs.is_seen(key);
        }
        Ok(Some(self.done(seen, &decision)))
    }

    async fn write(
        self,
        key: &Key,
        seen: &Snapshot,
        decision: &Decision,
        turns: &mut Turns<'_>,
        acts: &mut Attempts<Record, Done>,
    ) -> Result<(), Failure> {
        let Self {
            client, operation, ..
        } = self;
        let (writes, parts) = writes(client, operation, key, seen, decision, turns).await?;
        if let (true, Some(record)) = (is_act(operation), &decision.write) {
            let on = seen.record.as_ref().map(|it| it.version);
            acts.begin(on, record.clone(), self.done(seen, decision));
        }
        let committed = client.commit(writes, turns.within()).await;
        let committed = committed.inspect_err(|failure| {
            if !failure.may_have_written() {
                acts.refused();
            }
        })?;
        turns.has_written();
        if let (Some(beliefs), Some(record)) = (self.beliefs, &decision.write) {
            beliefs.note(key, record, parts, &committed);
        }
        if let Some(renewal) = overdue(operation, &decision.answer, seen.now, committed.at) {
            renew(client, self.beliefs, &renewal, turns).await?;
        }
        Ok(())
    }

    fn done(self, seen: &Snapshot, decision: &Decision) -> Done {
        let old = seen.record.as_ref().map(|it| &it.value);
        let is_forgotten = matches!(self.operation, Operation::Forget(_));
        let husk = old.filter(|old| is_forgotten && is_husk(old, seen.now));
        Done {
            answer: decision.answer.clone(),
            ended: decision.ended.or(husk.map(|old| old.born)),
        }
    }
}

/// Whether it leaves nothing in the record that says whose it was.
const fn is_act(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Resolve { .. }
            | Operation::Redrive { .. }
            | Operation::ReleaseByOperator { .. }
            | Operation::Forget(_)
    )
}

/// Whether the database takes writes: deleting what is not there is one, and leaves nothing.
async fn ready(client: &Client, turns: &mut Turns<'_>) -> Result<Answer, Failure> {
    // Whoever asks does so every few seconds, and each write is billed.
    if client.took_a_write_within(READY_FOR) {
        return Ok(Answer::Ready);
    }
    let nothing = delete(client.names.nothing(), None);
    let written = client.commit(vec![nothing], turns.within()).await;
    // It has no condition that another's write could break: what is refused is refused for good.
    written.map_err(Failure::of_a_read)?;
    Ok(Answer::Ready)
}

/// What is committed for a decision, after what no document can hold; the record comes first. And where its bytes are.
async fn writes(
    client: &Client,
    operation: &Operation,
    key: &Key,
    seen: &Snapshot,
    decision: &Decision,
    turns: &mut Turns<'_>,
) -> Result<(Vec<Write>, Option<Parts>), Failure> {
    let mut writes = Vec::new();
    let mut named = None;
    let name = client.names.record(key);
    let was = seen.record.as_ref();
    if let Some(record) = &decision.write {
        let old = was.map(|was| (was.value.result.as_ref(), was.parts.as_ref()));
        let parts = Placed::of(client, &name, record.result.as_ref(), old, turns).await?;
        let fields = record_fields(record, parts.now.as_ref());
        writes.push(replace(name, fields, was.map(|was| was.version)));
        writes.extend(parts.removed);
        named = parts.now;
    } else if let Some(was) = was {
        // The step is written only if the run still has its lease.
        writes.push(verify(name, was.version));
    }
    if let (Some(step), Some((lease, step_name))) = (&decision.step, operation.step()) {
        let name = client.names.step(key, lease.born, step_name);
        let was = seen.step.as_ref();
        let old = was.map(|was| (was.value.result.as_ref(), was.parts.as_ref()));
        let parts = Placed::of(client, &name, step.result.as_ref(), old, turns).await?;
        let fields = step_fields(step_name, step, parts.now.as_ref());
        writes.push(replace(name, fields, was.map(|was| was.version)));
        writes.extend(parts.removed);
    }
    Ok((writes, named))
}

/// A lease that was granted or renewed with a clock which the commit left far behind: a third of it is over already.
fn overdue(operation: &Operation, answer: &Answer, now: Time, at: Time) -> Option<Operation> {
    let renewal = match (operation, answer) {
        (Operation::Claim(claim), Answer::Claimed(Claimed::Granted(lease))) => Operation::Renew {
            lease: Lease::clone(lease),
            lease_for: claim.lease,
            retention: claim.retention,
        },
        (Operation::Renew { .. }, Answer::Held(Held::Applied(_))) => operation.clone(),
        _ => return None,
    };
    let Operation::Renew { lease_for, .. } = &renewal else {
        return None;
    };
    (at.since(now) > *lease_for / 3).then_some(renewal)
}

/// Renews before the grant is answered; if it is lost by then, the claim is made again.
async fn renew(
    client: &Client,
    beliefs: Option<&Beliefs>,
    renewal: &Operation,
    turns: &mut Turns<'_>,
) -> Result<(), Failure> {
    let renewed = Box::pin(apply(client, beliefs, renewal, turns.within())).await?;
    match renewed.held()? {
        Held::Applied(_) => Ok(()),
        Held::Already(_) | Held::Settled(_) | Held::Parked | Held::Stale => Err(Failure::Overtaken),
    }
}
