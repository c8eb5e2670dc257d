//! Letters and their tombstones as documents, and back. Only open letters have `created_at`, so a list in its order has
//! no tombstones.

use crate::names::id;
use crate::parts::Parts;
use crate::proto::Document;
use crate::record_document::{Stored, add_bytes, with_parts};
use crate::value::{Fields, Reader, boolean, bytes_or_null, fields, int, string, timestamp};
use bytes::Bytes;
use semel::clock::Time;
use semel::letter::{Letter, LetterHead, LetterId, Reason, Stored as StoredLetter, Tombstone};
use semel::protocol::Fence;
use semel::{Error, Key};
use std::time::Duration;

/// What a list reads of a letter: everything but the delivery.
pub(crate) const HEAD: [&str; 8] = [
    "key",
    "route",
    "reason",
    "fence",
    "redriven",
    "alarmed",
    "bytes",
    "created_at",
];

pub(crate) fn open_fields(letter: &Letter, created_at: Time, parts: Option<&Parts>) -> Fields {
    let key = letter.key.map(|key| Bytes::copy_from_slice(key.as_bytes()));
    let retention = u64::try_from(letter.retention.as_micros()).unwrap_or(u64::MAX);
    let mut fields = fields([
        ("key", bytes_or_null(key)),
        ("route", string(&letter.route)),
        ("reason", int(letter.reason.number())),
        ("fence", int(letter.fence.0)),
        ("retention", int(retention)),
        ("redriven", boolean(letter.redriven)),
        ("alarmed", boolean(letter.alarmed)),
        ("bytes", int(letter.delivery.len() as u64)),
        ("created_at", int(created_at.0)),
    ]);
    add_bytes(&mut fields, "delivery", Some(&letter.delivery), parts);
    fields
}

pub(crate) fn closed_fields(tombstone: Tombstone) -> Fields {
    fields([
        ("fence", int(tombstone.fence.0)),
        ("expires_at", int(tombstone.expires_at.0)),
        ("delete_at", timestamp(tombstone.expires_at)),
    ])
}

/// The letter or its tombstone, and when an open one was put here.
pub(crate) fn read_letter(
    document: &Document,
) -> Result<Stored<(StoredLetter, Option<Time>)>, Error> {
    let reader = Reader { document };
    let fence = Fence(reader.int("fence")?);
    let Some(created_at) = reader.int_or_none("created_at")?.map(Time) else {
        let expires_at = reader.time("expires_at")?;
        let closed = StoredLetter::Closed(Tombstone { fence, expires_at });
        return with_parts(reader, true, (closed, None));
    };
    let head = read_head(document)?;
    let delivery = reader.bytes_or_none("delivery")?;
    let inline = delivery.is_some();
    let open = StoredLetter::Open(Letter {
        id: head.id,
        key: head.key,
        route: head.route,
        reason: head.reason,
        fence,
        retention: Duration::from_micros(reader.int("retention")?),
        redriven: head.redriven,
        alarmed: head.alarmed,
        delivery: delivery.unwrap_or_default(),
    });
    with_parts(reader, inline, (open, Some(created_at)))
}

pub(crate) fn read_head(document: &Document) -> Result<LetterHead, Error> {
    let reader = Reader { document };
    let letter = hex::decode(id(&document.name)).ok();
    let letter = letter.and_then(|it| <[u8; 32]>::try_from(it).ok());
    let has_key = reader.bytes_or_none("key")?.is_some();
    let reason = u8::try_from(reader.int("reason")?).ok();
    let reason = reason.and_then(Reason::from_number);
    Ok(LetterHead {
        id: LetterId(letter.ok_or_else(|| reader.wrong("__name__", "is no letter's id"))?),
        key: match has_key {
            true => Some(Key::from_bytes(reader.array("key")?)),
            false => None,
        },
        route: reader.string_or_none("route")?.unwrap_or_default().into(),
        reason: reason
            .ok_or_else(|| reader.wrong("reason", "is not a reason that this build knows"))?,
        fence: Fence(reader.int("fence")?),
        redriven: reader.boolean("redriven")?,
        alarmed: reader.boolean("alarmed")?,
        bytes: reader.int("bytes")?,
        created_at: reader.time("created_at")?,
    })
}
