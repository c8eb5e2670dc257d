//! The index of transport ids: keys by the names of tasks, messages and events.

use crate::connections::{Connections, Param};
use crate::statement::{FIND, INDEX};
use crate::wire::{self, Raw, Span};
use bytes::Bytes;
use semel::store::{FOUND_KEYS_MAX, index_digest};
use semel::{Error, Key};
use std::collections::BTreeSet;
use std::time::Duration;

/// Keeps a key under these ids. Sorted, so that two gates that index the same do not wait for each other in a circle.
pub(crate) async fn keep(
    connections: &Connections,
    key: &Key,
    ids: &[Bytes],
    keep: Duration,
) -> Result<(), Error> {
    let digests: BTreeSet<_> = ids.iter().map(|id| index_digest(id)).collect();
    let digests: Vec<_> = digests.iter().map(|digest| Raw(digest)).collect();
    let params: [Param<'_>; 3] = [&digests, &Raw(key.as_bytes()), &Span(keep)];
    connections.query(&INDEX, &params).await?;
    Ok(())
}

/// The keys under an id.
pub(crate) async fn find(connections: &Connections, id: &Bytes) -> Result<Vec<Key>, Error> {
    let limit = i64::try_from(FOUND_KEYS_MAX).unwrap_or(i64::MAX);
    let digest = index_digest(id);
    let rows = connections.query(&FIND, &[&Raw(&digest), &limit]).await?;
    rows.iter().map(|row| wire::key(row, 0)).collect()
}
