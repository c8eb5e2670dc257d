//! The methods of Pub/Sub.

use super::PubSub;
use super::registry::Registry;
use super::stream;
use crate::admin::Service;
use crate::methods::Methods;
use crate::storage::{StorageError, Table};
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;

// === impl PubSub ===

impl PubSub {
    /// The methods of the Publisher, of the Subscriber, of schemas and of policies; those that are asked for most come first.
    pub(crate) fn methods(&self) -> [Methods<Registry>; 4] {
        let refusals = &self.registry.context.refusals;
        let publisher = Methods::new("google.pubsub.v1.Publisher", &self.registry, refusals)
            .change("Publish", Registry::publish)
            .change("CreateTopic", Registry::create_topic)
            .immediate("GetTopic", Registry::get_topic)
            .change("UpdateTopic", Registry::update_topic)
            .change("DeleteTopic", Registry::delete_topic)
            .immediate("ListTopics", Registry::list_topics)
            .immediate("ListTopicSubscriptions", Registry::list_topic_subscriptions)
            .immediate("ListTopicSnapshots", Registry::list_topic_snapshots)
            .change("DetachSubscription", Registry::detach_subscription);
        let subscriber = Methods::new("google.pubsub.v1.Subscriber", &self.registry, refusals)
            .wait("Pull", Registry::pull)
            .stream("StreamingPull", stream::open)
            .change("Acknowledge", Registry::acknowledge)
            .immediate("ModifyAckDeadline", Registry::modify_ack_deadline)
            .change("CreateSubscription", Registry::create_subscription)
            .immediate("GetSubscription", Registry::get_subscription)
            .change("UpdateSubscription", Registry::update_subscription)
            .change("DeleteSubscription", Registry::delete_subscription)
            .immediate("ListSubscriptions", Registry::list_subscriptions)
            .change("ModifyPushConfig", Registry::modify_push_config)
            .change("Seek", Registry::seek)
            .change("CreateSnapshot", Registry::create_snapshot)
            .immediate("GetSnapshot", Registry::get_snapshot)
            .change("UpdateSnapshot", Registry::update_snapshot)
            .change("DeleteSnapshot", Registry::delete_snapshot)
            .immediate("ListSnapshots", Registry::list_snapshots);
        let policies = Methods::new("google.iam.v1.IAMPolicy", &self.registry, refusals)
            .immediate("GetIamPolicy", Registry::get_iam_policy)
            .change("SetIamPolicy", Registry::set_iam_policy)
            .immediate("TestIamPermissions", Registry::test_iam_permissions);
        let schemas = Methods::new("google.pubsub.v1.SchemaService", &self.registry, refusals)
            .change("CreateSchema", Registry::create_schema)
            .immediate("GetSchema", Registry::get_schema)
            .immediate("ListSchemas", Registry::list_schemas)
            .immediate("ListSchemaRevisions", Registry::list_schema_revisions)
            .change("CommitSchema", Registry::commit_schema)
            .change("RollbackSchema", Registry::rollback_schema)
            .change("DeleteSchemaRevision", Registry::delete_schema_revision)
            .change("DeleteSchema", Registry::delete_schema)
            .immediate("ValidateSchema", Registry::validate_schema)
            .immediate("ValidateMessage", Registry::validate_message);
        [publisher, subscriber, schemas, policies]
    }
}

#[async_trait]
impl Service for PubSub {
    fn counts(&self) -> Vec<(&'static str, usize)> {
        let tables = [
            ("topics", Table::Topics),
            ("subscriptions", Table::Subscriptions),
            ("snapshots", Table::Snapshots),
            ("schemas", Table::Schemas),
        ];
        let storage = &self.registry.context.storage;
        tables
            .map(|(name, table)| (name, storage.count(table)))
            .into()
    }

    fn schemas(&self) -> Vec<Value> {
        self.registry.schemas_shown()
    }

    /// The full names of subscriptions with anything undelivered or unacknowledged: those that push, and on request
    /// those that are pulled from.
    fn busy(&self, pull: bool, limit: usize) -> Vec<String> {
        let mut busy = self.registry.busy(pull);
        busy.truncate(limit);
        busy
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.registry.changed.subscribe()
    }

    async fn reset(&self) -> Result<(), StorageError> {
        self.registry.reset().await
    }
}
