//! How topics, subscriptions, snapshots and messages lie in storage.

use super::backlog::{NewMessage, Sequence};
use crate::clock::Time;
use crate::proto::pubsub as wire;
use crate::storage::{Batch, Storage, StorageError, Table};
use prost::Message;

/// Follows a message's key in the key of what else is known of it.
const STATE_SUFFIX: u8 = b's';

/// The next number for a topic or backlog.
const NUMBERS: &[u8] = b"pubsub numbers";

/// A backlog's number and a message's sequence in it.
const MESSAGE_KEY_BYTES: usize = 16;

/// Rows read at once in the beginning: each may be a message of 10 MB.
const ROWS_AT_ONCE: usize = 64;

/// Rows read at once when they turn out to be small.
const SMALL_ROWS_AT_ONCE: usize = 4096;

const SMALL_ROW_BYTES: usize = 2048;

/// What a backlog goes by, read from the row of a whole message without the rest of it.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Head {
    #[prost(message, optional, tag = "4")]
    pub(super) publish_time: Option<prost_types::Timestamp>,
    #[prost(string, tag = "5")]
    pub(super) ordering_key: String,
}

pub(super) fn message_key(backlog: u64, sequence: Sequence) -> Vec<u8> {
    [backlog.to_be_bytes(), sequence.to_be_bytes()].concat()
}

fn state_key(backlog: u64, sequence: Sequence) -> Vec<u8> {
    let mut key = message_key(backlog, sequence);
    key.push(STATE_SUFFIX);
    key
}

/// Puts what is known of a message besides itself.
pub(super) fn put_state(
    batch: &mut Batch,
    backlog: u64,
    sequence: Sequence,
    state: &wire::StoredState,
) {
    let key = state_key(backlog, sequence);
    batch.put(Table::Messages, &key, state.encode_to_vec());
}

/// Takes a message out of a backlog.
pub(super) fn delete_message(batch: &mut Batch, backlog: u64, sequence: Sequence) {
    batch.delete(Table::Messages, &message_key(backlog, sequence));
    batch.delete(Table::Messages, &state_key(backlog, sequence));
}

/// A message of a backlog.
pub(super) fn message(
    storage: &Storage,
    backlog: u64,
    sequence: Sequence,
) -> Result<Option<wire::PubsubMessage>, StorageError> {
    let row = storage.get(Table::Messages, &message_key(backlog, sequence))?;
    row.map(decode).transpose()
}

/// Looks at every message of a backlog, in order.
pub(super) fn each_message(
    storage: &Storage,
    backlog: u64,
    mut look: impl FnMut(Sequence, wire::PubsubMessage),
) -> Result<(), StorageError> {
    let prefix = backlog.to_be_bytes();
    each_row(storage, Table::Messages, &prefix, |key, value| {
        if let Some(sequence) = sequence_of(key).filter(|_| key.len() == MESSAGE_KEY_BYTES) {
            look(sequence, decode(value)?);
        }
        Ok(())
    })
}

/// Looks at what a backlog goes by of every message, in order, and at nothing else of it.
pub(super) fn each_head(
    storage: &Storage,
    backlog: u64,
    mut look: impl FnMut(NewMessage),
) -> Result<(), StorageError> {
    let mut last: Option<NewMessage> = None;
    let prefix = backlog.to_be_bytes();
    each_row(storage, Table::Messages, &prefix, |key, value| {
        let Some(sequence) = sequence_of(key) else {
            return Ok(());
        };
        if key.len() == MESSAGE_KEY_BYTES {
            let head = decode::<Head>(value)?;
            let new_message = NewMessage {
                sequence,
                bytes: value.len(),
                published: head.publish_time.as_ref().map(Time::of).unwrap_or_default(),
                key: head.ordering_key,
                attempts: 0,
                acknowledged: false,
            };
            if let Some(before) = last.replace(new_message) {
                look(before);
            }
        } else if let Some(new_message) = last.take_if(|it| it.sequence == sequence) {
            let state = decode::<wire::StoredState>(value)?;
            look(NewMessage {
                attempts: state.attempts,
                acknowledged: state.acknowledged,
                ..new_message
            });
        }
        Ok(())
    })?;
    last.into_iter().for_each(look);
    Ok(())
}

/// Looks at every row whose key begins with `prefix`.
pub(super) fn each_row(
    storage: &Storage,
    table: Table,
    prefix: &[u8],
    mut look: impl FnMut(&[u8], &[u8]) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let mut after: Option<bytes::Bytes> = None;
    let mut at_once = ROWS_AT_ONCE;
    loop {
        let rows = storage.scan(table, prefix, after.as_deref(), at_once)?;
        let mut bytes = 0;
        for row in &rows {
            bytes += row.value.len();
            look(&row.key, &row.value)?;
        }
        at_once = match bytes <= rows.len() * SMALL_ROW_BYTES {
            true => (at_once * 2).min(SMALL_ROWS_AT_ONCE),
            false => ROWS_AT_ONCE,
        };
        match rows.last() {
            Some(row) => after = Some(row.key.clone()),
            None => return Ok(()),
        }
    }
}

/// Takes everything away whose key begins with `prefix`.
pub(super) fn delete_all(
    batch: &mut Batch,
    storage: &Storage,
    table: Table,
    prefix: &[u8],
) -> Result<(), StorageError> {
    each_row(storage, table, prefix, |key, _| {
        batch.delete(table, key);
        Ok(())
    })
}

/// A row of the broker's own.
pub(super) fn decode<M: Message + Default>(row: impl bytes::Buf) -> Result<M, StorageError> {
    M::decode(row).map_err(|error| StorageError(format!("a row is damaged: {error}")))
}

pub(super) fn next_number(storage: &Storage) -> Result<u64, StorageError> {
    let row = storage.get(Table::Meta, NUMBERS)?;
    let number = row.and_then(|row| <[u8; 8]>::try_from(&*row).ok());
    Ok(number.map_or(1, u64::from_be_bytes))
}

pub(super) fn put_next_number(batch: &mut Batch, number: u64) {
    batch.put(Table::Meta, NUMBERS, number.to_be_bytes().to_vec());
}

/// A new message as a backlog sees it.
pub(super) fn new_message(sequence: Sequence, message: &wire::PubsubMessage) -> NewMessage {
    let published = message.publish_time.as_ref().map(Time::of);
    NewMessage {
        sequence,
        bytes: message.encoded_len(),
        published: published.unwrap_or_default(),
        key: message.ordering_key.clone(),
        attempts: 0,
        acknowledged: false,
    }
}

fn sequence_of(key: &[u8]) -> Option<Sequence> {
    let sequence = key.get(8..16)?;
    Some(Sequence::from_be_bytes(sequence.try_into().ok()?))
}
