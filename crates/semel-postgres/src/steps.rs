//! Steps: named parts of a run with a result of their own.

use crate::connections::{Connections, Param};
use crate::retry::insist;
use crate::statement::{STEP_BEGIN, STEP_COMPLETE, STEP_RESTART, Statement};
use crate::wire::{self, Id, Raw};
use bytes::Bytes;
use semel::Error;
use semel::protocol::{Answer, Held, Lease, Operation, State, StepBegun};
use tokio_postgres::Row;

/// How often a step that cannot be written under a lease that holds is looked at.
const UNWRITTEN_TRIES: u32 = 3;

pub(crate) async fn begin(
    connections: &Connections,
    operation: &Operation,
    lease: &Lease,
    name: &str,
) -> Result<Answer, Error> {
    let attempt = || async {
        let rows = connections
            .query(
                &STEP_BEGIN,
                &[
                    &Raw(lease.key.as_bytes()),
                    &wire::fence_out(lease.fence),
                    &Id(lease.owner),
                    &name,
                ],
            )
            .await?;
        let begun = rows.first().map(|row| begun(row, lease)).transpose()?;
        Ok(begun.map(Answer::StepBegun))
    };
    insist(connections, operation, attempt).await
}

pub(crate) async fn restart(
    connections: &Connections,
    operation: &Operation,
    lease: &Lease,
    name: &str,
) -> Result<Answer, Error> {
    write(connections, operation, lease, &STEP_RESTART, &[&name]).await
}

pub(crate) async fn complete(
    connections: &Connections,
    operation: &Operation,
    lease: &Lease,
    name: &str,
    result: &Bytes,
) -> Result<Answer, Error> {
    let what: [Param<'_>; 2] = [&name, &Raw(result)];
    write(connections, operation, lease, &STEP_COMPLETE, &what).await
}

async fn write(
    connections: &Connections,
    operation: &Operation,
    lease: &Lease,
    statement: &Statement,
    what: &[Param<'_>],
) -> Result<Answer, Error> {
    let (key, fence, owner) = (
        Raw(lease.key.as_bytes()),
        wire::fence_out(lease.fence),
        Id(lease.owner),
    );
    let mut params: Vec<Param<'_>> = vec![&key, &fence, &owner];
    params.extend_from_slice(what);
    let params = params.as_slice();
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
