//! Schemas and their revisions: made, committed, rolled back, deleted.

mod revisions;
mod shown;

pub(super) use revisions::{SchemaRevisions, bad_message, kept};

use super::errors::{already_exists, bad_argument, invalid, not_found};
use super::names::{self, DELETED_SCHEMA};
use super::registry::Registry;
use super::resources::Topic;
use crate::policies::Policies;
use crate::proto::pubsub as wire;
use crate::storage::{Batch, Table};
use prost::Message;
use revisions::{Revision, revision_id, split_revision};
use std::collections::HashSet;
use std::sync::Arc;
use tonic::Status;

/// As many as production keeps of one schema.
const REVISIONS_MAX: usize = 20;

/// Definitions are compiled and compared where nothing waits for them.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
}

// === impl Registry ===

impl Registry {
    pub(super) async fn create_schema(
        self: Arc<Self>,
        request: wire::CreateSchemaRequest,
    ) -> Result<wire::Schema, Status> {
        let mut schema = request.schema.unwrap_or_default();
        names::in_project(&request.parent)?;
        // Whatever name is inside: the id alone says it, in the parent's project.
        schema.name = format!("{}/schemas/{}", request.parent, request.schema_id);
        names::check("schema_id", &schema.name, "schemas")?;
        let is_there = |name: &str| match self.names().schemas.contains_key(name) {
            true => Err(already_exists(name)),
            false => Ok(()),
        };
        is_there(&schema.name)?;
        let revision = aside(move || Revision::compiled(schema)).await?;
        let _alone = self.topology.write().await;
        is_there(&revision.schema.name)?;
        self.add_revision(SchemaRevisions::default(), revision)
            .await
    }

    pub(super) async fn commit_schema(
        self: Arc<Self>,
        request: wire::CommitSchemaRequest,
    ) -> Result<wire::Schema, Status> {
        let mut there = self.schema(&request.name)?;
        let wanted = request.schema.unwrap_or_default();
        if !wanted.name.is_empty() && wanted.name != request.name {
            return Err(invalid(
                "schema.name",
                &wanted.name,
                "it is not the name of the schema",
            ));
        }
        if wanted.r#type != there.last().schema.r#type {
            return Err(bad_argument(
                "schema.type, it is not the type of the schema",
            ));
        }
        let schema = wire::Schema {
            name: request.name,
            ..wanted
        };
        let mut revision = aside(move || Revision::compiled(schema)).await?;
        loop {
            let kept = Arc::clone(&there);
            revision = aside(move || kept.fitting(revision)).await?;
            let _alone = self.topology.write().await;
            let now = self.schema(&revision.schema.name)?;
            // What changed meanwhile is compared again.
            if Arc::ptr_eq(&now, &there) {
                return self.add_revision((*there).clone(), revision).await;
            }
            there = now;
        }
    }

    /// An older revision becomes the newest, under a new id. It is compatible with all that are kept: they were with it.
    pub(super) async fn rollback_schema(
        self: Arc<Self>,
        request: wire::RollbackSchemaRequest,
    ) -> Result<wire::Schema, Status> {
        let (name, id) = (&request.name, &request.revision_id);
        let schema = self.schema(name)?.find(name, id)?.schema.clone();
        let revision = aside(move || Revision::compiled(schema)).await?;
        let _alone = self.topology.write().await;
        let there = self.schema(name)?;
        there.find(name, id)?;
        self.add_revision((*there).clone(), revision).await
    }

    /// Writes one revision more; the caller holds the topology lock.
    async fn add_revision(
        &self,
        there: SchemaRevisions,
        mut revision: Revision,
    ) -> Result<wire::Schema, Status> {
        if there.revisions.len() >= REVISIONS_MAX {
            return Err(Status::failed_precondition(format!(
                "The schema has {REVISIONS_MAX} revisions: delete one first."
            )));
        }
        let mut batch = Batch::default();
        let schema = &mut revision.schema;
        schema.revision_id = revision_id(schema, self.number(&mut batch));
        schema.revision_create_time = Some(self.context.clock.now().timestamp());
        let shown = schema.clone();
        let there = there.with(revision);
        self.put_schema(&shown.name, there, batch).await?;
        Ok(shown)
    }

    async fn put_schema(
        &self,
        name: &str,
        there: SchemaRevisions,
        mut batch: Batch,
    ) -> Result<(), Status> {
        let kept = wire::StoredSchema {
            revisions: there.all().cloned().collect(),
            order: there.order.clone(),
        };
        batch.put(Table::Schemas, name.as_bytes(), kept.encode_to_vec());
        self.commit(batch).await?;
        self.names().schemas.insert(name.into(), Arc::new(there));
        Ok(())
    }

    pub(super) async fn delete_schema_revision(
        self: Arc<Self>,
        request: wire::DeleteSchemaRevisionRequest,
    ) -> Result<wire::Schema, Status> {
        let _alone = self.topology.write().await;
        let (name, id) = split_revision(&request.name);
        let id = id.unwrap_or(&request.revision_id);
        let there = self.schema(name)?;
        let gone = there.find(name, id)?;
        if there.revisions.len() == 1 {
            return Err(Status::failed_precondition(
                "The only revision of a schema cannot be deleted: delete the schema.",
            ));
        }
        let named = self.named_revisions(name);
        let left = there.without(id, |id| named.contains(id));
        self.put_schema(name, left, Batch::default()).await?;
        Ok(gone.schema.clone())
    }

    /// Its topics say that it is gone, and take no messages any more.
    pub(super) async fn delete_schema(
        self: Arc<Self>,
        request: wire::DeleteSchemaRequest,
    ) -> Result<(), Status> {
        let name = request.name;
        let _alone = self.topology.write().await;
        let there = self.schema(&name)?;
        let mut batch = Batch::default();
        batch.delete(Table::Schemas, name.as_bytes());
        Policies::delete(&mut batch, &name);
        let topics = self.topics_of(&name);
        let settled = topics.iter().map(|topic| {
            let state = topic.state();
            let mut settings = state.settings.clone();
            if let Some(settings) = &mut settings.schema_settings {
                there.shown_in(settings);
                settings.schema = DELETED_SCHEMA.into();
            }
            state.put_with(&mut batch, topic.number, &settings, state.backlog);
            settings
        });
        let settled: Vec<_> = settled.collect();
        self.commit(batch).await?;
        for (topic, settings) in topics.iter().zip(settled) {
            topic.state().settings = settings;
        }
        self.names().schemas.remove(&name);
        Ok(())
    }

    /// The topics of a schema.
    fn topics_of(&self, schema: &str) -> Vec<Arc<Topic>> {
        let topics: Vec<_> = self.names().topics.values().cloned().collect();
        let uses = |topic: &Arc<Topic>| {
            let state = topic.state();
            let settings = state.settings.schema_settings.as_ref();
            settings.is_some_and(|it| it.schema == schema)
        };
        topics.into_iter().filter(uses).collect()
    }

    /// The bounds of the topics of a schema.
    fn named_revisions(&self, schema: &str) -> HashSet<String> {
        let named = self.topics_of(schema).into_iter().flat_map(|topic| {
            let settings = topic.state().settings.schema_settings.clone();
            settings
                .into_iter()
                .flat_map(|it| [it.first_revision_id, it.last_revision_id])
        });
        named.collect()
    }

    /// A topic as it is shown.
    pub(super) fn shown_topic(&self, mut topic: wire::Topic) -> wire::Topic {
        if let Some(settings) = &mut topic.schema_settings
            && let Some(schema) = self.names().schemas.get(&settings.schema)
        {
            schema.shown_in(settings);
        }
        topic
    }

    pub(super) fn schema(&self, name: &str) -> Result<Arc<SchemaRevisions>, Status> {
        names::check("schema", name, "schemas")?;
        let schema = self.names().schemas.get(name).cloned();
        schema.ok_or_else(|| not_found(name))
    }

    /// Looks at what a topic is to say of its schema, and brings it into the form in which it is kept.
    pub(super) fn check_schema_settings(
        &self,
        topic: &mut wire::Topic,
        old: Option<&wire::SchemaSettings>,
    ) -> Result<(), Status> {
        let Some(settings) = &mut topic.schema_settings else {
            return Ok(());
        };
        if settings.encoding() == wire::Encoding::Unspecified {
            return Err(bad_argument(
                "schema_settings.encoding, it is JSON or BINARY",
            ));
        }
        let schema = self.schema(&settings.schema)?;
        schema.meant_by(settings, old)?;
        schema.allowed(settings).map(drop)
    }
}
