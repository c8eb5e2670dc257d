//! A schema as it is in memory: its revisions, each compiled.

use crate::interface::NotServed;
use crate::proto::pubsub as wire;
use crate::pubsub::errors::{bad_argument, invalid, not_found};
use crate::pubsub::names::DELETED_REVISION;
use crate::pubsub::rows;
use crate::schema::Definition;
use crate::storage::{Row, StorageError};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tonic::Status;

/// How much of its digest names a revision: eight letters.
const REVISION_ID_BYTES: usize = 4;

/// A schema as it is in memory.
#[derive(Clone, Debug, Default)]
pub(in crate::pubsub) struct SchemaRevisions {
    /// The oldest first; there is at least one, once it is made.
    pub(super) revisions: Vec<Arc<Revision>>,
    /// The ids of all, in the same order, and of such as are deleted and named by a topic yet.
    pub(super) order: Vec<String>,
}

#[derive(Debug)]
pub(in crate::pubsub) struct Revision {
    pub(in crate::pubsub) schema: wire::Schema,
    pub(in crate::pubsub) definition: Definition,
}

// === impl SchemaRevisions ===

impl SchemaRevisions {
    fn kept(kept: wire::StoredSchema) -> Option<Self> {
        let revisions = kept.revisions.into_iter().map(Revision::kept);
        let revisions: Vec<_> = revisions.map(Arc::new).collect();
        revisions.last()?;
        let order = match kept.order.is_empty() {
            // Of a build that did not write it.
            true => revisions
                .iter()
                .map(|it| it.schema.revision_id.clone())
                .collect(),
            false => kept.order,
        };
        Some(Self { revisions, order })
    }

    /// Gives back what fits all revisions.
    pub(super) fn fitting(&self, revision: Revision) -> Result<Revision, Status> {
        let name = &revision.schema.name;
        for kept in self.revisions.iter().rev() {
            let compatible = revision.definition.compatible_with(&kept.definition);
            let id = &kept.schema.revision_id;
            compatible.map_err(|why| incompatible(name, id, &why))?;
        }
        Ok(revision)
    }

    /// With one more, which is the newest.
    pub(super) fn with(mut self, revision: Revision) -> Self {
        self.order.push(revision.schema.revision_id.clone());
        self.revisions.push(Arc::new(revision));
        self
    }

    /// Without this one; its place is kept as long as a topic names it.
    pub(super) fn without(&self, id: &str, is_named: impl Fn(&String) -> bool) -> Self {
        let mut left = self.clone();
        left.revisions.retain(|it| it.schema.revision_id != id);
        let order = left.order.iter().filter(|it| left.has(it) || is_named(it));
        left.order = order.cloned().collect();
        left
    }

    pub(super) fn has(&self, id: &str) -> bool {
        let mut revisions = self.revisions.iter();
        revisions.any(|it| it.schema.revision_id == id)
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

    /// The revisions a topic's messages may be of, the newest first. Instead of a first revision that is deleted the
    /// next one counts, instead of a last one the one before.
    pub(in crate::pubsub) fn allowed(
        &self,
        settings: &wire::SchemaSettings,
    ) -> Result<Vec<Arc<Revision>>, Status> {
        let place = |id: &str, default: usize| match id {
            "" => Ok(default),
            id => {
                let place = self.order.iter().position(|it| it == id);
                place.ok_or_else(|| not_found(&format!("{}@{id}", settings.schema)))
            }
        };
        let first = place(&settings.first_revision_id, 0)?;
        let last = place(&settings.last_revision_id, self.order.len() - 1)?;
        let Some(ids) = self.order.get(first..=last).filter(|it| !it.is_empty()) else {
            return Err(bad_argument(
                "schema_settings, the first revision comes after the last",
            ));
        };
        let allowed = self.revisions.iter().rev();
        let allowed = allowed.filter(|it| ids.contains(&it.schema.revision_id));
        Ok(allowed.cloned().collect())
    }

    /// What a topic says of its schema, to whoever asks: of a deleted revision only that it is.
    pub(super) fn shown_in(&self, settings: &mut wire::SchemaSettings) {
        for id in bounds(settings) {
            if !id.is_empty() && !self.has(id) {
                *id = DELETED_REVISION.into();
            }
        }
    }

    /// What an update says of a topic's schema, as it is kept: who repeats that a bound is deleted means the old one.
    pub(super) fn meant_by(
        &self,
        settings: &mut wire::SchemaSettings,
        old: Option<&wire::SchemaSettings>,
    ) -> Result<(), Status> {
        let mut old = old.filter(|it| it.schema == settings.schema).cloned();
        let mut old = old.iter_mut().flat_map(bounds);
        let schema = settings.schema.clone();
        for id in bounds(settings) {
            let old = old.next();
            let is_gone = |id: &String| !id.is_empty() && !self.has(id);
            let old = old.filter(|old| old == &id || (id == DELETED_REVISION && is_gone(old)));
            match old {
                Some(old) => id.clone_from(old),
                None if id.is_empty() || self.has(id) => {}
                None => return Err(not_found(&format!("{schema}@{id}"))),
            }
        }
        Ok(())
    }

    /// All revisions, for the page of the broker.
    pub(super) fn all(&self) -> impl Iterator<Item = &wire::Schema> {
        self.revisions.iter().map(|it| &it.schema)
    }
}

// === impl Revision ===

impl Revision {
    pub(super) fn compiled(schema: wire::Schema) -> Result<Self, Status> {
        let definition = compiled(&schema)?;
        Ok(Self { schema, definition })
    }

    /// A build may refuse what an earlier one took: that is no reason not to start.
    fn kept(schema: wire::Schema) -> Self {
        let definition = Definition::compile(&schema).unwrap_or_else(|why| {
            Definition::Unreadable(format!(
                "this build cannot read revision {} ({why}): delete it, or start the build that wrote it",
                schema.revision_id
            ))
        });
        Self { schema, definition }
    }
}

fn bounds(settings: &mut wire::SchemaSettings) -> [&mut String; 2] {
    [
        &mut settings.first_revision_id,
        &mut settings.last_revision_id,
    ]
}

/// A schema's name, and the revision that may stand after it.
pub(super) fn split_revision(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((name, id)) => (name, Some(id)),
        None => (name, None),
    }
}

pub(super) fn compiled(schema: &wire::Schema) -> Result<Definition, Status> {
    if Definition::is_not_served(schema) {
        let not_served = NotServed {
            name: "google.pubsub.v1.Schema.definition".into(),
            why: "editions of Protocol Buffers are not read; write proto2 or proto3".into(),
        };
        return Err(not_served.status());
    }
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
fn incompatible(schema: &str, previous: &str, why: &str) -> Status {
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
pub(in crate::pubsub) fn kept(row: Row) -> Result<SchemaRevisions, StorageError> {
    let kept = rows::decode::<wire::StoredSchema>(row.value)?;
    let error = || {
        let name = String::from_utf8_lossy(&row.key);
        StorageError(format!("the schema {name} is damaged: it has no revision"))
    };
    SchemaRevisions::kept(kept).ok_or_else(error)
}
