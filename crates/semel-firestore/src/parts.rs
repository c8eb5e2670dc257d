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

/// How many bytes stay in a document: Firestore takes a MiB with names and all.
pub(crate) const INLINE_BYTES_MAX: usize = 900_000;

/// How many parts one call reads.
const PARTS_AT_A_TIME: usize = 4;

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

/// Bytes that the turns of one operation keep in parts. What one has written, the next need not write again.
#[derive(Debug)]
pub(crate) struct Kept {
    whole: Bytes,
    parts: Parts,
    written: usize,
}

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
    async fn keep(
        client: &Client,
        document: &str,
        whole: &Bytes,
        turns: &mut Turns<'_>,
    ) -> Result<Option<Self>, Failure> {
        if whole.len() <= INLINE_BYTES_MAX {
            return Ok(None);
        }
        let known = turns.kept.take().filter(|kept| kept.whole == whole);
        let mut kept = known.unwrap_or_else(|| Kept::new(document, whole));
        turns.allow_for(kept.parts.count);
        let parts = kept.parts.clone();
        let written = kept.write(client, document, turns).await;
        turns.kept = Some(kept);
        written.map(|()| Some(parts))
    }

    /// The bytes; `Torn` when a part is gone, as when the document has been replaced meanwhile.
    pub(crate) async fn fetch(
        &self,
        client: &Client,
        turns: &mut Turns<'_>,
    ) -> Result<Bytes, Failure> {
        turns.allow_for(self.count);
        let mut whole = BytesMut::new();
        // As many at a time as one call can bring in its time.
        for parts in self.documents(client).chunks(PARTS_AT_A_TIME) {
            whole.extend_from_slice(&fetch(client, parts, turns).await?);
        }
        Ok(whole.freeze())
    }

    /// How they begin.
    pub(crate) async fn fetch_first(
        &self,
        client: &Client,
        turns: &mut Turns<'_>,
    ) -> Result<Bytes, Failure> {
        let documents = self.documents(client);
        let first = documents.get(..1).unwrap_or_default();
        Ok(fetch(client, first, turns).await?.freeze())
    }

    pub(crate) fn documents(&self, client: &Client) -> Vec<String> {
        let name = |n| format!("{}_{n}", self.id);
        let document = |n| client.names.document(Collection::Parts, &name(n));
        (0..self.count).map(document).collect()
    }
}

pub(crate) fn part_fields(piece: &Bytes, of: &str) -> Fields {
    fields([("data", bytes(piece.clone())), ("of", string(of))])
}

async fn fetch(
    client: &Client,
    parts: &[String],
    turns: &mut Turns<'_>,
) -> Result<BytesMut, Failure> {
    let mut bytes = BytesMut::new();
    let seen = client.read(parts.to_vec(), turns.within()).await?;
    for part in seen.documents {
        let part = part.ok_or(Failure::Torn)?;
        let data = Reader { document: &part }.bytes_or_none("data")?;
        bytes.extend_from_slice(&data.unwrap_or_default());
    }
    Ok(bytes)
}

// === impl Kept ===

impl Kept {
    fn new(document: &str, whole: &Bytes) -> Self {
        let count = whole.len().div_ceil(INLINE_BYTES_MAX);
        Self {
            whole: whole.clone(),
            parts: Parts {
                id: format!("{}_{}", id(document), Owner::random()),
                count: u32::try_from(count).expect("results are bounded far below"),
            },
            written: 0,
        }
    }

    /// Writes what is not written yet. A piece whose answer was lost is written once more.
    async fn write(
        &mut self,
        client: &Client,
        document: &str,
        turns: &mut Turns<'_>,
    ) -> Result<(), Failure> {
        let of = client.names.below_root(document);
        let pieces = self.whole.chunks(INLINE_BYTES_MAX);
        let names = self.parts.documents(client).into_iter();
        for (name, piece) in names.zip(pieces).skip(self.written) {
            let piece = self.whole.slice_ref(piece);
            let writes = vec![put(name, part_fields(&piece, of), None)];
            client.commit(writes, turns.within()).await?;
            self.written += 1;
        }
        Ok(())
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
        turns: &mut Turns<'_>,
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
        let now = match new {
            Some(new) => Parts::keep(client, document, new, turns).await?,
            None => None,
        };
        Ok(Self {
            now,
            removed: names.into_iter().map(|name| delete(name, None)).collect(),
        })
    }
}
