//! Lists and sweeps: a bounded part of the table at a time, and a cursor to go on.

use crate::connections::Connections;
use crate::statement::{LIST, SWEEP, SWEEP_RENEWALS, SWEEP_STEPS, Statement};
use crate::wire::{self, Page as PageStart, Raw, Span};
use bytes::{BufMut, Bytes, BytesMut};
use semel::protocol::{Record, State};
use semel::store::{Cursor, Page, Swept};
use semel::{Error, Key};
use std::time::Duration;
use tokio_postgres::Row;

/// How many rows a page of a list reads at the most, however few of them match.
const LIST_ROWS_MAX: i64 = 10_000;

/// How many pages of a table a sweep looks at.
const SWEEP_PAGES: u32 = 1000;

/// Where a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Records { page: u32 },
    Steps { page: u32 },
    Renewals { page: u32 },
}

pub(crate) async fn list(
    connections: &Connections,
    state: Option<State>,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<(Key, Record)>, Error> {
    let after = after.map_or(&[][..], |cursor| &cursor.0);
    let state = state.map_or(0, |state| i16::from(state.number()));
    let limit = i64::from(limit.max(1));
    let params: [crate::connections::Param<'_>; 4] = [&Raw(after), &LIST_ROWS_MAX, &state, &limit];
    let rows = connections.query(&LIST, &params).await?;
    let mut items = Vec::with_capacity(rows.len());
    for row in &rows {
        if wire::get::<Option<&[u8]>>(row, 10)?.is_some() {
            items.push((wire::key(row, 10)?, wire::record(row, 0)?.0));
        }
    }
    let full = i64::try_from(items.len()) == Ok(limit);
    let next = match items.last() {
        Some((key, _)) if full => Some(Cursor(Bytes::copy_from_slice(key.as_bytes()))),
        Some(_) | None => rows.first().map_or(Ok(None), read_to)?,
    };
    Ok(Page { items, next })
}

/// Where the next page begins when this one read as much as it may.
fn read_to(row: &Row) -> Result<Option<Cursor>, Error> {
    let (read, last): (i64, Option<&[u8]>) = (wire::get(row, 11)?, wire::get(row, 12)?);
    Ok(last
        .filter(|_| read == LIST_ROWS_MAX)
        .map(|last| Cursor(Bytes::copy_from_slice(last))))
}

pub(crate) async fn sweep(
    connections: &Connections,
    grace: Duration,
    after: Option<&Cursor>,
) -> Result<Swept, Error> {
    match after.map_or(Ok(Place::Records { page: 0 }), Place::read)? {
        Place::Records { page } => {
            let to = page.saturating_add(SWEEP_PAGES);
            let window = (PageStart(page), PageStart(to));
            let rows = connections
                .query(&SWEEP, &[&window.0, &window.1, &Span(grace)])
                .await?;
            let (removed, pages) = swept(&rows)?;
            let next = if to < pages {
                Place::Records { page: to }
            } else {
                Place::Steps { page: 0 }
            };
            Ok(Swept {
                removed,
                next: Some(next.write()),
            })
        }
        Place::Steps { page } => {
            let next = match sweep_beside(connections, &SWEEP_STEPS, page).await? {
                Some(page) => Place::Steps { page },
                None => Place::Renewals { page: 0 },
            };
            Ok(Swept {
                removed: 0,
                next: Some(next.write()),
            })
        }
        Place::Renewals { page } => {
            let next = sweep_beside(connections, &SWEEP_RENEWALS, page).await?;
            Ok(Swept {
                removed: 0,
                next: next.map(|page| Place::Renewals { page }.write()),
            })
        }
    }
}

/// Sweeps a window of what belongs to records that are gone; the next page, if there is one.
async fn sweep_beside(
    connections: &Connections,
    statement: &Statement,
    page: u32,
) -> Result<Option<u32>, Error> {
    let to = page.saturating_add(SWEEP_PAGES);
    let window = (PageStart(page), PageStart(to));
    let rows = connections
        .query(statement, &[&window.0, &window.1])
        .await?;
    let (_rows, pages) = swept(&rows)?;
    Ok((to < pages).then_some(to))
}

/// How many rows went, and how many pages the table has.
fn swept(rows: &[Row]) -> Result<(u64, u32), Error> {
    let row = rows
        .first()
        .ok_or_else(|| Error::Bug("a sweep answered nothing".into()))?;
    let (removed, pages): (i64, i64) = (wire::get(row, 0)?, wire::get(row, 1)?);
    Ok((
        u64::try_from(removed).unwrap_or(0),
        u32::try_from(pages).unwrap_or(u32::MAX),
    ))
}

// === impl Place ===

impl Place {
    fn write(self) -> Cursor {
        let (table, page) = match self {
            Self::Records { page } => (b'r', page),
            Self::Steps { page } => (b's', page),
            Self::Renewals { page } => (b'n', page),
        };
        let mut bytes = BytesMut::with_capacity(5);
        bytes.put_u8(table);
        bytes.put_u32(page);
        Cursor(bytes.freeze())
    }

    fn read(cursor: &Cursor) -> Result<Self, Error> {
        match *cursor.0 {
            [b'r', a, b, c, d] => Ok(Self::Records {
                page: u32::from_be_bytes([a, b, c, d]),
            }),
            [b's', a, b, c, d] => Ok(Self::Steps {
                page: u32::from_be_bytes([a, b, c, d]),
            }),
            [b'n', a, b, c, d] => Ok(Self::Renewals {
                page: u32::from_be_bytes([a, b, c, d]),
            }),
            _ => Err(Error::Invalid(
                "this is no cursor of a sweep of a PostgreSQL store; begin from the start".into(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_written() {
        for place in [
            Place::Records { page: 0 },
            Place::Records { page: 70_000 },
            Place::Steps { page: u32::MAX },
            Place::Renewals { page: 7 },
        ] {
            assert_eq!(Place::read(&place.write()), Ok(place));
        }
        let foreign = Cursor(Bytes::from_static(b"x"));
        assert!(matches!(Place::read(&foreign), Err(Error::Invalid(_))));
    }
}
