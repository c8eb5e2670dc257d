//! Steps: named parts of a run with a result of their own.

use crate::connections::{Connections, Param};
use crate::retry::insist;
use crate::statement::{STEP_BEGIN, STEPS, Statement};
use crate::wire::{self, Id, Raw};
use bytes::Bytes;
use semel::protocol::{Answer, Held, Lease, Operation, State, StepBegun, StepRecord};
use semel::store::{STEP_SHOWN_BYTES_MAX, STEPS_SHOWN_MAX};
use semel::{Error, Key};
use tokio_postgres::Row;

/// How often a step that cannot be written under a lease that holds is looked at.
const UNWRITTEN_TRIES: u32 = 3;

/// Begins a step.
pub(crate) async fn begin(
    connections: &Connections,
    operation: &Operation,
) -> Result<Answer, Error> {
    let (lease, name) = operation.step().ok_or_else(without_step)?;
    let (key, fence, owner) = parts(lease);
    let params: [Param<'_>; 4] = [&key, &fence, &owner, &name];
    let attempt = || async {
        let rows = connections.query(&STEP_BEGIN, &params).await?;
        let begun = rows.first().map(|row| begun(row, lease)).transpose()?;
        Ok(begun.map(Answer::StepBegun))
    };
    insist(connections, operation, attempt).await
}

/// Shows the steps of the incarnation that is there.
pub(crate) async fn show(
    connections: &Connections,
    key: &Key,
) -> Result<Vec<(String, StepRecord)>, Error> {
    let limit = i64::try_from(STEPS_SHOWN_MAX).unwrap_or(i64::MAX);
    let bytes = i32::try_from(STEP_SHOWN_BYTES_MAX).unwrap_or(i32::MAX);
    let params: [Param<'_>; 3] = [&Raw(key.as_bytes()), &limit, &bytes];
    let rows = connections.query(&STEPS, &params).await?;
    let step = |row: &Row| {
        let result: Option<&[u8]> = wire::get(row, 3)?;
        let result = result.map_or_else(Bytes::new, Bytes::copy_from_slice);
        let done: bool = wire::get(row, 2)?;
        let step = StepRecord {
            fence: wire::fence(row, 1)?,
            result: done.then_some(result),
        };
        Ok((wire::get(row, 0)?, step))
    };
    rows.iter().map(step).collect()
}

/// Begins a step again, or records its result.
pub(crate) async fn write(
    connections: &Connections,
    operation: &Operation,
    statement: &Statement,
) -> Result<Answer, Error> {
    let (lease, name) = operation.step().ok_or_else(without_step)?;
    let (key, fence, owner) = parts(lease);
    let result = operation.result().map(|result| Raw(result));
    let params: [Param<'_>; 5] = [&key, &fence, &owner, &name, &result];
    let params = statement.taken(&params);
    let attempt = || async {
        let mut written = None;
        // A snapshot can be older than an equal call that the write had to wait for; the next is not.
        for _ in 0..UNWRITTEN_TRIES {
            let rows = connections.query(statement, params).await?;
            written = rows.first().map_or(Ok(None), self::written)?;
            if written != Some(Held::Stale) {
                break;
            }
        }
        Ok(written.map(Answer::Held))
    };
    insist(connections, operation, attempt).await
}

fn parts(lease: &Lease) -> (Raw<'_>, i64, Id) {
    let key = Raw(lease.key.as_bytes());
    (key, wire::fence_out(lease.fence), Id(lease.owner))
}

fn without_step() -> Error {
    Error::bug("an operation without a step was made on one")
}

fn begun(row: &Row, lease: &Lease) -> Result<StepBegun, Error> {
    let (state, fence) = (wire::get::<i16>(row, 0)?, wire::fence(row, 1)?);
    match state {
        0 => Ok(StepBegun::Run),
        1 if fence == lease.fence => Ok(StepBegun::Run),
        1 => Ok(StepBegun::InDoubt(fence)),
        2 => Ok(StepBegun::Memo {
            fence,
            result: Bytes::copy_from_slice(wire::get::<Option<&[u8]>>(row, 2)?.unwrap_or_default()),
        }),
        other => Err(wire::corrupt(&format!("there is no step state {other}"))),
    }
}

/// Whether the step was written; `None` when the run does not hold its record.
fn written(row: &Row) -> Result<Option<Held>, Error> {
    let (held, done, already): (bool, bool, bool) =
        (wire::get(row, 0)?, wire::get(row, 1)?, wire::get(row, 2)?);
    Ok(match (held, done, already) {
        (false, _, _) => None,
        (true, true, _) => Some(Held::Applied(State::Running)),
        (true, false, true) => Some(Held::Already(State::Running)),
        (true, false, false) => Some(Held::Stale),
    })
}
