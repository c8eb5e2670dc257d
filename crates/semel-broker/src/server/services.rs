//! Everything a broker serves, put together.

use super::{MESSAGE_BYTES_MAX, StartError};
use crate::admin::{self, Guard};
use crate::context::Context;
use crate::declared::{Declared, NotApplied};
use crate::faults::Faults;
use crate::issuer;
use crate::proto::pubsub::publisher_server::{Publisher, PublisherServer};
use crate::proto::pubsub::subscriber_server::{Subscriber, SubscriberServer};
use crate::proto::tasks::Task;
use crate::proto::tasks::cloud_tasks_server::{CloudTasks, CloudTasksServer};
use crate::pubsub::PubSub;
use crate::rest::{self, Buffer};
use crate::storage::{Storage, StorageError};
use crate::tasks::Tasks;
use crate::{Keep, Settings};
use async_trait::async_trait;
use axum::Router;
use bytes::Bytes;
use http::{HeaderMap, Method};
use std::net::SocketAddr;
use std::sync::Arc;
use tonic::Status;
use tonic::service::Routes;

/// Both services and what they stand on.
#[derive(Debug)]
pub(super) struct Services {
    pub(super) context: Arc<Context>,
    pub(super) tasks: Arc<Tasks>,
    pub(super) pubsub: Arc<PubSub>,
    pub(super) declared: Declared,
    guard: Guard,
}

// === impl Services ===

impl Services {
    /// Opens what was kept; deliveries begin.
    pub(super) fn open(settings: &Settings, address: SocketAddr) -> Result<Self, StartError> {
        let storage = match &settings.keep {
            Keep::Directory(directory) => Storage::open(directory)?,
            Keep::Memory => Storage::in_memory(),
        };
        let faults = Faults::new(settings.seed, settings.faults.clone());
        let issuer = format!("http://{address}");
        let context = Context::open(storage, issuer, faults, settings.history_max)?;
        let context = Arc::new(context);
        let tasks = Tasks::open(Arc::clone(&context), settings.functions_url.clone())?;
        let pubsub = PubSub::open(Arc::clone(&context))?;
        let loopback_only = address.ip().to_canonical().is_loopback();
        Ok(Self {
            guard: Guard::new(settings.admin_token.as_deref(), loopback_only),
            context,
            tasks: Arc::new(tasks),
            pubsub: Arc::new(pubsub),
            declared: settings.declared.clone(),
        })
    }

    /// Makes what is declared so.
    pub(super) async fn declare(&self) -> Result<(), NotApplied> {
        self.declared.apply(&*self.tasks, &*self.pubsub).await
    }

    pub(super) fn router(&self) -> Router {
        let admin = super::admin::build(self, self.guard.clone());
        router(&self.tasks, &self.pubsub)
            .merge(admin::routes(admin))
            .merge(issuer::routes(Arc::clone(&self.context)))
    }
}

#[async_trait]
impl Buffer for Tasks {
    async fn buffer(
        &self,
        queue: &str,
        task_id: Option<&str>,
        method: &Method,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Task, Status> {
        Self::buffer(self, queue, task_id, method.clone(), headers, body).await
    }
}

/// gRPC by its paths, REST for all others.
pub(super) fn router<T, P>(tasks: &Arc<T>, pubsub: &Arc<P>) -> Router
where
    T: CloudTasks + Buffer,
    P: Publisher + Subscriber,
{
    let (publisher, subscriber) = (Arc::clone(pubsub), Arc::clone(pubsub));
    let tasks_server = CloudTasksServer::from_arc(Arc::clone(tasks));
    let publisher = PublisherServer::from_arc(publisher);
    let subscriber = SubscriberServer::from_arc(subscriber);
    let grpc = Routes::new(tasks_server.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(publisher.max_decoding_message_size(MESSAGE_BYTES_MAX))
        .add_service(subscriber.max_decoding_message_size(MESSAGE_BYTES_MAX));
    let grpc = grpc.into_axum_router().reset_fallback();
    rest::router(tasks, pubsub).merge(grpc)
}

impl From<StorageError> for StartError {
    fn from(error: StorageError) -> Self {
        Self::Keep(error.to_string())
    }
}

impl From<NotApplied> for StartError {
    fn from(error: NotApplied) -> Self {
        Self::Declared(error.to_string())
    }
}
