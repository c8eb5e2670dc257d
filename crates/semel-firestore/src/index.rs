//! The index of transport ids. Two documents for each: one by id, which is found, and one by key, for whoever forgets that.

use crate::client::{Client, Failure};
use crate::names::{Collection, SWEEP, id};
use crate::proto::{Document, Write};
use crate::query;
use crate::record_document::GRACE;
use crate::turn::Turns;
use crate::value::{Fields, Reader, fields, int, timestamp};
use crate::writes::{delete, put};
use bytes::Bytes;
use semel::clock::Time;
use semel::store::{FOUND_KEYS_MAX, index_digest};
use semel::{Error, Key};
use std::collections::BTreeSet;
use std::time::Duration;

/// How many documents are read or removed at a time.
const WINDOW: u32 = 128;

/// Keeps a key under these ids.
pub(crate) async fn keep(
    client: &Client,
    key: &Key,
    ids: &[Bytes],
    keep: Duration,
    timeout: Duration,
) -> Result<(), Error> {
    let ids: BTreeSet<_> = ids.iter().map(|id| hex::encode(index_digest(id))).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let mut turns = Turns::new(client, timeout);
    loop {
        match try_keep(client, key, &ids, keep, &mut turns).await {
            Ok(()) => return Ok(()),
            Err(failure) => turns.after(failure).await?,
        }
    }
}

/// Two processes may do so at once, and the last one's end counts: it is best effort.
async fn try_keep(
    client: &Client,
    key: &Key,
    ids: &BTreeSet<String>,
    keep: Duration,
    turns: &mut Turns<'_>,
) -> Result<(), Failure> {
    let names = ids.iter().map(|id| found_name(client, id, key)).collect();
    let seen = client.read(names, turns.within()).await?;
    let mut writes = Vec::new();
    for (id, known) in ids.iter().zip(&seen.documents) {
        let known = known.as_ref().map(ends).transpose()?;
        let until = seen.now.plus(keep).max(known.unwrap_or(Time(0)));
        let [found, indexed] = names_of(client, id, key);
        writes.push(put(found, until_fields(until), None));
        writes.push(put(indexed, until_fields(until), None));
    }
    client.commit(writes, turns.within()).await?;
    Ok(())
}

/// The keys under an id.
pub(crate) async fn find(client: &Client, id: &[u8], timeout: Duration) -> Result<Vec<Key>, Error> {
    let prefix = format!("i_{}_", hex::encode(index_digest(id)));
    let first = client.names.document(Collection::Index, &prefix);
    let fields = ["expires_at"];
    let mut turns = Turns::new(client, timeout);
    let rows = loop {
        let query = query::beginning_with(client, Collection::Index, &first, &fields, WINDOW);
        match client.query(query, turns.within()).await {
            Ok(rows) => break rows,
            Err(failure) => turns.after(failure).await?,
        }
    };
    let mut keys = Vec::new();
    for document in &rows.documents {
        if ends(document)? > rows.now && keys.len() < FOUND_KEYS_MAX {
            keys.extend(entry(document).map(|(_, key)| key));
        }
    }
    Ok(keys)
}

/// Removes what the index has of a key that is forgotten.
pub(crate) async fn forget(
    client: &Client,
    key: &Key,
    turns: &mut Turns<'_>,
) -> Result<(), Failure> {
    let first = client
        .names
        .document(Collection::Index, &format!("k_{key}_"));
    loop {
        let query = query::beginning_with(client, Collection::Index, &first, &[], WINDOW);
        let rows = client.query(query, turns.within()).await?;
        if rows.documents.is_empty() {
            return Ok(());
        }
        let full = rows.documents.len() == WINDOW as usize;
        let mut gone = Vec::new();
        for document in rows.documents {
            if let Some((digest, key)) = entry(&document) {
                gone.push(delete(found_name(client, digest, &key), None));
            }
            gone.push(delete(document.name, None));
        }
        client.commit(gone, turns.within()).await?;
        if !full {
            return Ok(());
        }
    }
}

/// Those of a window that have ended.
pub(crate) fn ended(client: &Client, documents: &[Document], now: Time) -> Vec<Write> {
    let mut gone = Vec::new();
    // Whoever sweeps keeps this one.
    let documents = documents.iter().filter(|it| id(&it.name) != SWEEP);
    for document in documents {
        let ends = client.foreign.pass_over(&document.name, ends(document));
        if ends.is_some_and(|ends| ends <= now) {
            gone.push(delete(document.name.clone(), document.update_time));
        }
    }
    gone
}

fn ends(document: &Document) -> Result<Time, Error> {
    Reader { document }.time("expires_at")
}

pub(crate) fn until_fields(until: Time) -> Fields {
    fields([
        ("expires_at", int(until.0)),
        ("delete_at", timestamp(until.plus(GRACE))),
    ])
}

fn found_name(client: &Client, digest: &str, key: &Key) -> String {
    let [found, _] = names_of(client, digest, key);
    found
}

fn names_of(client: &Client, digest: &str, key: &Key) -> [String; 2] {
    [format!("i_{digest}_{key}"), format!("k_{key}_{digest}")]
        .map(|id| client.names.document(Collection::Index, &id))
}

/// The digest and the key that either document is about.
fn entry(document: &Document) -> Option<(&str, Key)> {
    let id = id(&document.name);
    if let Some(found) = id.strip_prefix("i_") {
        let (digest, key) = found.split_once('_')?;
        return Some((digest, key.parse().ok()?));
    }
    let (key, digest) = id.strip_prefix("k_")?.rsplit_once('_')?;
    Some((digest, key.parse().ok()?))
}
