//! The Subscriber service: each call by its name.

use super::PubSub;
use super::stream;
use crate::proto::pubsub as wire;
use crate::proto::pubsub::subscriber_server::Subscriber;
use std::sync::Arc;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

#[async_trait::async_trait]
impl Subscriber for PubSub {
    async fn create_subscription(
        &self,
        request: Request<wire::Subscription>,
    ) -> Result<Response<wire::Subscription>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.create_subscription(request))
            .await
    }

    async fn get_subscription(
        &self,
        request: Request<wire::GetSubscriptionRequest>,
    ) -> Result<Response<wire::Subscription>, Status> {
        let found = self
            .registry
            .get_subscription(&request.get_ref().subscription);
        found.map(Response::new)
    }

    async fn update_subscription(
        &self,
        request: Request<wire::UpdateSubscriptionRequest>,
    ) -> Result<Response<wire::Subscription>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.update_subscription(request))
            .await
    }

    async fn list_subscriptions(
        &self,
        request: Request<wire::ListSubscriptionsRequest>,
    ) -> Result<Response<wire::ListSubscriptionsResponse>, Status> {
        let found = self.registry.list_subscriptions(request.get_ref());
        found.map(Response::new)
    }

    async fn delete_subscription(
        &self,
        request: Request<wire::DeleteSubscriptionRequest>,
    ) -> Result<Response<()>, Status> {
        let name = request.into_inner().subscription;
        self.finish(|registry| registry.delete_subscription(name))
            .await
    }

    async fn modify_ack_deadline(
        &self,
        request: Request<wire::ModifyAckDeadlineRequest>,
    ) -> Result<Response<()>, Status> {
        let done = self.registry.modify_ack_deadline(request.get_ref());
        done.map(Response::new)
    }

    async fn acknowledge(
        &self,
        request: Request<wire::AcknowledgeRequest>,
    ) -> Result<Response<()>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.acknowledge(request)).await
    }

    async fn pull(
        &self,
        request: Request<wire::PullRequest>,
    ) -> Result<Response<wire::PullResponse>, Status> {
        let registry = Arc::clone(&self.registry);
        registry.pull(request.into_inner()).await.map(Response::new)
    }

    async fn streaming_pull(
        &self,
        request: Request<Streaming<wire::StreamingPullRequest>>,
    ) -> Result<Response<BoxStream<wire::StreamingPullResponse>>, Status> {
        let registry = Arc::clone(&self.registry);
        let responses = stream::open(registry, request.into_inner()).await?;
        Ok(Response::new(Box::pin(responses)))
    }

    async fn modify_push_config(
        &self,
        request: Request<wire::ModifyPushConfigRequest>,
    ) -> Result<Response<()>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.modify_push_config(request))
            .await
    }

    async fn get_snapshot(
        &self,
        request: Request<wire::GetSnapshotRequest>,
    ) -> Result<Response<wire::Snapshot>, Status> {
        let found = self.registry.get_snapshot(&request.get_ref().snapshot);
        found.map(Response::new)
    }

    async fn list_snapshots(
        &self,
        request: Request<wire::ListSnapshotsRequest>,
    ) -> Result<Response<wire::ListSnapshotsResponse>, Status> {
        let found = self.registry.list_snapshots(request.get_ref());
        found.map(Response::new)
    }

    async fn create_snapshot(
        &self,
        request: Request<wire::CreateSnapshotRequest>,
    ) -> Result<Response<wire::Snapshot>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.create_snapshot(request))
            .await
    }

    async fn update_snapshot(
        &self,
        request: Request<wire::UpdateSnapshotRequest>,
    ) -> Result<Response<wire::Snapshot>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.update_snapshot(request))
            .await
    }

    async fn delete_snapshot(
        &self,
        request: Request<wire::DeleteSnapshotRequest>,
    ) -> Result<Response<()>, Status> {
        let name = request.into_inner().snapshot;
        self.finish(|registry| registry.delete_snapshot(name)).await
    }

    async fn seek(
        &self,
        request: Request<wire::SeekRequest>,
    ) -> Result<Response<wire::SeekResponse>, Status> {
        let request = request.into_inner();
        self.finish(|registry| registry.seek(request)).await?;
        Ok(Response::new(wire::SeekResponse {}))
    }
}
