//! What a client of Cloud Tasks and Pub/Sub sends, over gRPC: only the fields that are used here.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use bytes::Bytes;
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use super::AT_ONCE;

/// A connection to a broker.
#[derive(Debug, Clone)]
pub(crate) struct Client(Channel);

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CreateQueue {
    #[prost(string, tag = "1")]
    pub(crate) parent: String,
    #[prost(message, tag = "2")]
    pub(crate) queue: Option<Named>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Named {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CreateTask {
    #[prost(string, tag = "1")]
    pub(crate) parent: String,
    #[prost(message, tag = "2")]
    pub(crate) task: Option<Task>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Task {
    #[prost(message, tag = "3")]
    pub(crate) http_request: Option<HttpRequest>,
    #[prost(message, tag = "4")]
    pub(crate) schedule_time: Option<prost_types::Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpRequest {
    #[prost(string, tag = "1")]
    pub(crate) url: String,
    #[prost(map = "string, string", tag = "3")]
    pub(crate) headers: HashMap<String, String>,
    #[prost(bytes, tag = "4")]
    pub(crate) body: Bytes,
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

/// Does something `count` times, so many at once; each is told its number.
pub(crate) async fn repeat<F, Done>(count: u64, once: F) -> anyhow::Result<()>
where
    F: Fn(u64) -> Done + Clone + Send + 'static,
    Done: Future<Output = anyhow::Result<()>> + Send,
{
    let next = Arc::new(AtomicU64::new(0));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let (next, once) = (Arc::clone(&next), once.clone());
        callers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                once(number).await?;
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.context("a caller ended early")??;
    }
    Ok(())
}
