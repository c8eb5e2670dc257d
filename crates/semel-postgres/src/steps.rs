//! Steps: named parts of a run with a result of their own.

use crate::connections::{Connections, Param};
use crate::patience::insist;
use crate::statement::{STEP_BEGIN, STEP_COMPLETE, STEP_RESTART, Statement};
use crate::wire::{self, Id, Raw};
use bytes::Bytes;
use semel::Error;
use semel::clock::Time;
use semel::record::{self, Held, Lease, Record, State, StepBegun};
use std::time::Duration;
use tokio_postgres::Row;

/// How often a step that cannot be written under a lease that holds is looked at.
const UNWRITTEN_TRIES: u32 = 3;

pub(crate) async fn begin(
    connections: &Connections,
    lease: &Lease,
    name: &str,
) -> Result<StepBegun, Error> {
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
        rows.first().map(|row| begun(row, lease)).transpose()
    };
    let decide = |record: Option<&Record>, now| not_running(record, lease, now).map(Into::into);
    insist(connections, &lease.key, attempt, decide).await
}

pub(crate) async fn restart(
    connections: &Connections,
    lease: &Lease,
    name: &str,
) -> Result<Held, Error> {
    write(connections, lease, &STEP_RESTART, &[&name]).await
}

pub(crate) async fn complete(
    connections: &Connections,
    lease: &Lease,
    name: &str,
    result: &Bytes,
) -> Result<Held, Error> {
    write(connections, lease, &STEP_COMPLETE, &[&name, &Raw(result)]).await
}

async fn write(
    connections: &Connections,
    lease: &Lease,
    statement: &Statement,
    what: &[Param<'_>],
) -> Result<Held, Error> {
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
        Ok(written)
    };
    let decide = |record: Option<&Record>, now| not_running(record, lease, now);
    insist(connections, &lease.key, attempt, decide).await
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

/// Why a run has no steps; `None` when it is running, and its step must have been out of reach.
fn not_running(record: Option<&Record>, lease: &Lease, now: Time) -> Option<Held> {
    let renewal = record::renew(record, lease, Duration::ZERO, Duration::ZERO, now);
    crate::writes::unless_due(renewal)
}
