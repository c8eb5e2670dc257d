//! What the proxy does to messages: it adds a history to every commit, and in a broken build spoils what it carries.

use crate::harness::{created, micros, value};
use prost::Message;
use prost_types::Timestamp;
use semel_firestore::proto::precondition::ConditionType;
use semel_firestore::proto::value::ValueType;
use semel_firestore::proto::write::Operation;
use semel_firestore::proto::{BatchGetDocumentsResponse, CommitRequest, Precondition};

/// The collection of the history.
pub(super) const HISTORY: &str = "commit_history";

/// The field of a history's document that names the record.
pub(super) const OF: &str = "history_of";

/// The field that has the version on which the commit was decided; null is a record that was not there.
pub(super) const DECIDED_ON: &str = "history_decided_on";

/// How a build is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoiled {
    /// Commits have no condition.
    NoCondition,
    /// Commits that create have no condition.
    NoExists,
    /// The clock is the client's, which is off by so many ms.
    ClientsClock(i64),
    /// A commit that was refused or lost is made again without deciding again.
    RepeatsBlindly,
}

/// Adds the history of a commit on a record to it.
pub(super) fn with_history(mut commit: CommitRequest, id: u64) -> CommitRequest {
    let record = commit.writes.iter().find_map(|write| {
        let Some(Operation::Update(document)) = &write.operation else {
            return None;
        };
        let is_record = document.name.contains("_records/") && write.update_mask.is_none();
        is_record.then(|| (document.clone(), write.current_document))
    });
    let Some((record, condition)) = record else {
        return commit;
    };
    let (root, _) = record.name.split_once("/documents/").unwrap_or_default();
    let decided_on = match condition.and_then(|it| it.condition_type) {
        Some(ConditionType::UpdateTime(version)) => ValueType::TimestampValue(version),
        Some(ConditionType::Exists(_)) | None => ValueType::NullValue(0),
    };
    let mut fields = record.fields;
    fields.insert(
        OF.into(),
        value(ValueType::StringValue(record.name.clone())),
    );
    fields.insert(DECIDED_ON.into(), value(decided_on));
    let name = format!("{root}/documents/{HISTORY}/{id:016x}");
    commit.writes.push(created(name, fields));
    commit
}

/// Takes conditions from the writes of records, as this build does.
pub(super) fn spoil(mut commit: CommitRequest, how: Option<Spoiled>) -> CommitRequest {
    for write in &mut commit.writes {
        let is_history =
            matches!(&write.operation, Some(Operation::Update(it)) if it.name.contains(HISTORY));
        let creates = matches!(
            write.current_document,
            Some(Precondition {
                condition_type: Some(ConditionType::Exists(false))
            })
        );
        let dropped = match how {
            Some(Spoiled::NoCondition) => true,
            Some(Spoiled::NoExists) => creates,
            Some(Spoiled::ClientsClock(_) | Spoiled::RepeatsBlindly) | None => false,
        };
        if dropped && !is_history {
            write.current_document = None;
        }
    }
    commit
}

/// Moves the time of every read in a stream of frames.
pub(super) fn with_clock(frames: &[u8], ms: i64) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = frames;
    while !rest.is_empty() {
        let (mut read, after) = unframe::<BatchGetDocumentsResponse>(rest)?;
        if let Some(time) = &mut read.read_time {
            *time = moved(*time, ms);
        }
        out.extend(frame(&read));
        rest = after;
    }
    Ok(out)
}

fn moved(time: Timestamp, ms: i64) -> Timestamp {
    let micros = micros(&time) + ms * 1_000;
    Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1_000).expect("below a second"),
    }
}

/// A message as gRPC frames it.
pub(super) fn frame(message: &impl Message) -> Vec<u8> {
    let bytes = message.encode_to_vec();
    let length = u32::try_from(bytes.len()).expect("messages are small");
    let mut framed = vec![0];
    framed.extend(length.to_be_bytes());
    framed.extend(bytes);
    framed
}

/// The first message of a stream of frames, and the rest.
pub(super) fn unframe<M: Message + Default>(frames: &[u8]) -> anyhow::Result<(M, &[u8])> {
    let head = frames.split_first_chunk::<5>();
    let (&[_, a, b, c, d], rest) = head.ok_or_else(|| anyhow::anyhow!("half a frame"))?;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    let split = rest.split_at_checked(length);
    let (message, rest) = split.ok_or_else(|| anyhow::anyhow!("half a message"))?;
    Ok((M::decode(message)?, rest))
}
