//! Removing what is over: records long expired, steps and parts that nothing names any more, tombstones of letters, and what the
//! index has kept for long enough.
//!
//! One window looks at a few hundred documents of one collection; the cursor says which collection and where.

use crate::client::{Client, Failure, Rows};
use crate::index;
use crate::letter_document::read_letter;
use crate::list::document_after;
use crate::names::{Collection, id, key_of, owner_of_step};
use crate::proto::{Document, Write};
use crate::query;
use crate::record_document::{GRACE, HEAD, read_record};
use crate::turn::Turns;
use crate::value::{Reader, time};
use crate::writes::delete;
use bytes::Bytes;
use semel::Error;
use semel::clock::Time;
use semel::protocol::sweepable;
use semel::store::{Cursor, Swept};
use std::collections::BTreeMap;
use std::time::Duration;

/// How many documents one window looks at.
const WINDOW: u32 = 300;

/// How old a part must be before it counts as left behind: far older than any operation gets.
const PART_AGE: Duration = Duration::from_secs(60 * 60);

/// In the order they are swept: what names goes before what is named.
const COLLECTIONS: [(u8, Collection); 5] = [
    (b'r', Collection::Records),
    (b's', Collection::Steps),
    (b'p', Collection::Parts),
    (b'l', Collection::Letters),
    (b'i', Collection::Index),
];

/// Sweeps one window.
pub(crate) async fn sweep(
    client: &Client,
    after: Option<&Cursor>,
    timeout: Duration,
) -> Result<Swept, Error> {
    let (at, after) = place(client, after)?;
    let mut turns = Turns::new(client, timeout);
    loop {
        match window(client, at, after.as_deref(), &mut turns).await {
            Ok(swept) => return Ok(swept),
            Err(failure) => turns.after(failure).await?,
        }
    }
}

async fn window(
    client: &Client,
    at: usize,
    after: Option<&str>,
    turns: &mut Turns<'_>,
) -> Result<Swept, Failure> {
    let Some((mark, collection)) = COLLECTIONS.get(at).copied() else {
        return Ok(Swept {
            removed: 0,
            next: None,
        });
    };
    let select: &[&str] = match collection {
        Collection::Records => &HEAD,
        Collection::Steps => &[],
        Collection::Parts => &["of"],
        Collection::Letters => &["fence", "expires_at"],
        Collection::Index => &["expires_at"],
    };
    let documents = query::by_name(client, collection, select, after, WINDOW);
    let rows = client.query(documents, turns.within()).await?;
    let gone = match collection {
        Collection::Records => records(client, &rows),
        Collection::Steps => steps(client, &rows, turns).await?,
        Collection::Parts => parts(client, &rows, turns).await?,
        Collection::Letters => tombstones(client, &rows),
        Collection::Index => index::ended(client, &rows.documents, rows.now),
    };
    let removed = client.write_each(gone, turns.within()).await?;
    let last = rows.documents.last();
    let last = last.filter(|_| rows.documents.len() >= WINDOW as usize);
    Ok(Swept {
        removed: if collection == Collection::Records {
            removed
        } else {
            0
        },
        next: match last {
            Some(last) => Some(cursor(mark, id(&last.name))),
            None => COLLECTIONS.get(at + 1).map(|(mark, _)| cursor(*mark, "")),
        },
    })
}

/// A record that changes meanwhile stays: it is deleted in the version that was seen.
fn records(client: &Client, rows: &Rows) -> Vec<Write> {
    let mut gone = Vec::new();
    for document in &rows.documents {
        let record = key_of(&document.name).and_then(|_| Ok(read_record(document)?.value));
        let record = client.foreign.pass_over(&document.name, record);
        if record.is_some_and(|record| sweepable(&record, GRACE, rows.now)) {
            gone.push(delete(document.name.clone(), document.update_time));
        }
    }
    gone
}

/// Steps whose incarnation is gone: it never comes back, because fences rise.
async fn steps(client: &Client, rows: &Rows, turns: &mut Turns<'_>) -> Result<Vec<Write>, Failure> {
    let owner = |step: &Document| owner_of_step(&step.name);
    let keys = rows.documents.iter().filter_map(owner);
    let mut names: Vec<_> = keys.map(|(key, _)| client.names.record(&key)).collect();
    names.dedup();
    let records = existing(client, names, &["born"], turns).await?;
    let mut gone = Vec::new();
    for step in &rows.documents {
        let Some((key, born)) = owner(step) else {
            continue;
        };
        let record = records.get(&client.names.record(&key));
        let lives = record.map(|document| Reader { document }.int("born"));
        // A record that cannot be read keeps its steps.
        let lives = lives.map(|it| client.foreign.pass_over(&step.name, it));
        if lives.is_none_or(|lives| lives.is_some_and(|lives| lives != born.0)) {
            gone.push(delete(step.name.clone(), step.update_time));
        }
    }
    Ok(gone)
}

/// Old parts that their document does not name.
async fn parts(client: &Client, rows: &Rows, turns: &mut Turns<'_>) -> Result<Vec<Write>, Failure> {
    let mut old = Vec::new();
    for part in &rows.documents {
        let owner = client.foreign.pass_over(&part.name, owner(client, part));
        if let Some(owner) = owner
            && time(part.create_time.as_ref())?.plus(PART_AGE) <= rows.now
        {
            old.push((part, owner));
        }
    }
    let mut names: Vec<_> = old.iter().map(|(_, owner)| owner.clone()).collect();
    names.dedup();
    let owners = existing(client, names, &["part_id"], turns).await?;
    let mut gone = Vec::new();
    for (part, owner) in old {
        let names = owners
            .get(&owner)
            .map(|document| Reader { document }.string_or_none("part_id"));
        // A document that cannot be read keeps its parts.
        let Some(named) = client.foreign.pass_over(&owner, names.transpose()) else {
            continue;
        };
        let is_named = named
            .flatten()
            .is_some_and(|named| id(&part.name).starts_with(named));
        if !is_named {
            gone.push(delete(part.name.clone(), part.update_time));
        }
    }
    Ok(gone)
}

/// The document that a part is of.
fn owner(client: &Client, part: &Document) -> Result<String, Error> {
    let reader = Reader { document: part };
    let of = reader.string_or_none("of")?.unwrap_or_default();
    let owner = client.names.owner_of_part(of);
    owner.ok_or_else(|| reader.wrong("of", "names no document that has parts"))
}

fn tombstones(client: &Client, rows: &Rows) -> Vec<Write> {
    let mut gone = Vec::new();
    for document in &rows.documents {
        let is_over = client
            .foreign
            .pass_over(&document.name, is_over(document, rows.now));
        if is_over == Some(true) {
            gone.push(delete(document.name.clone(), document.update_time));
        }
    }
    gone
}

fn is_over(letter: &Document, now: Time) -> Result<bool, Error> {
    // Open letters have no end, and are not read whole here.
    let ends = Reader { document: letter }.int_or_none("expires_at")?;
    Ok(ends.is_some() && read_letter(letter)?.value.0.sweepable(now))
}

/// Those of the named documents that are there, by name.
async fn existing(
    client: &Client,
    names: Vec<String>,
    fields: &[&str],
    turns: &mut Turns<'_>,
) -> Result<BTreeMap<String, Document>, Failure> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let seen = client.read_fields(names, fields, turns.within()).await?;
    let found = seen.documents.into_iter().flatten();
    Ok(found
        .map(|document| (document.name.clone(), document))
        .collect())
}

/// Which collection, and after which document.
pub(crate) fn place(
    client: &Client,
    cursor: Option<&Cursor>,
) -> Result<(usize, Option<String>), Error> {
    let Some(cursor) = cursor else {
        return Ok((0, None));
    };
    let split = cursor.0.split_first();
    let at = split.and_then(|(mark, _)| COLLECTIONS.iter().position(|(it, _)| it == mark));
    let found = at.and_then(|at| Some((at, COLLECTIONS.get(at)?.1, split?.1)));
    let Some((at, collection, after)) = found else {
        return Err(Error::invalid(
            "the cursor is none of this store's; begin the sweep again without one",
        ));
    };
    if after.is_empty() {
        return Ok((at, None));
    }
    Ok((at, Some(document_after(client, collection, after)?)))
}

fn cursor(mark: u8, id: &str) -> Cursor {
    let mut bytes = vec![mark];
    bytes.extend_from_slice(id.as_bytes());
    Cursor(Bytes::from(bytes))
}
