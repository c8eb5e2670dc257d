//! How things lie on the shelf.

use super::backlog::{Arrival, Place};
use crate::clock::Time;
use crate::proto::pubsub as wire;
use crate::shelf::{Batch, Shelf, ShelfError, Table};
use prost::Message;

/// Follows a message's key in the key of what else is known of it.
const STANDING: u8 = b's';

/// The next number for a topic or backlog.
const NUMBERS: &[u8] = b"pubsub numbers";

/// Rows read at once: each may be a message of 10 MB.
const ROWS_AT_ONCE: usize = 64;

pub(super) fn message_key(backlog: u64, place: Place) -> Vec<u8> {
    [backlog.to_be_bytes(), place.to_be_bytes()].concat()
}

fn standing_key(backlog: u64, place: Place) -> Vec<u8> {
    let mut key = message_key(backlog, place);
    key.push(STANDING);
    key
}

/// Puts what is known of a message besides itself.
pub(super) fn put_standing(
    batch: &mut Batch,
    backlog: u64,
    place: Place,
    standing: &wire::KeptStanding,
) {
    let key = standing_key(backlog, place);
    batch.put(Table::Messages, &key, standing.encode_to_vec());
}

/// Takes a message out of a backlog.
pub(super) fn delete_message(batch: &mut Batch, backlog: u64, place: Place) {
    batch.delete(Table::Messages, &message_key(backlog, place));
    batch.delete(Table::Messages, &standing_key(backlog, place));
}

/// A message of a backlog.
pub(super) fn message(
    shelf: &Shelf,
    backlog: u64,
    place: Place,
) -> Result<Option<wire::PubsubMessage>, ShelfError> {
    let row = shelf.get(Table::Messages, &message_key(backlog, place))?;
    row.map(|row| decode(&row)).transpose()
}

/// Looks at every message of a backlog, in order.
pub(super) fn each_message(
    shelf: &Shelf,
    backlog: u64,
    mut look: impl FnMut(Place, wire::PubsubMessage, wire::KeptStanding),
) -> Result<(), ShelfError> {
    let mut last: Option<(Place, wire::PubsubMessage)> = None;
    each_row(
        shelf,
        Table::Messages,
        &backlog.to_be_bytes(),
        |key, value| {
            let Some(place) = place_of(key) else {
                return Ok(());
            };
            if key.len() == 16 {
                if let Some((place, message)) = last.replace((place, decode(value)?)) {
                    look(place, message, wire::KeptStanding::default());
                }
            } else if let Some((place, message)) = last.take_if(|(it, _)| *it == place) {
                look(place, message, decode(value)?);
            }
            Ok(())
        },
    )?;
    if let Some((place, message)) = last {
        look(place, message, wire::KeptStanding::default());
    }
    Ok(())
}

/// Looks at every row whose key begins with `prefix`.
pub(super) fn each_row(
    shelf: &Shelf,
    table: Table,
    prefix: &[u8],
    mut look: impl FnMut(&[u8], &[u8]) -> Result<(), ShelfError>,
) -> Result<(), ShelfError> {
    let mut after: Option<bytes::Bytes> = None;
    loop {
        let rows = shelf.scan(table, prefix, after.as_deref(), ROWS_AT_ONCE)?;
        for row in &rows {
            look(&row.key, &row.value)?;
        }
        match rows.last() {
            Some(row) => after = Some(row.key.clone()),
            None => return Ok(()),
        }
    }
}

/// Takes everything away whose key begins with `prefix`.
pub(super) fn delete_all(
    batch: &mut Batch,
    shelf: &Shelf,
    table: Table,
    prefix: &[u8],
) -> Result<(), ShelfError> {
    each_row(shelf, table, prefix, |key, _| {
        batch.delete(table, key);
        Ok(())
    })
}

/// A row of the broker's own.
pub(super) fn decode<M: Message + Default>(row: &[u8]) -> Result<M, ShelfError> {
    M::decode(row).map_err(|error| ShelfError(format!("a row is damaged: {error}")))
}

pub(super) fn next_number(shelf: &Shelf) -> Result<u64, ShelfError> {
    let row = shelf.get(Table::Meta, NUMBERS)?;
    let number = row.and_then(|row| <[u8; 8]>::try_from(&*row).ok());
    Ok(number.map_or(1, u64::from_be_bytes))
}

pub(super) fn put_next_number(batch: &mut Batch, number: u64) {
    batch.put(Table::Meta, NUMBERS, number.to_be_bytes().to_vec());
}

/// A message as a backlog sees it.
pub(super) fn arrival(
    place: Place,
    message: &wire::PubsubMessage,
    standing: &wire::KeptStanding,
) -> Arrival {
    let published = message.publish_time.as_ref().map(Time::of);
    Arrival {
        place,
        bytes: message.encoded_len(),
        published: published.unwrap_or_default(),
        key: message.ordering_key.clone(),
        attempts: standing.attempts,
        acknowledged: standing.acknowledged,
    }
}

fn place_of(key: &[u8]) -> Option<Place> {
    let place = key.get(8..16)?;
    Some(Place::from_be_bytes(place.try_into().ok()?))
}
