//! What an operation is decided by, as it was read or is believed.

use crate::belief::Believed;
use crate::client::{Client, Failure};
use crate::parts::Parts;
use crate::proto::Document;
use crate::record_document::{Stored, read_record, read_step};
use crate::turn::Turns;
use crate::writes::Version;
use bytes::Bytes;
use semel::clock::Time;
use semel::protocol::{Decision, Operation, Record, StepRecord, decide};
use semel::{Error, Key};

/// What an operation is decided by: the record of its key and the step that it names, at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) record: Option<Found<Record>>,
    pub(crate) step: Option<Found<StepRecord>>,
    pub(crate) now: Time,
}

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) value: T,
    pub(crate) parts: Option<Parts>,
    pub(crate) version: Version,
}

// === impl Snapshot ===

impl Snapshot {
    pub(crate) fn believed((record, now): (Option<Believed>, Time)) -> Self {
        let record = record.map(|it| Found {
            value: it.record,
            parts: it.parts,
            version: it.version,
        });
        Self {
            record,
            step: None,
            now,
        }
    }

    pub(crate) async fn read(
        client: &Client,
        operation: &Operation,
        key: &Key,
        turns: &mut Turns<'_>,
    ) -> Result<Self, Failure> {
        let step = operation.step();
        let mut names = vec![client.names.record(key)];
        names.extend(step.map(|(lease, name)| client.names.step(key, lease.born, name)));
        let seen = client.read(names, turns.within()).await?;
        let mut documents = seen.documents.into_iter();
        let mut next = || documents.next().flatten();
        let (record, step) = (next(), next());
        Ok(Self {
            record: Found::of(client, record, read_record, |it| &mut it.result, turns).await?,
            step: Found::of(client, step, read_step, |it| &mut it.result, turns).await?,
            now: seen.now,
        })
    }

    pub(crate) fn decide(&self, operation: &Operation) -> Decision {
        let record = self.record.as_ref().map(|it| &it.value);
        let step = self.step.as_ref().map(|it| &it.value);
        decide(record, step, operation, self.now)
    }
}

// === impl Found ===

impl<T> Found<T> {
    /// What a document says, its bytes included wherever they are.
    async fn of(
        client: &Client,
        document: Option<Document>,
        read: fn(&Document) -> Result<Stored<T>, Error>,
        bytes: fn(&mut T) -> &mut Option<Bytes>,
        turns: &mut Turns<'_>,
    ) -> Result<Option<Self>, Failure> {
        let Some(document) = document else {
            return Ok(None);
        };
        let Stored { mut value, parts } = read(&document)?;
        if let Some(parts) = &parts {
            *bytes(&mut value) = Some(parts.fetch(client, turns).await?);
        }
        Ok(Some(Self {
            value,
            parts,
            version: version(&document)?,
        }))
    }
}

/// When the document last changed.
pub(crate) fn version(document: &Document) -> Result<Version, Error> {
    document.update_time.ok_or_else(|| {
        Error::corrupt(format!(
            "Firestore told no version of {}; stop and look what answers there",
            document.name
        ))
    })
}
