//! Schemas as they are shown, and what is checked by them.

use super::revisions::{Revision, SchemaRevisions, bad_message, compiled, shown, split_revision};
use crate::clock::Time;
use crate::proto::pubsub as wire;
use crate::proto::pubsub::validate_message_request::SchemaSpec;
use crate::pubsub::errors::bad_argument;
use crate::pubsub::names;
use crate::pubsub::registry::Registry;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::Status;

// === impl Registry ===

impl Registry {
    pub(in crate::pubsub) fn get_schema(
        &self,
        request: &wire::GetSchemaRequest,
    ) -> Result<wire::Schema, Status> {
        let (name, id) = split_revision(&request.name);
        let there = self.schema(name)?;
        let revision = match id {
            Some(id) => there.find(name, id)?,
            None => Arc::clone(there.last()),
        };
        let full = request.view() != wire::SchemaView::Basic;
        Ok(shown(&revision.schema, full))
    }

    pub(in crate::pubsub) fn list_schemas(
        &self,
        request: &wire::ListSchemasRequest,
    ) -> Result<wire::ListSchemasResponse, Status> {
        let prefix = names::in_project(&request.parent)?;
        let full = request.view() == wire::SchemaView::Full;
        let show = |it: &Arc<SchemaRevisions>| Some(shown(&it.last().schema, full));
        let (size, token) = (request.page_size, &request.page_token);
        let (schemas, next_page_token) =
            names::page(&self.names().schemas, &prefix, size, token, show)?;
        Ok(wire::ListSchemasResponse {
            schemas,
            next_page_token,
        })
    }

    /// The newest first.
    pub(in crate::pubsub) fn list_schema_revisions(
        &self,
        request: &wire::ListSchemaRevisionsRequest,
    ) -> Result<wire::ListSchemaRevisionsResponse, Status> {
        let there = self.schema(&request.name)?;
        let full = request.view() == wire::SchemaView::Full;
        // By when they were made, so that a page goes on where the last one ended whatever is committed in between.
        let newest_first = there.revisions.iter().map(|it| {
            let made = it.schema.revision_create_time.as_ref().map(Time::of);
            let age = i64::MAX - made.unwrap_or_default().0;
            let id = &it.schema.revision_id;
            (format!("{}@{age:019}@{id}", request.name), Arc::clone(it))
        });
        let all: BTreeMap<_, _> = newest_first.collect();
        let show = |it: &Arc<Revision>| Some(shown(&it.schema, full));
        let (size, token) = (request.page_size, &request.page_token);
        let (schemas, next_page_token) = names::page(&all, "projects/", size, token, show)?;
        Ok(wire::ListSchemaRevisionsResponse {
            schemas,
            next_page_token,
        })
    }

    pub(in crate::pubsub) fn validate_schema(
        &self,
        request: &wire::ValidateSchemaRequest,
    ) -> Result<wire::ValidateSchemaResponse, Status> {
        names::in_project(&request.parent)?;
        compiled(&request.schema.clone().unwrap_or_default())?;
        Ok(wire::ValidateSchemaResponse {})
    }

    pub(in crate::pubsub) fn validate_message(
        &self,
        request: &wire::ValidateMessageRequest,
    ) -> Result<wire::ValidateMessageResponse, Status> {
        names::in_project(&request.parent)?;
        let (data, encoding) = (&request.message, request.encoding());
        let checked = match &request.schema_spec {
            Some(SchemaSpec::Schema(schema)) => compiled(schema)?.check(data, encoding),
            Some(SchemaSpec::Name(name)) => {
                let (name, id) = split_revision(name);
                let there = self.schema(name)?;
                let revision = match id {
                    Some(id) => there.find(name, id)?,
                    None => Arc::clone(there.last()),
                };
                revision.definition.check(data, encoding)
            }
            None => return Err(bad_argument("schema_spec, it is a name or a schema")),
        };
        checked.map_err(|why| bad_message(&why))?;
        Ok(wire::ValidateMessageResponse {})
    }

    /// Every schema with its revisions and topics.
    pub(in crate::pubsub) fn schemas_shown(&self) -> Vec<Value> {
        let schemas = self.names().schemas.clone();
        let shown = schemas.iter().map(|(name, schema)| {
            let topics = self.topics_of(name);
            let topics = topics.iter().map(|it| it.state().settings.name.clone());
            let revisions = schema.all().map(|it| {
                let created = it.revision_create_time.as_ref().map(Time::of);
                json!({
                    "id": it.revision_id,
                    "created_us": created.unwrap_or_default().0,
                    "definition": it.definition,
                })
            });
            json!({
                "name": name,
                "type": schema.last().schema.r#type().as_str_name(),
                "revisions": revisions.collect::<Vec<_>>(),
                "topics": topics.collect::<Vec<_>>(),
            })
        });
        shown.collect()
    }
}
