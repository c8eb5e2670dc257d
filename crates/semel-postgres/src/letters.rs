//! Letters, in a table of their own.

use crate::connections::{Connections, Param};
use crate::statement::{LETTER_DROP, LETTER_GET, LETTER_LIST, LETTER_PUT};
use crate::wire::{self, Moment, Raw};
use bytes::{BufMut, Bytes, BytesMut};
use semel::clock::Time;
use semel::letter::{Dropped, Letter, LetterHead, LetterId, Put, Reason};
use semel::store::{Cursor, Page};
use semel::{Error, Key};
use tokio_postgres::Row;

/// Later than any letter: the year 9999, which `timestamptz` can hold.
const TIME_MAX: Time = Time(253_402_300_800_000_000);

pub(crate) async fn put(connections: &Connections, letter: &Letter) -> Result<Put, Error> {
    let key = letter.key.as_ref().map(|key| Raw(key.as_bytes()));
    let params: [Param<'_>; 4] = [
        &Raw(&letter.id.0),
        &key,
        &i16::from(letter.reason.number()),
        &Raw(&letter.delivery),
    ];
    let rows = connections.query(&LETTER_PUT, &params).await?;
    Ok(if rows.is_empty() {
        Put::Already
    } else {
        Put::Applied
    })
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
        Ok(Letter {
            id: LetterId(wire::bytes32(wire::get(row, 0)?)?),
            key: key(row, 1)?,
            reason: reason(row, 2)?,
            delivery: Bytes::copy_from_slice(wire::get(row, 3)?),
        })
    };
    rows.first().map(letter).transpose()
}

pub(crate) async fn discard(connections: &Connections, id: &LetterId) -> Result<Dropped, Error> {
    let rows = connections.query(&LETTER_DROP, &[&Raw(&id.0)]).await?;
    Ok(if rows.is_empty() {
        Dropped::Gone
    } else {
        Dropped::Applied
    })
}

fn head(row: &Row) -> Result<LetterHead, Error> {
    Ok(LetterHead {
        id: LetterId(wire::bytes32(wire::get(row, 0)?)?),
        key: key(row, 1)?,
        reason: reason(row, 2)?,
        bytes: u64::try_from(wire::get::<i32>(row, 3)?).unwrap_or(0),
        created_at: wire::get::<Moment>(row, 4)?.0,
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
        Some(_) | None => Err(Error::Invalid(
            "this is no cursor of the letters of a PostgreSQL store; begin from the start".into(),
        )),
    }
}
