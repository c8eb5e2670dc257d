//! Publish and push: from the first publish to the last answer of the handler. There is nobody to compare with who can
//! be had from a registry; it is told.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;

use super::AT_ONCE;
use super::calls::{Client, Named, Publish, PubsubMessage, Push, Subscription, repeat};
use super::servers::{Keep, Server};
use super::tasks::wait_for;
use crate::gate::report::{Group, Row, Unit};
use crate::gate::semel::Binary;
use crate::gate::upstream::Upstream;
use crate::rounds::{Contender, Contenders, Pace, rounds};

const TOPIC: &str = "projects/bench/topics/topic";
const SUBSCRIPTION: &str = "projects/bench/subscriptions/push";
const MESSAGE_BYTES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Id {
    Durable,
    Memory,
}

struct Publishing {
    client: Client,
    handler: Arc<Upstream>,
    count: u64,
    _server: Server,
}

pub(crate) async fn measure(binary: &Binary, pace: Pace, count: u64) -> anyhow::Result<Group> {
    let handler = Arc::new(Upstream::start().await?);
    let mut contenders: Contenders<Id> = Vec::new();
    for (id, keep) in [(Id::Durable, Keep::Directory), (Id::Memory, Keep::Memory)] {
        let server = Server::ours(binary, keep).await?;
        let client = Client::connect(server.port).await?;
        let topic = Named { name: TOPIC.into() };
        client.pubsub("Publisher/CreateTopic", topic).await?;
        let subscription = Subscription {
            name: SUBSCRIPTION.into(),
            topic: TOPIC.into(),
            push: Some(Push {
                endpoint: format!("http://127.0.0.1:{}/invoice", handler.port()),
            }),
        };
        client
            .pubsub("Subscriber/CreateSubscription", subscription)
            .await?;
        let publishing = Publishing {
            client,
            handler: Arc::clone(&handler),
            count,
            _server: server,
        };
        contenders.push((id, Box::new(publishing)));
    }
    let rates = rounds(contenders, pace).await?;
    let row = |what: &str, id: Id| Row::new(what, Unit::PerSecond, rates.of(id));
    Ok(Group {
        title: "Publish and push messages",
        conditions: vec![format!(
            "{count} messages of {MESSAGE_BYTES} bytes, one in each publish, over gRPC on one connection, {AT_ONCE} under \
             way; from the first publish to the last answer of the handler, wrapped."
        )],
        rows: vec![row("durable", Id::Durable), row("--memory", Id::Memory)],
    })
}

// === impl Publishing ===

#[async_trait]
impl Contender for Publishing {
    async fn turn(&mut self, _: Pace) -> anyhow::Result<f64> {
        let expected = self.handler.count().await? + self.count;
        let client = self.client.clone();
        let began = Instant::now();
        repeat(self.count, move |_| {
            let client = client.clone();
            async move { client.pubsub("Publisher/Publish", message()).await }
        })
        .await?;
        wait_for(&self.handler, expected).await?;
        Ok(self.count as f64 / began.elapsed().as_secs_f64())
    }
}

fn message() -> Publish {
    Publish {
        topic: TOPIC.into(),
        messages: vec![PubsubMessage {
            data: Bytes::from_static(&[b'm'; MESSAGE_BYTES]),
        }],
    }
}
