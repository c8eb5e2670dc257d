//! One operation on a record: read, decide, commit on condition that nothing changed.
//!
//! A turn whose answer was lost needs no care of its own: the next turn reads, and `decide` finds the same owner or fence
//! there. A commit that arrives late fails its condition.

use crate::belief::Beliefs;
use crate::client::{Client, Failure};
use crate::forget::{delete_steps, is_husk};
use crate::index;
use crate::parts::{Parts, Placed};
use crate::proto::Write;
use crate::record_document::{record_fields, step_fields};
use crate::snapshot::Snapshot;
use crate::turn::Turns;
use crate::writes::{delete, replace, verify};
use semel::clock::Time;
use semel::protocol::{Answer, Claimed, Decision, Held, Lease, Operation};
use semel::{Error, Key};
use std::time::Duration;

/// Does one operation. The first turn begins with what is believed, the others read.
pub(crate) async fn apply(
    client: &Client,
    beliefs: Option<&Beliefs>,
    operation: &Operation,
    timeout: Duration,
) -> Result<Answer, Error> {
    let mut turns = Turns::new(client, timeout);
    let believed = beliefs.and_then(|it| it.for_operation(client, operation));
    let mut believed = believed.map(Snapshot::believed);
    loop {
        match turn(client, beliefs, operation, believed.take(), &mut turns).await {
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
    turns: &mut Turns<'_>,
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
        let (writes, parts) = writes(client, operation, key, &seen, &decision, turns).await?;
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
async fn ready(client: &Client, turns: &mut Turns<'_>) -> Result<Answer, Failure> {
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
    turns: &mut Turns<'_>,
) -> Result<(), Failure> {
    let renewed = Box::pin(apply(client, beliefs, renewal, turns.within())).await?;
    match renewed.held()? {
        Held::Applied(_) => Ok(()),
        Held::Already(_) | Held::Settled(_) | Held::Parked | Held::Stale => Err(Failure::Overtaken),
    }
}
