//! How topics, subscriptions, snapshots and messages lie in storage.

use super::backlog::{NewMessage, Sequence};
use crate::clock::Time;
use crate::proto::pubsub as wire;
use crate::storage::{Batch, Row, Storage, StorageError, Table};
use prost::Message;
use prost_types::Timestamp;

/// Follows a message's key in the key of what else is known of it.
const STATE_SUFFIX: u8 = b's';

/// The next number for a topic or backlog.
const NUMBERS: &[u8] = b"pubsub numbers";

/// A backlog's number and a message's sequence in it.
const MESSAGE_KEY_BYTES: usize = 16;

/// What a backlog goes by, read from the row of a whole message without the rest of it.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Head {
    #[prost(message, optional, tag = "4")]
    pub(super) publish_time: Option<Timestamp>,
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

/// A message was acknowledged after so many attempts: it leaves its backlog, unless that retains it.
pub(super) fn end_message(
    batch: &mut Batch,
    backlog: u64,
    sequence: Sequence,
    attempts: u32,
    retain: bool,
) {
    let state = wire::StoredState {
        attempts,
        acknowledged: true,
    };
    match retain {
        true => put_state(batch, backlog, sequence, &state),
        false => delete_message(batch, backlog, sequence),
    }
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
    for row in storage.rows(Table::Messages, &backlog.to_be_bytes()) {
        let Row { key, value } = row?;
        if let Some(sequence) = sequence_of(&key).filter(|_| key.len() == MESSAGE_KEY_BYTES) {
            look(sequence, decode(value)?);
        }
    }
    Ok(())
}

/// Looks at what a backlog goes by of every message, in order, and at nothing else of it.
pub(super) fn each_head(
    storage: &Storage,
    backlog: u64,
    mut look: impl FnMut(NewMessage),
) -> Result<(), StorageError> {
    let mut last: Option<NewMessage> = None;
    for row in storage.rows(Table::Messages, &backlog.to_be_bytes()) {
        let Row { key, value } = row?;
        let Some(sequence) = sequence_of(&key) else {
            continue;
        };
        if key.len() == MESSAGE_KEY_BYTES {
            let bytes = value.len();
            let Head {
                publish_time,
                ordering_key,
            } = decode(value)?;
            let new_message = new(sequence, bytes, publish_time.as_ref(), ordering_key);
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
    }
    last.into_iter().for_each(look);
    Ok(())
}

/// Takes everything away whose key begins with `prefix`.
pub(super) fn delete_all(
    batch: &mut Batch,
    storage: &Storage,
    table: Table,
    prefix: &[u8],
) -> Result<(), StorageError> {
    for row in storage.rows(table, prefix) {
        batch.delete(table, &row?.key);
    }
    Ok(())
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
    let (bytes, key) = (message.encoded_len(), message.ordering_key.clone());
    new(sequence, bytes, message.publish_time.as_ref(), key)
}

fn new(sequence: Sequence, bytes: usize, published: Option<&Timestamp>, key: String) -> NewMessage {
    NewMessage {
        sequence,
        bytes,
        published: published.map(Time::of).unwrap_or_default(),
        key,
        attempts: 0,
        acknowledged: false,
    }
}

fn sequence_of(key: &[u8]) -> Option<Sequence> {
    let sequence = key.get(8..16)?;
    Some(Sequence::from_be_bytes(sequence.try_into().ok()?))
}
