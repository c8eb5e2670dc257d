//! Letters, in a table of their own.

use crate::connections::{Connections, Param};
use crate::statement::{
    LETTER_GET, LETTER_LIST, LETTER_LOOK, LETTER_MARK, LETTER_PUT, LETTER_SWEEP,
};
use crate::wire::{self, Moment, Raw};
use bytes::{BufMut, Bytes, BytesMut};
use semel::clock::Time;
use semel::letter::{Letter, LetterHead, LetterId, Mark, Marked, Put, Reason};
use semel::store::{Cursor, Page};
use semel::{Error, Key};
use std::time::Duration;
use tokio_postgres::Row;

/// Later than any letter: the year 9999, which `timestamptz` can hold.
const TIME_MAX: Time = Time(253_402_300_800_000_000);

/// How often a letter is put whose tombstone goes while it is put: each time a sweep came between.
const PUT_TRIES_MAX: u32 = 5;

/// How many tombstones go at once.
const SWEEP_ROWS_MAX: i64 = 1000;

pub(crate) async fn put(connections: &Connections, letter: &Letter) -> Result<Put, Error> {
    let key = letter.key.as_ref().map(|key| Raw(key.as_bytes()));
    let retention = i64::try_from(letter.retention.as_micros()).unwrap_or(i64::MAX);
    let params: [Param<'_>; 9] = [
        &Raw(&letter.id.0),
        &key,
        &letter.route,
        &i16::from(letter.reason.number()),
        &wire::fence_out(letter.fence),
        &retention,
        &letter.redriven,
        &letter.alarmed,
        &Raw(&letter.delivery),
    ];
    for _ in 0..PUT_TRIES_MAX {
        let rows = connections.query(&LETTER_PUT, &params).await?;
        if let Some(row) = rows.first() {
            return Ok(if wire::get(row, 0)? {
                Put::Applied
            } else {
                Put::Already
            });
        }
        let rows = connections
            .query(&LETTER_LOOK, &[&Raw(&letter.id.0)])
            .await?;
        if let Some(row) = rows.first() {
            return Ok(if wire::get(row, 0)? {
                Put::Already
            } else {
                Put::Closed
            });
        }
    }
    Err(Error::unavailable(format!(
        "letter {} was swept each time it was put; nothing was written, a retry is safe",
        letter.id
    )))
}

pub(crate) async fn list(
    connections: &Connections,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<LetterHead>, Error> {
    let (created_at, id) = after.map_or(Ok((Time(0), Bytes::new())), read_cursor)?;
    let limit = limit.max(1) as usize;
    // One more than asked for tells whether there is a next page.
    let rows = i64::try_from(limit + 1).unwrap_or(i64::MAX);
    let params: [Param<'_>; 3] = [&Moment(created_at), &Raw(&id), &rows];
    let rows = connections.query(&LETTER_LIST, &params).await?;
    let mut items = Vec::with_capacity(rows.len());
    for row in rows.iter().take(limit) {
        items.push(head(row)?);
    }
    let next = items
        .last()
        .filter(|_| rows.len() > limit)
        .map(write_cursor);
    Ok(Page { items, next })
}

pub(crate) async fn get(connections: &Connections, id: &LetterId) -> Result<Option<Letter>, Error> {
    let rows = connections.query(&LETTER_GET, &[&Raw(&id.0)]).await?;
    let letter = |row: &Row| {
        let retention: i64 = wire::get(row, 5)?;
        Ok(Letter {
            id: LetterId(wire::bytes32(wire::get(row, 0)?)?),
            key: key(row, 1)?,
            route: wire::get(row, 2)?,
            reason: reason(row, 3)?,
            fence: wire::fence(row, 4)?,
            retention: Duration::from_micros(u64::try_from(retention).unwrap_or(0)),
            redriven: wire::get(row, 6)?,
            alarmed: wire::get(row, 7)?,
            delivery: Bytes::copy_from_slice(wire::get(row, 8)?),
        })
    };
    rows.first().map(letter).transpose()
}

pub(crate) async fn mark(
    connections: &Connections,
    id: &LetterId,
    mark: Mark,
) -> Result<Marked, Error> {
    let number: i16 = match mark {
        Mark::Redriven => 1,
        Mark::Alarmed => 2,
        Mark::Closed => 3,
    };
    let rows = connections
        .query(&LETTER_MARK, &[&Raw(&id.0), &number])
        .await?;
    Ok(if rows.is_empty() {
        Marked::Gone
    } else {
        Marked::Applied
    })
}

/// Removes the tombstones that have expired.
pub(crate) async fn sweep(connections: &Connections) -> Result<(), Error> {
    loop {
        let rows = connections.query(&LETTER_SWEEP, &[&SWEEP_ROWS_MAX]).await?;
        if i64::try_from(rows.len()).unwrap_or(i64::MAX) < SWEEP_ROWS_MAX {
            return Ok(());
        }
    }
}

fn head(row: &Row) -> Result<LetterHead, Error> {
    Ok(LetterHead {
        id: LetterId(wire::bytes32(wire::get(row, 0)?)?),
        key: key(row, 1)?,
        route: wire::get(row, 2)?,
        reason: reason(row, 3)?,
        fence: wire::fence(row, 4)?,
        redriven: wire::get(row, 5)?,
        alarmed: wire::get(row, 6)?,
        bytes: u64::try_from(wire::get::<i32>(row, 7)?).unwrap_or(0),
        created_at: wire::get::<Moment>(row, 8)?.0,
    })
}

fn key(row: &Row, column: usize) -> Result<Option<Key>, Error> {
    let bytes: Option<&[u8]> = wire::get(row, column)?;
    bytes
        .map(|bytes| wire::bytes32(bytes).map(Key::from_bytes))
        .transpose()
}

fn reason(row: &Row, column: usize) -> Result<Reason, Error> {
    let number: i16 = wire::get(row, column)?;
    u8::try_from(number)
        .ok()
        .and_then(Reason::from_number)
        .ok_or_else(|| wire::corrupt(&format!("there is no reason {number}")))
}

fn write_cursor(last: &LetterHead) -> Cursor {
    let mut bytes = BytesMut::with_capacity(40);
    bytes.put_u64(last.created_at.0);
    bytes.put_slice(&last.id.0);
    Cursor(bytes.freeze())
}

fn read_cursor(cursor: &Cursor) -> Result<(Time, Bytes), Error> {
    let read = cursor.0.split_first_chunk::<8>();
    match read.map(|(time, id)| (Time(u64::from_be_bytes(*time)), id)) {
        Some((time, id)) if time < TIME_MAX && id.len() == 32 => {
            Ok((time, Bytes::copy_from_slice(id)))
        }
        Some(_) | None => Err(Error::invalid(
            "this is not a cursor of the letters of a PostgreSQL store; begin from the start",
        )),
    }
}
