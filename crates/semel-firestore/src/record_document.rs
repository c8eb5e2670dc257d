//! Records and steps as documents, and back. `vectors/firestore.json` has them by example.

use crate::parts::{INLINE_BYTES_MAX, Parts};
use crate::proto::Document;
use crate::value::{
    Fields, Reader, boolean, bytes, bytes_or_null, fields, int, string, time_or_null, timestamp,
};
use bytes::Bytes;
use semel::clock::Time;
use semel::protocol::{Fence, Owner, Record, State, StepRecord, decode_history, encode_history};
use semel::{Error, Fingerprint};
use std::time::Duration;

/// How long an expired record stays, so that fences cannot fall.
pub(crate) const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// What lists and sweeps read of a record: everything but what is large.
pub(crate) const HEAD: [&str; 12] = [
    "fp",
    "owner",
    "state",
    "attempts",
    "doubts",
    "in_doubt",
    "acts_until",
    "doubted_at",
    "born",
    "fence",
    "lease_until",
    "expires_at",
];

/// What a document says, and where its bytes are if they are not in it.
#[derive(Clone, Debug)]
pub(crate) struct Stored<T> {
    pub(crate) value: T,
    pub(crate) parts: Option<Parts>,
}

pub(crate) fn record_fields(record: &Record, parts: Option<&Parts>) -> Fields {
    let label = Some(record.label.clone()).filter(|label| !label.is_empty());
    let mut fields = fields([
        ("fp", bytes(record.fingerprint.as_bytes().to_vec())),
        ("owner", bytes(record.owner.0.to_vec())),
        ("state", int(record.state.number())),
        ("attempts", int(record.attempts)),
        ("doubts", int(record.doubts)),
        ("in_doubt", boolean(record.in_doubt)),
        ("acts_until", time_or_null(record.acts_until)),
        ("doubted_at", time_or_null(record.doubted_at)),
        ("born", int(record.born.0)),
        ("fence", int(record.fence.0)),
        ("lease_until", int(record.lease_until.0)),
        ("expires_at", int(record.expires_at.0)),
        ("label", bytes_or_null(label)),
    ]);
    if !record.history.is_empty() {
        let history = encode_history(&record.history);
        fields.insert("history".into(), bytes(history));
    }
    // Whoever deletes by this date must never delete what a person has to look at.
    if record.state != State::Parked {
        let delete_at = timestamp(record.expires_at.plus(GRACE));
        fields.insert("delete_at".into(), delete_at);
    }
    add_bytes(&mut fields, "result", record.result.as_ref(), parts);
    fields
}

pub(crate) fn read_record(document: &Document) -> Result<Stored<Record>, Error> {
    let reader = Reader { document };
    let number = u8::try_from(reader.int("state")?).ok();
    let state = number.and_then(State::from_number);
    let result = reader.bytes_or_none("result")?;
    let history = decode_history(reader.bytes_or_none("history")?.unwrap_or_default());
    let value = Record {
        fingerprint: Fingerprint::from_bytes(reader.array("fp")?),
        state: state
            .ok_or_else(|| reader.wrong("state", "is not a state that this build knows"))?,
        attempts: reader.int32("attempts")?,
        doubts: reader.int32("doubts")?,
        in_doubt: reader.boolean("in_doubt")?,
        acts_until: reader.int_or_none("acts_until")?.map(Time),
        doubted_at: reader.int_or_none("doubted_at")?.map(Time),
        born: Fence(reader.int("born")?),
        fence: Fence(reader.int("fence")?),
        owner: Owner(reader.array("owner")?),
        lease_until: reader.time("lease_until")?,
        expires_at: reader.time("expires_at")?,
        result,
        label: reader.bytes_or_none("label")?.unwrap_or_default(),
        history: history.ok_or_else(|| reader.wrong("history", "makes no sense"))?,
    };
    with_parts(reader, value.result.is_some(), value)
}

pub(crate) fn step_fields(name: &str, step: &StepRecord, parts: Option<&Parts>) -> Fields {
    let mut fields = fields([("fence", int(step.fence.0)), ("name", string(name))]);
    add_bytes(&mut fields, "result", step.result.as_ref(), parts);
    fields
}

pub(crate) fn read_step(document: &Document) -> Result<Stored<StepRecord>, Error> {
    let reader = Reader { document };
    let value = StepRecord {
        fence: Fence(reader.int("fence")?),
        result: reader.bytes_or_none("result")?,
    };
    with_parts(reader, value.result.is_some(), value)
}

/// Bytes in the document, or the name of their parts.
pub(crate) fn add_bytes(
    fields: &mut Fields,
    name: &str,
    whole: Option<&Bytes>,
    parts: Option<&Parts>,
) {
    debug_assert!(parts.is_some() || whole.is_none_or(|it| it.len() <= INLINE_BYTES_MAX));
    if let Some(parts) = parts {
        parts.name_in(fields);
    }
    let inline = whole.cloned().filter(|_| parts.is_none());
    fields.insert(name.into(), bytes_or_null(inline));
}

/// Where the bytes are that the document does not have itself.
pub(crate) fn with_parts<T>(
    reader: Reader<'_>,
    inline: bool,
    value: T,
) -> Result<Stored<T>, Error> {
    let parts = if inline { None } else { Parts::read(reader)? };
    Ok(Stored { value, parts })
}

#[cfg(test)]
mod tests;
