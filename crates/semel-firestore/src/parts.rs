//! Bytes that no document can hold: kept in documents of their own, written before the commit that names them. A commit
//! that takes another's place removes the parts which that one named, so parts without a name are left by crashes only.

use crate::client::{Client, Failure};
use crate::names::{Collection, id};
use crate::proto::Write;
use crate::turn::Turns;
use crate::value::{Fields, Reader, bytes, fields, int, string};
use crate::writes::{delete, put};
use bytes::{Bytes, BytesMut};
use semel::Error;
use semel::protocol::Owner;
use std::time::Duration;

/// How many bytes stay in a document: Firestore takes a MiB with names and all.
pub(crate) const INLINE_BYTES_MAX: usize = 900_000;

/// How a document names its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    id: String,
    count: u32,
}

/// Where the bytes of a document that is about to be written are, and what of the old ones goes with it.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) now: Option<Parts>,
    pub(crate) removed: Vec<Write>,
}

/// Bytes that were kept in parts by an earlier turn of the same operation.
pub(crate) type Kept = Option<(Bytes, Parts)>;

// === impl Parts ===

impl Parts {
    /// As a document names them. They count only where the bytes are not in the document itself.
    pub(crate) fn read(reader: Reader<'_>) -> Result<Option<Self>, Error> {
        let count = reader.int32("parts")?;
        let Some(id) = reader.string_or_none("part_id")?.filter(|_| count > 0) else {
            return Ok(None);
        };
        Ok(Some(Self {
            id: id.to_owned(),
            count,
        }))
    }

    pub(crate) fn name_in(&self, fields: &mut Fields) {
        fields.insert("parts".into(), int(self.count));
        fields.insert("part_id".into(), string(&self.id));
    }

    /// Keeps bytes for the document that will name them, if it cannot hold them itself.
    pub(crate) async fn keep(
        client: &Client,
        document: &str,
        whole: &Bytes,
        within: Duration,
    ) -> Result<Option<Self>, Failure> {
        if whole.len() <= INLINE_BYTES_MAX {
            return Ok(None);
        }
        let pieces = whole.chunks(INLINE_BYTES_MAX).map(|it| whole.slice_ref(it));
        let pieces: Vec<_> = pieces.collect();
        let parts = Self {
            id: format!("{}_{}", id(document), Owner::random()),
            count: u32::try_from(pieces.len()).expect("results are bounded far below"),
        };
        let of = client.names.below_root(document);
        for (name, piece) in parts.documents(client).into_iter().zip(pieces) {
            let part = fields([("data", bytes(piece)), ("of", string(of))]);
            client.commit(vec![put(name, part, None)], within).await?;
        }
        Ok(Some(parts))
    }

    /// The bytes; `Torn` when a part is gone, as when the document has been replaced meanwhile.
    pub(crate) async fn fetch(&self, client: &Client, within: Duration) -> Result<Bytes, Failure> {
        let mut whole = BytesMut::new();
        let seen = client.read(self.documents(client), within).await?;
        for part in seen.documents {
            let part = part.ok_or(Failure::Torn)?;
            let data = Reader { document: &part }.bytes_or_none("data")?;
            whole.extend_from_slice(&data.unwrap_or_default());
        }
        Ok(whole.freeze())
    }

    pub(crate) fn documents(&self, client: &Client) -> Vec<String> {
        let name = |n| format!("{}_{n}", self.id);
        let document = |n| client.names.document(Collection::Parts, &name(n));
        (0..self.count).map(document).collect()
    }
}

// === impl Placed ===

impl Placed {
    /// `old` is what the document had: its bytes, and their parts. What stays the same stays where it is.
    pub(crate) async fn of(
        client: &Client,
        document: &str,
        new: Option<&Bytes>,
        old: Option<(Option<&Bytes>, Option<&Parts>)>,
        turns: &Turns<'_>,
        kept: &mut Kept,
    ) -> Result<Self, Failure> {
        let (had, parts) = old.unwrap_or_default();
        if let Some(parts) = parts.filter(|_| had == new) {
            return Ok(Self {
                now: Some(parts.clone()),
                removed: Vec::new(),
            });
        }
        let names = parts
            .map(|parts| parts.documents(client))
            .unwrap_or_default();
        let now = match (new, &*kept) {
            (Some(new), Some((bytes, parts))) if new == bytes => Some(parts.clone()),
            (Some(new), _) => Parts::keep(client, document, new, turns.within()).await?,
            (None, _) => None,
        };
        if let (Some(new), Some(parts)) = (new, &now) {
            *kept = Some((new.clone(), parts.clone()));
        }
        Ok(Self {
            now,
            removed: names.into_iter().map(|name| delete(name, None)).collect(),
        })
    }
}
