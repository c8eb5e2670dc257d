//! Lists of records by `SCAN`: a window of the server's keys at a time, each looked at once.
//!
//! `SCAN` says what is there from beginning to end of the scan; a record may be seen in two pages when
//! the server resizes its table in between.

use crate::answer;
use crate::command::Command;
use crate::connections::{Connections, Size};
use crate::names::Names;
use bytes::Bytes;
use redis::{Cmd, Value};
use semel::protocol::{Operation, Record, State};
use semel::store::{Cursor, Page};
use semel::{Error, Key};
use std::collections::HashSet;

/// How many places of the server's table a `SCAN` visits: at least, so that a short page makes headway.
const SCAN_PLACES_MIN: u32 = 16;

/// And at most, so that a long page does not hold the server up.
const SCAN_PLACES_MAX: u32 = 1_000;

/// How many times a page scans before it is answered as it is, be it empty.
const SCANS_PER_PAGE_MAX: usize = 64;

/// Where a list goes on: keys that were found and not listed yet, and the rest of the scan.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// The cursor of the next `SCAN`; `None` when the scan is done.
    scan: Option<u64>,
    found: Vec<Key>,
}

/// A page of the records of one prefix.
pub(crate) async fn list(
    connections: &Connections,
    names: &Names,
    state: Option<State>,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<(Key, Record)>, Error> {
    let mut place = after.map_or(Ok(Place::start()), Place::decode)?;
    let room = limit.max(1) as usize;
    let mut items = Vec::new();
    let mut listed = HashSet::new();
    for _ in 0..SCANS_PER_PAGE_MAX {
        if place.found.is_empty() {
            let Some(from) = place.scan else { break };
            place = scan(connections, names, from, limit).await?;
        }
        for (key, record) in
            look_at_all(connections, names, std::mem::take(&mut place.found)).await?
        {
            if state.is_some_and(|state| record.state != state) || !listed.insert(key) {
                continue;
            }
            if items.len() < room {
                items.push((key, record));
            } else {
                place.found.push(key);
            }
        }
        if items.len() == room {
            break;
        }
    }
    Ok(Page {
        items,
        next: place.encode(),
    })
}

async fn scan(
    connections: &Connections,
    names: &Names,
    from: u64,
    limit: u32,
) -> Result<Place, Error> {
    let mut command = redis::cmd("SCAN");
    let places = limit.clamp(SCAN_PLACES_MIN, SCAN_PLACES_MAX);
    command.arg(from).arg("MATCH").arg(names.record_pattern());
    command.arg("COUNT").arg(places);
    let answer: Result<(u64, Vec<Vec<u8>>), _> =
        redis::from_redis_value(connections.ask(&command, Size::Small).await?);
    let (next, found) =
        answer.map_err(|error| Error::bug(format!("Redis answered to SCAN: {error}")))?;
    Ok(Place {
        scan: Some(next).filter(|next| *next != 0),
        found: found.iter().filter_map(|name| names.key_of(name)).collect(),
    })
}

/// The records of these keys that are neither absent nor expired, without their results.
async fn look_at_all(
    connections: &Connections,
    names: &Names,
    keys: Vec<Key>,
) -> Result<Vec<(Key, Record)>, Error> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let look = |key: &Key| Command::of(names, &Operation::Look(*key)).without_result();
    let looks: Vec<Cmd> = keys.iter().map(|key| look(key).sent).collect();
    let answers = connections.ask_all(&looks, &[]).await?.calls;
    let look = |(key, answer): (Key, Value)| {
        let record = connections.plain(answer).and_then(answer::looked);
        record.map(|record| Some((key, record?))).transpose()
    };
    keys.into_iter().zip(answers).filter_map(look).collect()
}

// === impl Place ===

impl Place {
    fn start() -> Self {
        Self {
            scan: Some(0),
            found: Vec::new(),
        }
    }

    /// 8 bytes of the scan, 0 when it is done; then the keys.
    fn encode(&self) -> Option<Cursor> {
        if self.scan.is_none() && self.found.is_empty() {
            return None;
        }
        let mut bytes = self.scan.unwrap_or(0).to_be_bytes().to_vec();
        for key in &self.found {
            bytes.extend_from_slice(key.as_bytes());
        }
        Some(Cursor(Bytes::from(bytes)))
    }

    fn decode(cursor: &Cursor) -> Result<Self, Error> {
        let read = || {
            let (scan, keys) = cursor.0.split_first_chunk::<8>()?;
            let (keys, rest) = keys.as_chunks::<32>();
            let scan = u64::from_be_bytes(*scan);
            rest.is_empty().then(|| Self {
                scan: Some(scan).filter(|scan| *scan != 0),
                found: keys.iter().copied().map(Key::from_bytes).collect(),
            })
        };
        read().ok_or_else(|| {
            Error::invalid(
                "the cursor is none of this store's lists; begin the list again without one",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_back() {
        for place in [
            Place {
                scan: Some(7),
                found: vec![],
            },
            Place {
                scan: None,
                found: vec![Key::from_bytes([1; 32])],
            },
            Place {
                scan: Some(u64::MAX),
                found: vec![Key::from_bytes([2; 32]); 3],
            },
        ] {
            assert_eq!(Place::decode(&place.encode().unwrap()).unwrap(), place);
        }
        let done = Place {
            scan: None,
            found: vec![],
        };
        assert_eq!(done.encode(), None);
    }

    #[test]
    fn cursor_of_another_store_is_refused() {
        for bytes in [&b"short"[..], &[0; 9], &[0; 41]] {
            let cursor = Cursor(Bytes::copy_from_slice(bytes));
            assert!(matches!(Place::decode(&cursor), Err(Error::Invalid(_))));
        }
    }
}
