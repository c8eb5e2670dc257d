//! Publish and push: from the first publish to the last answer of the handler. There is nobody to compare with who can
//! be had from a registry; it is told.

use std::sync::Arc;

use bytes::Bytes;

use super::AT_ONCE;
use super::calls::{Client, Named, Publish, PubsubMessage, Push, Subscription};
use super::deliveries::Deliveries;
use super::servers::{self, Keep};
use crate::gate::semel::Binary;
use crate::report::{Group, Row};
use crate::rounds::{Contender, Pace, rounds};
use crate::upstream::Upstream;

const TOPIC: &str = "projects/bench/topics/topic";
const SUBSCRIPTION: &str = "projects/bench/subscriptions/push";
const MESSAGE_BYTES: usize = 1024;

pub(crate) async fn measure(binary: &Binary, pace: Pace, count: u64) -> anyhow::Result<Group> {
    let handler = Arc::new(Upstream::start().await?);
    let publishing = async |keep| publishing(binary, keep, &handler, count).await;
    let [durable, memory] = rounds(
        [
            ("durable", publishing(Keep::Directory).await?),
            ("--memory", publishing(Keep::Memory).await?),
        ],
        pace,
    )
    .await?;
    Ok(Group {
        title: "Publish and push messages",
        conditions: vec![format!(
            "{count} messages of {MESSAGE_BYTES} bytes, one in each publish, over gRPC on one connection, {AT_ONCE} under \
             way; from the first publish to the last answer of the handler, wrapped."
        )],
        rows: vec![
            Row::rate("durable", &durable),
            Row::rate("--memory", &memory),
        ],
    })
}

async fn publishing(
    binary: &Binary,
    keep: Keep,
    handler: &Arc<Upstream>,
    count: u64,
) -> anyhow::Result<Box<dyn Contender>> {
    let server = servers::ours(binary, keep).await?;
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
    let create = "Subscriber/CreateSubscription";
    client.pubsub(create, subscription).await?;
    let call =
        |client: Client, _| async move { client.pubsub("Publisher/Publish", message()).await };
    Ok(Box::new(Deliveries {
        client,
        handler: Arc::clone(handler),
        count,
        call,
        _server: server,
    }))
}

fn message() -> Publish {
    Publish {
        topic: TOPIC.into(),
        messages: vec![PubsubMessage {
            data: Bytes::from_static(&[b'm'; MESSAGE_BYTES]),
        }],
    }
}
