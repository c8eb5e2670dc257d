//! One operation on a record: read, decide, commit on condition that nothing changed.
//!
//! A turn whose answer was lost needs no care of its own: the next turn reads, and `decide` finds the same owner or fence
//! there. A commit that arrives late fails its condition.

use crate::belief::{Beliefs, Believed};
use crate::client::{Client, Failure};
use crate::index;
use crate::names::{Collection, steps_of};
use crate::parts::{Kept, Parts, Placed};
use crate::proto::{Document, Write};
use crate::query;
use crate::record_document::{Stored, read_record, read_step, record_fields, step_fields};
use crate::turn::Turns;
use crate::writes::{Version, delete, replace, verify};
use bytes::Bytes;
use semel::clock::Time;
use semel::protocol::{
    Answer, Claimed, Decision, Fence, Held, Lease, Operation, Record, State, StepRecord, decide,
};
use semel::{Error, Key};
use std::time::Duration;

/// How many steps of a forgotten incarnation are deleted at a time.
const STEPS_MAX: u32 = 300;

/// A document that was read.
#[derive(Debug)]
struct Found<T> {
    value: T,
    parts: Option<Parts>,
    version: Version,
}

/// What an operation is decided by: the record of its key and the step that it names, at one moment.
#[derive(Debug)]
struct Snapshot {
    record: Option<Found<Record>>,
    step: Option<Found<StepRecord>>,
    now: Time,
}

/// Does one operation. The first turn begins with what is believed, the others read.
pub(crate) async fn apply(
    client: &Client,
    beliefs: Option<&Beliefs>,
    operation: &Operation,
    timeout: Duration,
) -> Result<Answer, Error> {
    let mut turns = Turns::new(client, timeout);
    let mut kept = None;
    let believed = beliefs.and_then(|it| it.for_operation(client, operation));
    let mut believed = believed.map(Snapshot::believed);
    loop {
        match turn(
            client,
            beliefs,
            operation,
            believed.take(),
            &turns,
            &mut kept,
        )
        .await
        {
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

/// One turn; none is a belief by which nothing would be written: it is no answer.
async fn turn(
    client: &Client,
    beliefs: Option<&Beliefs>,
    operation: &Operation,
    believed: Option<Snapshot>,
    turns: &Turns<'_>,
    kept: &mut Kept,
) -> Result<Option<Answer>, Failure> {
    let Some(key) = operation.key() else {
        return ready(client, turns).await.map(Some);
    };
    let is_believed = believed.is_some();
    let seen = match believed {
        Some(believed) => believed,
        None => Snapshot::read(client, operation, key, turns).await?,
    };
    let mut decision = seen.decide(operation);
    if let Some(record) = &mut decision.write {
        record.remember(decision.superseded.take());
    }
    if decision.write.is_some() || decision.step.is_some() {
        let (writes, parts) = writes(client, operation, key, &seen, &decision, turns, kept).await?;
        let committed = client.commit(writes, turns.within()).await?;
        if let (Some(beliefs), Some(record)) = (beliefs, &decision.write) {
            beliefs.note(key, record, parts, &committed);
        }
        if let Some(renewal) = overdue(operation, &decision.answer, seen.now, committed.at) {
            renew(client, beliefs, &renewal, turns).await?;
        }
    } else if is_believed {
        return Ok(None);
    } else if let (Some(beliefs), Some(_)) = (beliefs, &seen.record) {
        beliefs.is_seen(key);
    }
    if let (Operation::Forget(_), Some(old)) = (operation, &seen.record)
        && (decision.ended.is_some() || is_husk(&old.value, seen.now))
    {
        delete_steps(client, key, old.value.born, turns).await?;
        index::forget(client, key, turns).await?;
    }
    Ok(Some(decision.answer))
}

/// Whether the database takes writes: deleting what is not there is one, and leaves nothing.
async fn ready(client: &Client, turns: &Turns<'_>) -> Result<Answer, Failure> {
    let nothing = delete(client.names.nothing(), None);
    client.commit(vec![nothing], turns.within()).await?;
    Ok(Answer::Ready)
}

/// What is committed for a decision, after what no document can hold; the record comes first. And where its bytes are.
async fn writes(
    client: &Client,
    operation: &Operation,
    key: &Key,
    seen: &Snapshot,
    decision: &Decision,
    turns: &Turns<'_>,
    kept: &mut Kept,
) -> Result<(Vec<Write>, Option<Parts>), Failure> {
    let mut writes = Vec::new();
    let mut named = None;
    let name = client.names.record(key);
    let was = seen.record.as_ref();
    if let Some(record) = &decision.write {
        let old = was.map(|was| (was.value.result.as_ref(), was.parts.as_ref()));
        let parts = Placed::of(client, &name, record.result.as_ref(), old, turns, kept).await?;
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
        let parts = Placed::of(client, &name, step.result.as_ref(), old, turns, kept).await?;
        let fields = step_fields(step_name, step, parts.now.as_ref());
        writes.push(replace(name, fields, was.map(|was| was.version)));
        writes.extend(parts.removed);
    }
    Ok((writes, named))
}

/// A claim that was granted with a clock which the commit left far behind: a third of its lease is over already.
fn overdue(operation: &Operation, answer: &Answer, now: Time, at: Time) -> Option<Operation> {
    let (Operation::Claim(claim), Answer::Claimed(Claimed::Granted(lease))) = (operation, answer)
    else {
        return None;
    };
    let late = at.since(now) > claim.lease / 3;
    late.then(|| Operation::Renew {
        lease: Lease::clone(lease),
        lease_for: claim.lease,
        retention: claim.retention,
    })
}

/// Renews before the grant is answered; if it is lost by then, the claim is made again.
async fn renew(
    client: &Client,
    beliefs: Option<&Beliefs>,
    renewal: &Operation,
    turns: &Turns<'_>,
) -> Result<(), Failure> {
    let renewed = Box::pin(apply(client, beliefs, renewal, turns.within())).await?;
    match renewed.held()? {
        Held::Applied(_) => Ok(()),
        Held::Already(_) | Held::Settled(_) | Held::Parked | Held::Stale => Err(Failure::Overtaken),
    }
}

/// Whether it is what forgetting leaves: an earlier turn may have come that far, and no further. Nobody can begin a step of a
/// record that waits, and whoever claims it once it has expired begins anew.
fn is_husk(record: &Record, now: Time) -> bool {
    record.state == State::Waiting && record.expired(now)
}

/// What ends with an incarnation that an operator ended. No run of it can write another step.
async fn delete_steps(
    client: &Client,
    key: &Key,
    born: Fence,
    turns: &Turns<'_>,
) -> Result<(), Failure> {
    let first = client
        .names
        .document(Collection::Steps, &steps_of(key, born));
    loop {
        let steps = query::beginning_with(client, Collection::Steps, &first, &[], STEPS_MAX);
        let rows = client.query(steps, turns.within()).await?;
        let Some(full) = u32::try_from(rows.documents.len())
            .ok()
            .filter(|it| *it > 0)
        else {
            return Ok(());
        };
        let deletes = rows.documents.into_iter().map(|it| delete(it.name, None));
        client.commit(deletes.collect(), turns.within()).await?;
        if full < STEPS_MAX {
            return Ok(());
        }
    }
}

// === impl Snapshot ===

impl Snapshot {
    fn believed((record, now): (Option<Believed>, Time)) -> Self {
        let record = record.map(|it| Found {
            value: it.record,
            parts: it.parts,
            version: it.version,
        });
        Self {
            record,
            step: None,
            now,
        }
    }

    async fn read(
        client: &Client,
        operation: &Operation,
        key: &Key,
        turns: &Turns<'_>,
    ) -> Result<Self, Failure> {
        let step = operation.step();
        let mut names = vec![client.names.record(key)];
        names.extend(step.map(|(lease, name)| client.names.step(key, lease.born, name)));
        let seen = client.read(names, turns.within()).await?;
        let mut documents = seen.documents.into_iter();
        let mut next = || documents.next().flatten();
        let (record, step) = (next(), next());
        Ok(Self {
            record: Found::of(client, record, read_record, |it| &mut it.result, turns).await?,
            step: Found::of(client, step, read_step, |it| &mut it.result, turns).await?,
            now: seen.now,
        })
    }

    fn decide(&self, operation: &Operation) -> Decision {
        let record = self.record.as_ref().map(|it| &it.value);
        let step = self.step.as_ref().map(|it| &it.value);
        decide(record, step, operation, self.now)
    }
}

// === impl Found ===

impl<T> Found<T> {
    /// What a document says, its bytes included wherever they are.
    async fn of(
        client: &Client,
        document: Option<Document>,
        read: fn(&Document) -> Result<Stored<T>, Error>,
        bytes: fn(&mut T) -> &mut Option<Bytes>,
        turns: &Turns<'_>,
    ) -> Result<Option<Self>, Failure> {
        let Some(document) = document else {
            return Ok(None);
        };
        let Stored { mut value, parts } = read(&document)?;
        if let Some(parts) = &parts {
            *bytes(&mut value) = Some(parts.fetch(client, turns.within()).await?);
        }
        Ok(Some(Self {
            value,
            parts,
            version: version(&document)?,
        }))
    }
}

/// When the document last changed.
pub(crate) fn version(document: &Document) -> Result<Version, Error> {
    document.update_time.ok_or_else(|| {
        Error::corrupt(format!(
            "Firestore told no version of {}; stop and look what answers there",
            document.name
        ))
    })
}
