//! Showing the steps of an incarnation. Their ids are digests, so they are read before they can be in order.

use crate::client::{Client, Failure};
use crate::names::{Collection, steps_of};
use crate::query;
use crate::record_document::{HEAD, Stored, read_record, read_step};
use crate::turn::Turns;
use crate::value::Reader;
use semel::protocol::StepRecord;
use semel::store::{STEPS_SHOWN_MAX, shown_step};
use semel::{Error, Key};
use std::time::Duration;

/// How many steps are looked at; a run that has more is shown some of them.
const STEPS_READ_MAX: u32 = 2_000;

/// How many are read whole at a time.
const WHOLE_AT_A_TIME: usize = 8;

pub(crate) async fn show(
    client: &Client,
    key: &Key,
    timeout: Duration,
) -> Result<Vec<(String, StepRecord)>, Error> {
    let mut turns = Turns::new(client, timeout);
    loop {
        match try_show(client, key, &mut turns).await {
            Ok(steps) => return Ok(steps),
            Err(failure) => turns.after(failure).await?,
        }
    }
}

async fn try_show(
    client: &Client,
    key: &Key,
    turns: &mut Turns<'_>,
) -> Result<Vec<(String, StepRecord)>, Failure> {
    let record = vec![client.names.record(key)];
    let seen = client.read_fields(record, &HEAD, turns.within()).await?;
    let Some(document) = seen.documents.into_iter().flatten().next() else {
        return Ok(Vec::new());
    };
    let record = read_record(&document)?.value;
    if record.expired(seen.now) {
        return Ok(Vec::new());
    }
    let steps = client
        .names
        .document(Collection::Steps, &steps_of(key, record.born));
    let steps = query::beginning_with(client, Collection::Steps, &steps, &["name"], STEPS_READ_MAX);
    let rows = client.query(steps, turns.within()).await?;
    let mut names = Vec::new();
    for document in &rows.documents {
        let name = Reader { document }.string_or_none("name")?;
        names.push((name.unwrap_or_default().to_owned(), document.name.clone()));
    }
    names.sort_unstable();
    names.truncate(STEPS_SHOWN_MAX);
    let mut shown = Vec::with_capacity(names.len());
    for names in names.chunks(WHOLE_AT_A_TIME) {
        let documents = names.iter().map(|(_, document)| document.clone());
        let seen = client.read(documents.collect(), turns.within()).await?;
        for ((name, _), document) in names.iter().zip(seen.documents) {
            // One that is gone belonged to an incarnation that has just ended.
            let Some(document) = document else { continue };
            let Stored { mut value, parts } = read_step(&document)?;
            if let Some(parts) = parts {
                value.result = Some(parts.fetch_first(client, turns).await?);
            }
            shown.push((name.clone(), shown_step(value)));
        }
    }
    Ok(shown)
}
