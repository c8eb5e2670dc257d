//! Values as PostgreSQL sends and takes them. Nothing here shows what it holds: drivers log
//! parameters, and these are keys, owners and bodies.

use bytes::{BufMut, Bytes, BytesMut};
use semel::clock::Time;
use semel::protocol::{DoubtLimit, Fence, InDoubt, Owner, Record, State, Superseded};
use semel::{Error, Fingerprint, Key};
use std::error::Error as StdError;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Microseconds from 1970, where [`Time`] begins, to 2000, where PostgreSQL does.
const EPOCH_MICROS: i64 = 946_684_800_000_000;

/// The longest span that is sent: beyond it a time would leave the range of `timestamptz`.
const SPAN_MICROS_MAX: i64 = 100 * 366 * 24 * 3600 * 1_000_000;

/// `bytea`.
#[derive(Clone, Copy)]
pub(crate) struct Raw<'a>(pub(crate) &'a [u8]);

/// `uuid`.
#[derive(Clone, Copy)]
pub(crate) struct Id(pub(crate) Owner);

/// `interval`.
#[derive(Clone, Copy)]
pub(crate) struct Span(pub(crate) Duration);

/// `timestamptz`.
#[derive(Clone, Copy)]
pub(crate) struct Moment(pub(crate) Time);

/// `tid`: the beginning of a page.
#[derive(Clone, Copy)]
pub(crate) struct Page(pub(crate) u32);

type Encoded = Result<IsNull, Box<dyn StdError + Sync + Send>>;

macro_rules! hidden {
    ($($name:ty),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("..")
            }
        }
    )*};
}
hidden!(Raw<'_>, Id, Span, Moment, Page);

impl ToSql for Raw<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Encoded {
        out.put_slice(self.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::BYTEA
    }

    to_sql_checked!();
}

impl ToSql for Id {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Encoded {
        out.put_slice(&self.0.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(Owner(raw.try_into()?)))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }
}

impl ToSql for Span {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Encoded {
        let micros = i64::try_from(self.0.as_micros()).unwrap_or(i64::MAX);
        out.put_i64(micros.min(SPAN_MICROS_MAX));
        out.put_i32(0);
        out.put_i32(0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::INTERVAL
    }

    to_sql_checked!();
}

impl ToSql for Moment {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Encoded {
        out.put_i64(i64::try_from(self.0.0)? - EPOCH_MICROS);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Moment {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        let since_2000 = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(Time(u64::try_from(
            since_2000.saturating_add(EPOCH_MICROS),
        )?)))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ
    }
}

impl ToSql for Page {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Encoded {
        out.put_u32(self.0);
        out.put_u16(0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TID
    }

    to_sql_checked!();
}

/// A fence as `bigint`. One that does not fit was never given out, and −1 is nobody's.
pub(crate) fn fence_out(fence: Fence) -> i64 {
    i64::try_from(fence.0).unwrap_or(-1)
}

/// A limit of runs as `int`; one beyond `int` is none that could be reached.
pub(crate) fn limit_out(max: Option<NonZeroU32>) -> Option<i32> {
    max.and_then(|max| i32::try_from(max.get()).ok())
}

/// A limit of doubts as `int`, and the age of the first one in µs as `bigint`.
pub(crate) fn doubt_limit_out(max: Option<DoubtLimit>) -> (Option<i32>, Option<i64>) {
    (
        limit_out(max.map(|max| max.runs)),
        age_out(max.map(|max| max.age)),
    )
}

/// An age in µs as `bigint`; one beyond it is none that could be reached.
pub(crate) fn age_out(age: Option<Duration>) -> Option<i64> {
    age.and_then(|age| i64::try_from(age.as_micros()).ok())
}

/// What becomes of a run in doubt, as the statements number it.
pub(crate) const fn policy(in_doubt: InDoubt) -> i32 {
    match in_doubt {
        InDoubt::Retry => 0,
        InDoubt::Park => 1,
        InDoubt::Probe => 2,
    }
}

/// A column of a row.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Error> {
    row.try_get(column)
        .map_err(|error| corrupt(&format!("column {column} cannot be read: {error}")))
}

/// A record without its label, and the time it was read, from 14 columns in the order of `look.sql`, beginning at
/// `first`.
pub(crate) fn record(row: &Row, first: usize) -> Result<(Record, Time), Error> {
    let result: Option<&[u8]> = get(row, first + 8)?;
    let record = Record {
        fence: fence(row, first)?,
        born: fence(row, first + 1)?,
        attempts: count(row, first + 2)?,
        state: state(row, first + 3)?,
        owner: get::<Id>(row, first + 4)?.0,
        lease_until: get::<Moment>(row, first + 5)?.0,
        expires_at: get::<Moment>(row, first + 6)?.0,
        fingerprint: Fingerprint::from_bytes(bytes32(get(row, first + 7)?)?),
        result: result.map(Bytes::copy_from_slice),
        label: Bytes::new(),
        history: Vec::new(),
        doubts: count(row, first + 10)?,
        in_doubt: get(row, first + 11)?,
        acts_until: get::<Option<Moment>>(row, first + 12)?.map(|moment| moment.0),
        doubted_at: get::<Option<Moment>>(row, first + 13)?.map(|moment| moment.0),
    };
    Ok((record, get::<Moment>(row, first + 9)?.0))
}

/// The history of a record, from seven columns in the order of `show_history.sql`, beginning at `first`.
pub(crate) fn history(row: &Row, first: usize) -> Result<Vec<Superseded>, Error> {
    let Some(fences) = get::<Option<Vec<i64>>>(row, first)? else {
        return Ok(Vec::new());
    };
    let states: Vec<i16> = get(row, first + 1)?;
    let in_doubt: Vec<bool> = get(row, first + 2)?;
    let times: [Vec<Moment>; 2] = [get(row, first + 3)?, get(row, first + 4)?];
    let by: Vec<&[u8]> = get(row, first + 5)?;
    let results: Vec<Option<&[u8]>> = get(row, first + 6)?;
    let [until, at] = times;
    let all = fences.into_iter().zip(states).zip(in_doubt);
    let all = all.zip(until).zip(at).zip(by).zip(results);
    all.map(
        |((((((fence, state), in_doubt), until), at), by), result)| {
            Ok(Superseded {
                fence: to_fence(fence)?,
                state: to_state(state)?,
                in_doubt,
                until: until.0,
                at: at.0,
                by: Bytes::copy_from_slice(by),
                result: result.map(Bytes::copy_from_slice).unwrap_or_default(),
            })
        },
    )
    .collect()
}

pub(crate) fn state(row: &Row, column: usize) -> Result<State, Error> {
    to_state(get(row, column)?)
}

fn to_state(number: i16) -> Result<State, Error> {
    u8::try_from(number)
        .ok()
        .and_then(State::from_number)
        .ok_or_else(|| corrupt(&format!("there is no state {number}")))
}

pub(crate) fn fence(row: &Row, column: usize) -> Result<Fence, Error> {
    to_fence(get(row, column)?)
}

fn to_fence(number: i64) -> Result<Fence, Error> {
    u64::try_from(number)
        .map(Fence)
        .map_err(|_| corrupt(&format!("{number} is not a fence")))
}

pub(crate) fn count(row: &Row, column: usize) -> Result<u32, Error> {
    let number: i32 = get(row, column)?;
    u32::try_from(number).map_err(|_| corrupt(&format!("{number} is not a number of runs")))
}

pub(crate) fn key(row: &Row, column: usize) -> Result<Key, Error> {
    Ok(Key::from_bytes(bytes32(get(row, column)?)?))
}

pub(crate) fn bytes32(bytes: &[u8]) -> Result<[u8; 32], Error> {
    bytes
        .try_into()
        .map_err(|_| corrupt(&format!("{} bytes stand where 32 belong", bytes.len())))
}

pub(crate) fn corrupt(what: &str) -> Error {
    Error::corrupt(format!(
        "PostgreSQL store: {what}; nothing is answered from that row, look at the tables of schema \
         semel before you retry"
    ))
}
