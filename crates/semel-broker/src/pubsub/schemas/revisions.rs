//! A schema as it is in memory: its revisions, each compiled.

use crate::proto::pubsub as wire;
use crate::pubsub::errors::{bad_argument, invalid, not_found};
use crate::pubsub::names::DELETED_REVISION;
use crate::pubsub::rows;
use crate::schema::Definition;
use crate::storage::StorageError;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tonic::Status;

/// How much of its digest names a revision: eight letters.
const REVISION_ID_BYTES: usize = 4;

/// A schema as it is in memory.
#[derive(Debug)]
pub(in crate::pubsub) struct SchemaRevisions {
    /// The oldest first; there is at least one.
    pub(super) revisions: Vec<Arc<Revision>>,
}

#[derive(Debug)]
pub(in crate::pubsub) struct Revision {
    pub(in crate::pubsub) schema: wire::Schema,
    pub(in crate::pubsub) definition: Definition,
}

// === impl SchemaRevisions ===

impl SchemaRevisions {
    fn kept(kept: wire::StoredSchema) -> Option<Self> {
        let revision = |schema: wire::Schema| {
            let definition = Definition::compile(&schema).ok()?;
            Some(Arc::new(Revision { schema, definition }))
        };
        let revisions: Option<Vec<_>> = kept.revisions.into_iter().map(revision).collect();
        let revisions = revisions.filter(|it| !it.is_empty())?;
        Some(Self { revisions })
    }

    pub(in crate::pubsub) fn last(&self) -> &Arc<Revision> {
        self.revisions.last().expect("there is at least one")
    }

    pub(super) fn find(&self, name: &str, id: &str) -> Result<Arc<Revision>, Status> {
        let mut revisions = self.revisions.iter();
        let found = revisions.find(|it| it.schema.revision_id == id);
        found
            .cloned()
            .ok_or_else(|| not_found(&format!("{name}@{id}")))
    }

    /// The revisions a topic's messages may be of, the newest first. A bound that was deleted is none.
    pub(in crate::pubsub) fn allowed(
        &self,
        settings: &wire::SchemaSettings,
    ) -> Result<Vec<Arc<Revision>>, Status> {
        let place = |id: &str, default: usize| match id {
            "" | DELETED_REVISION => Ok(default),
            id => {
                let mut revisions = self.revisions.iter();
                let place = revisions.position(|it| it.schema.revision_id == id);
                place.ok_or_else(|| not_found(&format!("{}@{id}", settings.schema)))
            }
        };
        let first = place(&settings.first_revision_id, 0)?;
        let last = place(&settings.last_revision_id, self.revisions.len() - 1)?;
        match self.revisions.get(first..=last) {
            Some(allowed) if !allowed.is_empty() => Ok(allowed.iter().rev().cloned().collect()),
            Some(_) | None => Err(bad_argument(
                "schema_settings, the first revision comes after the last",
            )),
        }
    }

    /// All revisions, for the page of the broker.
    pub(super) fn all(&self) -> impl Iterator<Item = &wire::Schema> {
        self.revisions.iter().map(|it| &it.schema)
    }
}

/// A schema's name, and the revision that may stand after it.
pub(super) fn split_revision(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((name, id)) => (name, Some(id)),
        None => (name, None),
    }
}

pub(super) fn compiled(schema: &wire::Schema) -> Result<Definition, Status> {
    let compiled = Definition::compile(schema);
    compiled.map_err(|why| invalid("schema.definition", short_text(&schema.definition), &why))
}

/// Enough of a definition to tell it from others.
fn short_text(text: &str) -> String {
    text.chars().take(40).collect()
}

pub(in crate::pubsub) fn bad_message(why: &str) -> Status {
    Status::invalid_argument(format!(
        "Invalid data in message: Message failed schema validation: {why}."
    ))
}

/// In the words of production.
pub(super) fn incompatible(schema: &str, previous: &str, why: &str) -> Status {
    Status::invalid_argument(format!(
        "Compatibility checking failed to commit a schema revision for (schema=\"{schema}\"). \
         (reason=\"Revision is incompatible with previous revision: {previous}. Failed with error: {why}\"). \
         Refer to https://cloud.google.com/pubsub/docs/schemas for more information."
    ))
}

pub(super) fn revision_id(schema: &wire::Schema, number: u64) -> String {
    let digest = Sha256::new()
        .chain_update(schema.name.as_bytes())
        .chain_update(number.to_be_bytes())
        .finalize();
    let bytes = digest.iter().take(REVISION_ID_BYTES);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// As the caller wants it: the definition only in the full view.
pub(super) fn shown(schema: &wire::Schema, full: bool) -> wire::Schema {
    let mut schema = schema.clone();
    if !full {
        schema.definition.clear();
    }
    schema
}

/// Reads a row of the broker's own.
pub(in crate::pubsub) fn kept(row: bytes::Bytes) -> Result<SchemaRevisions, StorageError> {
    let kept = rows::decode::<wire::StoredSchema>(row)?;
    let error = || StorageError("a schema is damaged".into());
    SchemaRevisions::kept(kept).ok_or_else(error)
}
