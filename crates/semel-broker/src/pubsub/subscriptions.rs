//! Subscriptions: made, shown, changed, detached, deleted.

use super::errors::already_exists;
use super::names;
use super::registry::Registry;
use super::resources::Subscription;
use super::update;
use super::validate;
use crate::policies::Policies;
use crate::proto::pubsub as wire;
use crate::storage::{Batch, Table};
use std::collections::HashMap;
use std::sync::Arc;
use tonic::Status;

// === impl Registry ===

impl Registry {
    pub(crate) async fn create_subscription(
        self: Arc<Self>,
        mut settings: wire::Subscription,
    ) -> Result<wire::Subscription, Status> {
        names::check("name", &settings.name, "subscriptions")?;
        validate::check_labels(&settings.labels, &HashMap::new())?;
        validate::complete(&mut settings)?;
        settings.detached = false;
        let _alone = self.topology.write().await;
        let topic = self.topic(&settings.topic)?;
        if self.names().subscriptions.contains_key(&settings.name) {
            return Err(already_exists(&settings.name));
        }
        settings.topic_message_retention_duration =
            topic.state().settings.message_retention_duration;
        let mut batch = Batch::default();
        let kept = wire::StoredSubscription {
            subscription: Some(settings.clone()),
            backlog: self.number(&mut batch),
            topic_number: topic.number,
        };
        let number = kept.backlog;
        let subscription = Arc::new(Subscription::kept(&self.context, kept)?);
        subscription.put(&mut batch, &settings, number);
        self.commit(batch).await?;
        topic.state().subscriptions.push(Arc::clone(&subscription));
        let name = settings.name.clone();
        self.names()
            .subscriptions
            .insert(name, Arc::clone(&subscription));
        self.start_worker(subscription);
        Ok(self.shown(settings))
    }

    pub(crate) fn get_subscription(
        &self,
        request: &wire::GetSubscriptionRequest,
    ) -> Result<wire::Subscription, Status> {
        let subscription = self.subscription(&request.subscription)?;
        let settings = subscription.state().settings.clone();
        Ok(self.shown(settings))
    }

    pub(super) fn list_subscriptions(
        &self,
        request: &wire::ListSubscriptionsRequest,
    ) -> Result<wire::ListSubscriptionsResponse, Status> {
        let prefix = names::in_project(&request.project)?;
        let show = |it: &Arc<Subscription>| Some(it.state().settings.clone());
        let (size, token) = (request.page_size, &request.page_token);
        let (found, next_page_token) =
            names::page(&self.names().subscriptions, &prefix, size, token, show)?;
        let subscriptions = found.into_iter().map(|settings| self.shown(settings));
        Ok(wire::ListSubscriptionsResponse {
            subscriptions: subscriptions.collect(),
            next_page_token,
        })
    }

    pub(crate) async fn update_subscription(
        self: Arc<Self>,
        request: wire::UpdateSubscriptionRequest,
    ) -> Result<wire::Subscription, Status> {
        let wanted = request.subscription.unwrap_or_default();
        let _alone = self.topology.write().await;
        let subscription = self.subscription(&wanted.name)?;
        let old = subscription.state().settings.clone();
        let mask = request.update_mask.as_ref();
        let mut settings = update::SUBSCRIPTION.merged(&old, &wanted, mask)?;
        validate::check_labels(&settings.labels, &old.labels)?;
        validate::complete(&mut settings)?;
        self.change(&subscription, settings).await
    }

    pub(super) async fn modify_push_config(
        self: Arc<Self>,
        request: wire::ModifyPushConfigRequest,
    ) -> Result<(), Status> {
        let _alone = self.topology.write().await;
        let subscription = self.subscription(&request.subscription)?;
        let mut settings = subscription.state().settings.clone();
        settings.push_config = request.push_config;
        validate::complete(&mut settings)?;
        self.change(&subscription, settings).await?;
        Ok(())
    }

    async fn change(
        &self,
        subscription: &Subscription,
        settings: wire::Subscription,
    ) -> Result<wire::Subscription, Status> {
        let mut batch = Batch::default();
        let number = subscription.state().number;
        subscription.put(&mut batch, &settings, number);
        self.commit(batch).await?;
        {
            let mut state = subscription.state();
            state.backlog.set_policy(validate::policy(&settings));
            state.settings = settings.clone();
        }
        self.notify(subscription);
        Ok(self.shown(settings))
    }

    pub(super) async fn delete_subscription(
        self: Arc<Self>,
        request: wire::DeleteSubscriptionRequest,
    ) -> Result<(), Status> {
        let name = request.subscription;
        let _alone = self.topology.write().await;
        let subscription = self.subscription(&name)?;
        let mut batch = Batch::default();
        batch.delete(Table::Subscriptions, name.as_bytes());
        Policies::delete(&mut batch, &name);
        let number = subscription.state().number;
        self.clear(&mut batch, number)?;
        self.commit(batch).await?;
        self.names().subscriptions.remove(&name);
        self.leave_topic(&subscription);
        self.end(&subscription);
        Ok(())
    }

    /// The subscription stays, without messages and without a way to get any.
    pub(super) async fn detach_subscription(
        self: Arc<Self>,
        request: wire::DetachSubscriptionRequest,
    ) -> Result<wire::DetachSubscriptionResponse, Status> {
        let _alone = self.topology.write().await;
        let subscription = self.subscription(&request.subscription)?;
        let (mut settings, number) = {
            let state = subscription.state();
            (state.settings.clone(), state.number)
        };
        settings.detached = true;
        let mut batch = Batch::default();
        subscription.put(&mut batch, &settings, number);
        self.clear(&mut batch, number)?;
        self.commit(batch).await?;
        self.leave_topic(&subscription);
        {
            let mut state = subscription.state();
            self.abandon(&mut state);
            state.settings = settings;
        }
        self.notify(&subscription);
        Ok(wire::DetachSubscriptionResponse {})
    }

    fn leave_topic(&self, subscription: &Arc<Subscription>) {
        let topic = subscription.state().settings.topic.clone();
        let topic = self.names().topics.get(&topic).cloned();
        if let Some(topic) = topic {
            let stays = |it: &Arc<Subscription>| !Arc::ptr_eq(it, subscription);
            topic.state().subscriptions.retain(stays);
        }
    }

    /// With what only the topic knows.
    fn shown(&self, mut settings: wire::Subscription) -> wire::Subscription {
        let topic = self.names().topics.get(&settings.topic).cloned();
        settings.topic_message_retention_duration =
            topic.and_then(|topic| topic.state().settings.message_retention_duration);
        settings
    }
}
