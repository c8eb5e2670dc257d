//! The Publisher service: each call by its name.

use super::PubSub;
use super::registry::Registry;
use crate::proto::pubsub as wire;
use crate::proto::pubsub::publisher_server::Publisher;
use std::sync::Arc;
use tonic::{Request, Response, Status};

// === impl PubSub ===

impl PubSub {
    /// Does something to the end, even if the client hangs up.
    pub(super) async fn finish<T, F>(
        &self,
        work: impl FnOnce(Arc<Registry>) -> F,
    ) -> Result<Response<T>, Status>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Status>> + Send + 'static,
    {
        let work = work(Arc::clone(&self.registry));
        let done = tokio::spawn(work).await;
        let broken = |_| {
            Err(Status::internal(
                "The call did not finish; what it did is unknown.",
            ))
        };
        done.unwrap_or_else(broken).map(Response::new)
    }
}

#[async_trait::async_trait]
impl Publisher for PubSub {
    async fn create_topic(
        &self,
        request: Request<wire::Topic>,
    ) -> Result<Response<wire::Topic>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.create_topic(request)).await
    }

    async fn update_topic(
        &self,
        request: Request<wire::UpdateTopicRequest>,
    ) -> Result<Response<wire::Topic>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.update_topic(request)).await
    }

    async fn publish(
        &self,
        request: Request<wire::PublishRequest>,
    ) -> Result<Response<wire::PublishResponse>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.publish(request)).await
    }

    async fn get_topic(
        &self,
        request: Request<wire::GetTopicRequest>,
    ) -> Result<Response<wire::Topic>, Status> {
        let found = self.registry.get_topic(&request.get_ref().topic);
        found.map(Response::new)
    }

    async fn list_topics(
        &self,
        request: Request<wire::ListTopicsRequest>,
    ) -> Result<Response<wire::ListTopicsResponse>, Status> {
        self.registry
            .list_topics(request.get_ref())
            .map(Response::new)
    }

    async fn list_topic_subscriptions(
        &self,
        request: Request<wire::ListTopicSubscriptionsRequest>,
    ) -> Result<Response<wire::ListTopicSubscriptionsResponse>, Status> {
        let found = self.registry.list_topic_subscriptions(request.get_ref());
        found.map(Response::new)
    }

    async fn list_topic_snapshots(
        &self,
        request: Request<wire::ListTopicSnapshotsRequest>,
    ) -> Result<Response<wire::ListTopicSnapshotsResponse>, Status> {
        let found = self.registry.list_topic_snapshots(request.get_ref());
        found.map(Response::new)
    }

    async fn delete_topic(
        &self,
        request: Request<wire::DeleteTopicRequest>,
    ) -> Result<Response<()>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.delete_topic(request.topic))
            .await
    }

    async fn detach_subscription(
        &self,
        request: Request<wire::DetachSubscriptionRequest>,
    ) -> Result<Response<wire::DetachSubscriptionResponse>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.detach(request.subscription))
            .await?;
        Ok(Response::new(wire::DetachSubscriptionResponse {}))
    }
}
