//! Reading many rows: lists in pages.

use crate::codec::{self, Decode, Outline, RowKey, RowRange};
use crate::engine::Engine;
use bytes::Bytes;
use semel::letter::LetterHead;
use semel::protocol::{Record, State};
use semel::store::{Cursor, Page};
use semel::{Error, Key};

/// How many rows one page reads at the most: a list of a rare state comes back in short pages
/// instead of reading the whole store in one go.
const PAGE_ROWS_MAX: usize = 10_000;

/// How many items a page has at the most.
const PAGE_ITEMS_MAX: u32 = 10_000;

/// Records that are not expired, in the order of their keys.
pub(crate) fn records(
    engine: &Engine,
    state: Option<State>,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<(Key, Record)>, Error> {
    let now = engine.now();
    let range = codec::records(after.map(key_of).transpose()?.as_ref());
    page(engine, range, limit, |at, Outline(record)| {
        let asked = state.is_none_or(|state| record.state == state);
        let shown = asked && !record.expired(now);
        Some((key_at(at)?, record)).filter(|_| shown)
    })
}

/// Letters, oldest first.
pub(crate) fn letters(
    engine: &Engine,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<LetterHead>, Error> {
    let range = codec::orders(after.map(number_of).transpose()?);
    page(engine, range, limit, |_, head| Some(head))
}

/// A page of what `pick` picks, with a cursor at the last row that was read.
fn page<T: Decode, I>(
    engine: &Engine,
    range: RowRange,
    limit: u32,
    pick: impl Fn(&RowKey, T) -> Option<I>,
) -> Result<Page<I>, Error> {
    let limit = limit.clamp(1, PAGE_ITEMS_MAX) as usize;
    let mut items = Vec::new();
    for (seen, row) in engine.keyspace.range::<RowKey, _>(range).enumerate() {
        let row = row.into_inner();
        let (at, bytes) = row.map_err(|error| engine.engine_error("read", error))?;
        items.extend(pick(&at, engine.unseal(&at, &bytes)?.value));
        if items.len() == limit || seen + 1 == PAGE_ROWS_MAX {
            let next = Some(cursor_at(&at));
            return Ok(Page { items, next });
        }
    }
    Ok(Page { items, next: None })
}

/// A cursor is the key of a row without the byte that says what it is.
fn cursor_at(row: &RowKey) -> Cursor {
    Cursor(Bytes::copy_from_slice(row.get(1..).unwrap_or_default()))
}

fn key_at(row: &RowKey) -> Option<Key> {
    let key = row.get(1..)?.try_into().ok()?;
    Some(Key::from_bytes(key))
}

fn key_of(cursor: &Cursor) -> Result<Key, Error> {
    let key = cursor.0.as_ref().try_into().map_err(|_| foreign())?;
    Ok(Key::from_bytes(key))
}

fn number_of(cursor: &Cursor) -> Result<u64, Error> {
    let number = cursor.0.as_ref().try_into().map_err(|_| foreign())?;
    Ok(u64::from_be_bytes(number))
}

pub(crate) fn foreign() -> Error {
    Error::invalid(
        "the cursor is not one of this list: pass on the `next` of the page before; nothing was \
         read, and a retry fails again",
    )
}
