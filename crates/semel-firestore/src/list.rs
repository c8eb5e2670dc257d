//! Listing records, without what is large in them.

use crate::client::{Client, Rows};
use crate::names::{Collection, id, is_id, key_of};
use crate::query;
use crate::record_document::{HEAD, read_record};
use crate::turn::Turns;
use crate::value::int;
use bytes::Bytes;
use semel::protocol::{Record, State};
use semel::store::{Cursor, Page};
use semel::{Error, Key};
use std::time::Duration;

/// Lists records that are not expired, in the order of their keys.
pub(crate) async fn list(
    client: &Client,
    state: Option<State>,
    after: Option<&Cursor>,
    limit: u32,
    timeout: Duration,
) -> Result<Page<(Key, Record)>, Error> {
    let limit = limit.max(1);
    let after = after.map(|cursor| document_after(client, Collection::Records, &cursor.0));
    let after = after.transpose()?;
    let mut records = query::by_name(client, Collection::Records, &HEAD, after.as_deref(), limit);
    if let Some(state) = state {
        records = query::with_value(records, "state", int(state.number()));
    }
    let mut turns = Turns::new(client, timeout);
    let rows = loop {
        match client.query(records.clone(), turns.within()).await {
            Ok(rows) => break rows,
            Err(failure) => turns.after(failure).await?,
        }
    };
    Ok(page(client, &rows, limit))
}

fn page(client: &Client, rows: &Rows, limit: u32) -> Page<(Key, Record)> {
    let mut items = Vec::new();
    for document in &rows.documents {
        let read = key_of(&document.name).and_then(|key| Ok((key, read_record(document)?.value)));
        let read = client.foreign.pass_over(&document.name, read);
        items.extend(read.filter(|(_, record)| !record.expired(rows.now)));
    }
    let last = rows.documents.last();
    let last = last.filter(|_| rows.documents.len() >= limit as usize);
    let next = last.map(|last| Cursor(Bytes::copy_from_slice(id(&last.name).as_bytes())));
    Page { items, next }
}

/// The document that a cursor names: ours, or one that somebody else put among ours.
pub(crate) fn document_after(
    client: &Client,
    collection: Collection,
    id: &[u8],
) -> Result<String, Error> {
    let id = std::str::from_utf8(id).ok().filter(|id| is_id(id));
    id.map(|id| client.names.document(collection, id))
        .ok_or_else(|| {
            Error::invalid("the cursor is none of this store's; begin the list again without one")
        })
}
