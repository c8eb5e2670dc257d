//! What a client of Cloud Tasks and Pub/Sub sends, over gRPC: only the fields that are used here.

use std::collections::HashMap;

use anyhow::Context;
use bytes::Bytes;
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// A connection to a broker.
#[derive(Debug, Clone)]
pub(crate) struct Client(Channel);

#[derive(Clone, PartialEq, Message)]
struct CreateQueue {
    #[prost(string, tag = "1")]
    parent: String,
    #[prost(message, tag = "2")]
    queue: Option<Named>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Named {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CreateTask {
    #[prost(string, tag = "1")]
    parent: String,
    #[prost(message, tag = "2")]
    task: Option<Task>,
}

#[derive(Clone, PartialEq, Message)]
struct Task {
    #[prost(message, tag = "3")]
    http_request: Option<HttpRequest>,
    #[prost(message, tag = "4")]
    schedule_time: Option<prost_types::Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
struct HttpRequest {
    #[prost(string, tag = "1")]
    url: String,
    #[prost(map = "string, string", tag = "3")]
    headers: HashMap<String, String>,
    #[prost(bytes, tag = "4")]
    body: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Subscription {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) topic: String,
    #[prost(message, tag = "4")]
    pub(crate) push: Option<Push>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Push {
    #[prost(string, tag = "1")]
    pub(crate) endpoint: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Publish {
    #[prost(string, tag = "1")]
    pub(crate) topic: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) messages: Vec<PubsubMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PubsubMessage {
    #[prost(bytes, tag = "1")]
    pub(crate) data: Bytes,
}

/// An answer nobody reads.
#[derive(Clone, PartialEq, Message)]
struct Unread {}

// === impl Client ===

impl Client {
    pub(crate) async fn connect(port: u16) -> anyhow::Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?;
        let channel = endpoint.tcp_nodelay(true).connect().await;
        Ok(Self(channel.context("cannot connect to the broker")?))
    }

    pub(crate) async fn create_queue(&self, parent: &str, name: String) -> anyhow::Result<()> {
        let queue = CreateQueue {
            parent: parent.to_owned(),
            queue: Some(Named { name }),
        };
        self.tasks("CreateQueue", queue).await
    }

    /// One call of Cloud Tasks.
    pub(crate) async fn tasks<M: Message + 'static>(
        &self,
        method: &str,
        message: M,
    ) -> anyhow::Result<()> {
        let path = format!("/google.cloud.tasks.v2.CloudTasks/{method}");
        self.call(&path, message).await
    }

    /// One call of Pub/Sub.
    pub(crate) async fn pubsub<M: Message + 'static>(
        &self,
        method: &str,
        message: M,
    ) -> anyhow::Result<()> {
        self.call(&format!("/google.pubsub.v1.{method}"), message)
            .await
    }

    async fn call<M: Message + 'static>(&self, path: &str, message: M) -> anyhow::Result<()> {
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await.context("the broker is gone")?;
        let path: PathAndQuery = path.parse()?;
        let codec = ProstCodec::<M, Unread>::default();
        let answer = grpc.unary(tonic::Request::new(message), path.clone(), codec);
        answer
            .await
            .with_context(|| format!("the broker refused {path}"))?;
        Ok(())
    }
}

// === impl CreateTask ===

impl CreateTask {
    /// A task that sends this when it is dispatched.
    pub(crate) fn http(
        queue: String,
        url: String,
        headers: HashMap<String, String>,
        body: Bytes,
    ) -> Self {
        let http_request = Some(HttpRequest { url, headers, body });
        Self {
            parent: queue,
            task: Some(Task {
                http_request,
                schedule_time: None,
            }),
        }
    }

    /// The same, not before this second.
    pub(crate) fn scheduled(mut self, seconds: i64) -> Self {
        if let Some(task) = &mut self.task {
            task.schedule_time = Some(prost_types::Timestamp { seconds, nanos: 0 });
        }
        self
    }
}
