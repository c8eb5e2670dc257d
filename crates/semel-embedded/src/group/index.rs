//! The index of transport ids. Three rows for each: by id, by key for whoever forgets it, and by the time at which it ends.

use super::{Change, Decided, Group};
use crate::codec::{self, FoundUntil, IndexId, Nothing, RowKey};
use bytes::Bytes;
use semel::protocol::Answer;
use semel::store::index_digest;
use semel::{Error, Key};
use std::time::Duration;

impl Group<'_> {
    /// Keeps a key under transport ids.
    pub(super) fn index(
        &mut self,
        key: &Key,
        ids: &[Bytes],
        keep: Duration,
    ) -> Result<Decided<Answer>, Error> {
        let until = self.now.plus(keep);
        for id in ids {
            let id = index_digest(id);
            let at = codec::index(&id, key);
            let known = self.row::<FoundUntil>(&at)?;
            if known.is_none_or(|row| row.value.0 < until) {
                self.keep(at, &FoundUntil(until));
                self.keep(codec::indexed(key, &id), &Nothing);
                self.keep(codec::unindex(until, &id, key), &Nothing);
            }
        }
        // What a power cut takes back is not found: no claim reads it.
        Ok(Decided {
            answer: Answer::Indexed,
            after: 0,
        })
    }

    /// Removes what the index has of a key, what this very group indexed included.
    pub(super) fn unindex(&mut self, key: &Key) -> Result<(), Error> {
        let prefix = codec::indexed_of(key);
        let stored = self.engine.keyspace.prefix(&prefix).map(|row| row.key());
        let mut rows: Vec<RowKey> = stored
            .collect::<Result<_, _>>()
            .map_err(|error| self.engine.engine_error("read", error))?;
        let kept = self
            .changes
            .iter()
            .filter(|(at, change)| at.starts_with(&prefix) && !matches!(change, Change::Removed));
        rows.extend(kept.map(|(at, _)| at.clone()));
        for at in rows {
            if let Some(id) = codec::indexed_id(&at) {
                self.remove(codec::index(&id, key));
            }
            self.remove(at);
        }
        Ok(())
    }

    /// Takes up what is no longer to be found, unless it was indexed again.
    pub(crate) fn sweep_index(&mut self, rows: &[RowKey]) -> Result<Decided<()>, Error> {
        for row in rows {
            if let Some((id, key)) = codec::unindex_of(row) {
                self.end_index(&id, &key)?;
            }
            self.remove(row.clone());
        }
        Ok(Decided {
            answer: (),
            after: 0,
        })
    }

    fn end_index(&mut self, id: &IndexId, key: &Key) -> Result<(), Error> {
        let at = codec::index(id, key);
        let known = self.row::<FoundUntil>(&at)?;
        if known.is_some_and(|row| row.value.0 <= self.now) {
            self.remove(at);
            self.remove(codec::indexed(key, id));
        }
        Ok(())
    }
}
