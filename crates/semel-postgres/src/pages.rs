//! Lists and sweeps: a bounded part of the table at a time, and a cursor to go on.

use crate::connections::{Connections, Param};
use crate::statement::{
    LIST, SWEEP, SWEEP_HISTORY, SWEEP_INDEX, SWEEP_LABELS, SWEEP_RENEWALS, SWEEP_STEPS, Statement,
};
use crate::wire::{self, Page as PageStart, Raw, Span};
use bytes::{BufMut, Bytes, BytesMut};
use semel::protocol::{Record, State};
use semel::store::{Cursor, Page, Swept};
use semel::{Error, Key};
use std::time::Duration;
use tokio_postgres::Row;

/// How many rows a page of a list reads at the most, however few of them match.
const LIST_ROWS_MAX: i64 = 10_000;

/// And at least: a list of every state skips the expired ones only.
const LIST_ROWS_MIN: i64 = 1_000;

/// How many pages of a table a sweep looks at.
const SWEEP_PAGES: u32 = 1000;

/// Where a sweep is: at a page of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    table: Table,
    page: u32,
}

/// The tables that are swept, in this order: what belongs to records goes after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Records,
    Steps,
    Renewals,
    Labels,
    History,
    Index,
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
    let reads = match state {
        0 => limit.clamp(LIST_ROWS_MIN, LIST_ROWS_MAX),
        _ => LIST_ROWS_MAX,
    };
    let params: [Param<'_>; 4] = [&Raw(after), &reads, &state, &limit];
    let rows = connections.query(&LIST, &params).await?;
    let mut items = Vec::with_capacity(rows.len());
    for row in &rows {
        if wire::get::<Option<&[u8]>>(row, 14)?.is_some() {
            items.push((wire::key(row, 14)?, wire::record(row, 0)?.0));
        }
    }
    let full = i64::try_from(items.len()) == Ok(limit);
    let next = match items.last() {
        Some((key, _)) if full => Some(Cursor(Bytes::copy_from_slice(key.as_bytes()))),
        Some(_) | None => rows.first().map_or(Ok(None), |row| read_to(row, reads))?,
    };
    Ok(Page { items, next })
}

/// Where the next page begins when this one read as much as it may.
fn read_to(row: &Row, reads: i64) -> Result<Option<Cursor>, Error> {
    let (read, last): (i64, Option<&[u8]>) = (wire::get(row, 15)?, wire::get(row, 16)?);
    Ok(last
        .filter(|_| read == reads)
        .map(|last| Cursor(Bytes::copy_from_slice(last))))
}

pub(crate) async fn sweep(
    connections: &Connections,
    grace: Duration,
    after: Option<&Cursor>,
) -> Result<Swept, Error> {
    let Place { table, page } = after.map_or(Ok(Place::START), Place::read)?;
    let to = page.saturating_add(SWEEP_PAGES);
    let params: [Param<'_>; 3] = [&PageStart(page), &PageStart(to), &Span(grace)];
    let statement = table.statement();
    let rows = connections
        .query(statement, statement.taken(&params))
        .await?;
    let (rows_removed, pages) = swept(&rows)?;
    let next = if to < pages {
        Some(Place { table, page: to })
    } else {
        table.next().map(|table| Place { table, page: 0 })
    };
    Ok(Swept {
        removed: if table == Table::Records {
            rows_removed
        } else {
            0
        },
        next: next.map(Place::write),
    })
}

/// How many rows went, and how many pages the table has.
fn swept(rows: &[Row]) -> Result<(u64, u32), Error> {
    let row = rows
        .first()
        .ok_or_else(|| Error::bug("a sweep answered nothing"))?;
    let (removed, pages): (i64, i64) = (wire::get(row, 0)?, wire::get(row, 1)?);
    Ok((
        u64::try_from(removed).unwrap_or(0),
        u32::try_from(pages).unwrap_or(u32::MAX),
    ))
}

// === impl Place ===

impl Place {
    const START: Self = Self {
        table: Table::Records,
        page: 0,
    };

    fn write(self) -> Cursor {
        let mut bytes = BytesMut::with_capacity(5);
        bytes.put_u8(self.table.letter());
        bytes.put_u32(self.page);
        Cursor(bytes.freeze())
    }

    fn read(cursor: &Cursor) -> Result<Self, Error> {
        let read = || {
            let (letter, page) = cursor.0.split_first()?;
            let mut tables = Table::ALL.into_iter();
            Some(Self {
                table: tables.find(|table| table.letter() == *letter)?,
                page: u32::from_be_bytes(page.try_into().ok()?),
            })
        };
        read().ok_or_else(|| {
            Error::invalid(
                "this is not a cursor of a sweep of a PostgreSQL store; begin from the start",
            )
        })
    }
}

// === impl Table ===

impl Table {
    const ALL: [Self; 6] = [
        Self::Records,
        Self::Steps,
        Self::Renewals,
        Self::Labels,
        Self::History,
        Self::Index,
    ];

    fn statement(self) -> &'static Statement {
        match self {
            Self::Records => &SWEEP,
            Self::Steps => &SWEEP_STEPS,
            Self::Renewals => &SWEEP_RENEWALS,
            Self::Labels => &SWEEP_LABELS,
            Self::History => &SWEEP_HISTORY,
            Self::Index => &SWEEP_INDEX,
        }
    }

    const fn next(self) -> Option<Self> {
        match self {
            Self::Records => Some(Self::Steps),
            Self::Steps => Some(Self::Renewals),
            Self::Renewals => Some(Self::Labels),
            Self::Labels => Some(Self::History),
            Self::History => Some(Self::Index),
            Self::Index => None,
        }
    }

    /// Its name in a cursor.
    const fn letter(self) -> u8 {
        match self {
            Self::Records => b'r',
            Self::Steps => b's',
            Self::Renewals => b'n',
            Self::Labels => b'l',
            Self::History => b'h',
            Self::Index => b'i',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_written() {
        for (table, page) in Table::ALL.into_iter().zip([0, 70_000, u32::MAX, 7, 8, 9]) {
            let place = Place { table, page };
            assert_eq!(Place::read(&place.write()), Ok(place));
        }
        let foreign = Cursor(Bytes::from_static(b"x"));
        assert!(matches!(Place::read(&foreign), Err(Error::Invalid(_))));
    }
}
