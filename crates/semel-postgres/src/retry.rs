//! Trying again, with pauses that grow and an end.

use crate::connections::Connections;
use crate::errors;
use crate::statement::{LOOK, SHOW};
use crate::wire::{self, Raw};
use bytes::Bytes;
use semel::clock::Time;
use semel::protocol::{Answer, Operation, Record, StepRecord, decide};
use semel::{Error, Key};
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a write tries to reach a record that another transaction holds.
const HELD_WAIT_MAX: Duration = Duration::from_secs(1);

/// The first pause; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(2);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// How often a write is tried at the least, however slow the server is.
const TRIES_MIN: u32 = 6;

/// The pauses between attempts: none before the second, then growing, with jitter.
pub(crate) struct Retries {
    until: Instant,
    tries: u32,
    next: Duration,
}

// === impl Retries ===

impl Retries {
    /// Retries for `wait` from now.
    pub(crate) fn within(wait: Duration) -> Self {
        Self {
            until: Instant::now() + wait,
            tries: 1,
            next: Duration::ZERO,
        }
    }

    /// Pauses before another attempt; `false` when there shall be none.
    #[allow(
        clippy::disallowed_methods,
        reason = "jitter: nothing that is stored depends on it"
    )]
    pub(crate) async fn pause(&mut self) -> bool {
        if self.tries >= TRIES_MIN && Instant::now() >= self.until {
            return false;
        }
        self.tries += 1;
        if !self.next.is_zero() {
            sleep(self.next.mul_f64(rand::random_range(0.5..1.5))).await;
        }
        self.next = (self.next * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        true
    }
}

/// Makes a conditional write until it is made, or until the record says why it is not to be.
///
/// `attempt` answers `None` when it changed no row. Then the record is read in a new statement (the
/// snapshot of the first one may be older than what stood in its way), and the operation is decided on
/// it; if the write should have been made, there was a lost race, or a held row.
pub(crate) async fn insist<F>(
    connections: &Connections,
    operation: &Operation,
    mut attempt: impl FnMut() -> F,
) -> Result<Answer, Error>
where
    F: Future<Output = Result<Option<Answer>, Error>>,
{
    let key = operation.key().ok_or_else(keyless)?;
    let mut retries: Option<Retries> = None;
    loop {
        if let Some(answer) = attempt().await? {
            return Ok(answer);
        }
        let found = look(connections, key).await?;
        let now = found.as_ref().map_or(Time(0), |(_, now)| *now);
        if let Some(answer) = undone(found.as_ref().map(|(record, _)| record), operation, now) {
            return Ok(answer);
        }
        let retries = retries.get_or_insert_with(|| Retries::within(HELD_WAIT_MAX));
        if !retries.pause().await {
            return Err(errors::held());
        }
    }
}

/// Why the operation is not to be done; `None` when it should have been.
fn undone(record: Option<&Record>, operation: &Operation, now: Time) -> Option<Answer> {
    // A step is not read again: it was out of reach, or the run does not hold its record. As if this run had begun it,
    // a run that holds its record would have written it.
    let begun = operation.step().map(|(lease, _)| StepRecord {
        fence: lease.fence,
        result: None,
    });
    let step = begun.filter(|_| !matches!(operation, Operation::StepBegin { .. }));
    decide(record, step.as_ref(), operation, now).unless_written()
}

fn keyless() -> Error {
    Error::bug("an operation without a key was made on a record")
}

/// The record of a key as it stands, expired or not, and the time it was read.
pub(crate) async fn look(
    connections: &Connections,
    key: &Key,
) -> Result<Option<(Record, Time)>, Error> {
    let rows = connections.query(&LOOK, &[&Raw(key.as_bytes())]).await?;
    rows.first().map(|row| wire::record(row, 0)).transpose()
}

/// The record of a key as it is shown: with its label and its history, unless it is absent or expired.
pub(crate) async fn show(connections: &Connections, key: &Key) -> Result<Option<Record>, Error> {
    let rows = connections.query(&SHOW, &[&Raw(key.as_bytes())]).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let (record, now) = wire::record(row, 0)?;
    let label: Option<&[u8]> = wire::get(row, 14)?;
    let label = label.map_or_else(Bytes::new, Bytes::copy_from_slice);
    let history = wire::history(row, 15)?;
    Ok((!record.expired(now)).then_some(Record {
        label,
        history,
        ..record
    }))
}
