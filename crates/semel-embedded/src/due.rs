//! What a sweep finds: the notes that are due, oldest first, and the records they speak of.

use crate::codec::{self, Due, Incarnation, Outline, RowKey};
use crate::engine::Engine;
use bytes::Bytes;
use semel::Error;
use semel::clock::Time;
use semel::protocol::State;
use semel::store::Cursor;

/// How many records one call of sweep looks at: some tens of milliseconds of reading.
const SWEEP_ITEMS_MAX: usize = 2_048;

/// What one call of a sweep found.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// What is due; the writer looks again.
    pub(crate) rows: Vec<DueRow>,
    /// Where the next call begins, if more is due.
    pub(crate) next: Option<Cursor>,
    /// How many rows were read.
    pub(crate) read: usize,
}

/// A row of notes that are due.
#[derive(Debug)]
pub(crate) struct DueRow {
    pub(crate) at: RowKey,
    pub(crate) found: Vec<Found>,
}

/// A record that may be swept.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) of: Incarnation,
    /// The group that wrote the record, if the record has come to rest and has no steps: as long as
    /// that group wrote it last, none were begun.
    pub(crate) stepless_in: Option<u64>,
}

/// Reads what is due from `after` on, or from where earlier sweeps have come to.
pub(crate) fn read(engine: &Engine, after: Option<&Cursor>) -> Result<Window, Error> {
    let grace = u64::try_from(engine.grace.as_micros()).unwrap_or(u64::MAX);
    let until = Time(engine.now().0.saturating_sub(grace));
    let from = match after {
        Some(cursor) => place_of(cursor)?,
        None => (engine.swept_to(), 0),
    };
    let mut window = Window::default();
    let mut items = 0;
    for row in engine.keyspace.range::<RowKey, _>(codec::dues(from, until)) {
        let row = row.into_inner();
        let (at, bytes) = row.map_err(|error| engine.engine_error("read", error))?;
        // A damaged note stays where it is, and must not keep the others from being taken up.
        let Ok(due) = codec::unseal::<Due>(&at, &bytes) else {
            continue;
        };
        let Due(due) = due.value;
        if items + due.len() > SWEEP_ITEMS_MAX && items > 0 {
            window.next = codec::due_at(&at).map(cursor_at);
            break;
        }
        items += due.len();
        window.read += 1 + due.len();
        let mut found = Vec::with_capacity(due.len());
        for of in due {
            found.extend(look_at(engine, of)?);
        }
        window.rows.push(DueRow { at, found });
    }
    Ok(window)
}

/// The record, if it is there and sound. A damaged one stays: it is told of when it is asked for.
fn look_at(engine: &Engine, of: Incarnation) -> Result<Option<Found>, Error> {
    let at = codec::record(&of.key);
    let Some(bytes) = engine.get(&at)? else {
        return Ok(None);
    };
    let Ok(row) = codec::unseal::<Outline>(&at, &bytes) else {
        return Ok(None);
    };
    let at_rest = row.value.0.state != State::Running;
    let has_steps = || {
        let mut steps = engine.keyspace.prefix(codec::steps(&of.key, of.born));
        steps.next().is_some()
    };
    let stepless = at_rest && !has_steps();
    Ok(Some(Found {
        of,
        stepless_in: stepless.then_some(row.group),
    }))
}

fn cursor_at((at, group): (Time, u64)) -> Cursor {
    Cursor(Bytes::from(
        [at.0.to_be_bytes(), group.to_be_bytes()].concat(),
    ))
}

fn place_of(cursor: &Cursor) -> Result<(Time, u64), Error> {
    let place = || {
        let (at, group) = cursor.0.split_first_chunk::<8>()?;
        let group = group.try_into().ok()?;
        Some((Time(u64::from_be_bytes(*at)), u64::from_be_bytes(group)))
    };
    place().ok_or_else(crate::pages::foreign)
}

// === impl Window ===

impl Window {
    /// The time up to which everything is taken up once this window is.
    pub(crate) fn up_to(&self) -> Option<Time> {
        let last = self.rows.last()?;
        codec::due_at(&last.at).map(|(at, _)| at)
    }
}
