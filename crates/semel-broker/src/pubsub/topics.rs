//! Topics: made, shown, changed, deleted.

use super::errors::already_exists;
use super::names::{self, DELETED_TOPIC};
use super::registry::Registry;
use super::resources::Topic;
use super::{rows, update, validate};
use crate::clock::Time;
use crate::policies::Policies;
use crate::proto::pubsub as wire;
use crate::storage::{Batch, Table};
use std::collections::HashMap;
use std::sync::Arc;
use tonic::Status;

// === impl Registry ===

impl Registry {
    pub(crate) async fn create_topic(
        self: Arc<Self>,
        mut settings: wire::Topic,
    ) -> Result<wire::Topic, Status> {
        names::check("name", &settings.name, "topics")?;
        validate::check_labels(&settings.labels, &HashMap::new())?;
        validate::complete_topic(&mut settings)?;
        let _alone = self.topology.write().await;
        self.check_schema_settings(&mut settings, None)?;
        if self.names().topics.contains_key(&settings.name) {
            return Err(already_exists(&settings.name));
        }
        let mut batch = Batch::default();
        let number = self.number(&mut batch);
        let retains = settings.message_retention_duration.is_some();
        let topic = Topic::kept(wire::StoredTopic {
            topic: Some(settings.clone()),
            number,
            reserved: 0,
            backlog: if retains { self.number(&mut batch) } else { 0 },
        });
        topic.state().put(&mut batch, number, 0);
        self.commit(batch).await?;
        let name = settings.name.clone();
        self.names().topics.insert(name, Arc::new(topic));
        Ok(settings)
    }

    pub(super) fn get_topic(&self, request: &wire::GetTopicRequest) -> Result<wire::Topic, Status> {
        let topic = self.topic(&request.topic)?;
        let settings = topic.state().settings.clone();
        Ok(self.shown_topic(settings))
    }

    pub(super) fn list_topics(
        &self,
        request: &wire::ListTopicsRequest,
    ) -> Result<wire::ListTopicsResponse, Status> {
        let prefix = names::in_project(&request.project)?;
        let show = |topic: &Arc<Topic>| Some(topic.state().settings.clone());
        let (size, token) = (request.page_size, &request.page_token);
        let (topics, next_page_token) =
            names::page(&self.names().topics, &prefix, size, token, show)?;
        let topics = topics.into_iter().map(|it| self.shown_topic(it));
        Ok(wire::ListTopicsResponse {
            topics: topics.collect(),
            next_page_token,
        })
    }

    pub(super) async fn update_topic(
        self: Arc<Self>,
        request: wire::UpdateTopicRequest,
    ) -> Result<wire::Topic, Status> {
        let wanted = request.topic.unwrap_or_default();
        let _alone = self.topology.write().await;
        let topic = self.topic(&wanted.name)?;
        let old = topic.state().settings.clone();
        let mut settings = update::TOPIC.merged(&old, &wanted, request.update_mask.as_ref())?;
        validate::check_labels(&settings.labels, &old.labels)?;
        validate::complete_topic(&mut settings)?;
        // What was there may have been deleted since: it is looked at only when it changes.
        if settings.schema_settings != old.schema_settings {
            self.check_schema_settings(&mut settings, old.schema_settings.as_ref())?;
        }
        let mut batch = Batch::default();
        let mut backlog = topic.state().backlog;
        match (settings.message_retention_duration.is_some(), backlog) {
            (true, None) => backlog = Some(self.number(&mut batch)),
            (false, Some(number)) => {
                self.clear(&mut batch, number)?;
                backlog = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
        topic
            .state()
            .put_with(&mut batch, topic.number, &settings, backlog);
        let subscriptions = topic.state().subscriptions.clone();
        let retention = settings.message_retention_duration;
        for subscription in &subscriptions {
            let state = subscription.state();
            let settings = wire::Subscription {
                topic_message_retention_duration: retention,
                ..state.settings.clone()
            };
            subscription.put(&mut batch, &settings, state.number);
        }
        self.commit(batch).await?;
        {
            let mut state = topic.state();
            state.settings = settings.clone();
            state.backlog = backlog;
            state.sweep_at = Time::default();
        }
        for subscription in &subscriptions {
            let mut state = subscription.state();
            state.settings.topic_message_retention_duration = retention;
            let policy = validate::policy(&state.settings);
            state.backlog.set_policy(policy);
            drop(state);
            self.notify(subscription);
        }
        Ok(self.shown_topic(settings))
    }

    /// The topic goes; its subscriptions keep what they have.
    pub(super) async fn delete_topic(
        self: Arc<Self>,
        request: wire::DeleteTopicRequest,
    ) -> Result<(), Status> {
        let name = request.topic;
        let _alone = self.topology.write().await;
        let topic = self.topic(&name)?;
        let mut batch = Batch::default();
        batch.delete(Table::Topics, name.as_bytes());
        Policies::delete(&mut batch, &name);
        let (subscriptions, snapshots, backlog) = {
            let state = topic.state();
            let (subscriptions, snapshots) = (&state.subscriptions, &state.snapshots);
            (subscriptions.clone(), snapshots.clone(), state.backlog)
        };
        if let Some(number) = backlog {
            self.clear(&mut batch, number)?;
        }
        for subscription in &subscriptions {
            let mut state = subscription.state();
            state.settings.topic = DELETED_TOPIC.into();
            subscription.put(&mut batch, &state.settings, state.number);
        }
        for snapshot in &snapshots {
            snapshot.settings().topic = DELETED_TOPIC.into();
            snapshot.put(&mut batch);
        }
        self.commit(batch).await?;
        self.names().topics.remove(&name);
        Ok(())
    }

    pub(super) fn list_topic_subscriptions(
        &self,
        request: &wire::ListTopicSubscriptionsRequest,
    ) -> Result<wire::ListTopicSubscriptionsResponse, Status> {
        let topic = self.topic(&request.topic)?;
        let all = topic.state().subscriptions.clone();
        let all = all.into_iter().map(|it| (it.name.clone(), it.name.clone()));
        let all = all.collect();
        let (size, token) = (request.page_size, &request.page_token);
        let (subscriptions, next_page_token) =
            names::page(&all, "projects/", size, token, |name| Some(name.clone()))?;
        Ok(wire::ListTopicSubscriptionsResponse {
            subscriptions,
            next_page_token,
        })
    }

    /// Takes all messages of a backlog away.
    pub(super) fn clear(&self, batch: &mut Batch, number: u64) -> Result<(), Status> {
        let storage = &self.context.storage;
        let prefix = number.to_be_bytes();
        Ok(rows::delete_all(batch, storage, Table::Messages, &prefix)?)
    }
}
