//! Pub/Sub: topics and subscriptions are made over REST, messages go over gRPC.

use crate::check;
use crate::handler::{Handler, PATIENCE};
use google_cloud_auth::credentials::anonymous;
use google_cloud_pubsub::client::{Publisher, Subscriber, SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model::{
    DeadLetterPolicy, Message, PushConfig, RetryPolicy, Subscription,
};
use google_cloud_pubsub::subscriber::MessageStream;
use google_cloud_pubsub::subscriber::handler::Handler as Delivered;
use google_cloud_wkt::Duration;

const PROJECT: &str = "projects/shop";
const DEAD_LETTER_AFTER: i32 = 5;

/// The clients of one broker.
struct Bus {
    endpoint: String,
    topics: TopicAdmin,
    subscriptions: SubscriptionAdmin,
    subscriber: Subscriber,
}

pub async fn run(broker: &str) -> anyhow::Result<()> {
    let bus = Bus::connect(broker).await?;
    stream(&bus).await?;
    dead_letter(&bus).await?;
    exactly_once(&bus).await?;
    push(&bus).await
}

async fn stream(bus: &Bus) -> anyhow::Result<()> {
    let (topic, subscription) = bus.both("stream", Subscription::new()).await?;
    let ids = bus.publish(&topic, &["one", "two", "three"]).await?;
    let mut stream = bus.subscriber.subscribe(&subscription).build();
    let (message, delivered) = next(&mut stream).await?;
    let nacked = message.message_id;
    delivered.nack();
    let mut seen = Vec::new();
    while seen.len() < ids.len() {
        let (message, delivered) = next(&mut stream).await?;
        delivered.ack();
        seen.push(message.message_id);
    }
    check("the nacked one came again", seen.contains(&nacked), true)?;
    seen.sort();
    check("all came", seen, sorted(ids))
}

async fn dead_letter(bus: &Bus) -> anyhow::Result<()> {
    let (graves, grave) = bus.both("graves", Subscription::new()).await?;
    let policy = DeadLetterPolicy::new()
        .set_dead_letter_topic(graves)
        .set_max_delivery_attempts(DEAD_LETTER_AFTER);
    let mortal = Subscription::new().set_dead_letter_policy(policy);
    let (topic, subscription) = bus.both("mortal", mortal).await?;
    bus.publish(&topic, &["hopeless"]).await?;
    let mut stream = bus.subscriber.subscribe(&subscription).build();
    for attempt in 1..=DEAD_LETTER_AFTER {
        let (_, delivered) = next(&mut stream).await?;
        check("attempt", delivered.delivery_attempt(), Some(attempt))?;
        delivered.nack();
    }
    let mut letters = bus.subscriber.subscribe(&grave).build();
    let (letter, delivered) = next(&mut letters).await?;
    delivered.ack();
    check("letter", &letter.data[..], b"hopeless")?;
    let count = &letter.attributes["CloudPubSubDeadLetterSourceDeliveryCount"];
    check("its count", count.as_str(), "5")
}

async fn exactly_once(bus: &Bus) -> anyhow::Result<()> {
    let once = Subscription::new().set_enable_exactly_once_delivery(true);
    let (topic, subscription) = bus.both("once", once).await?;
    bus.publish(&topic, &["once"]).await?;
    let mut stream = bus.subscriber.subscribe(&subscription).build();
    let (_, delivered) = next(&mut stream).await?;
    let Delivered::ExactlyOnce(delivered) = delivered else {
        anyhow::bail!("the stream does not say that it delivers exactly once");
    };
    delivered.confirmed_ack().await?;
    check("an ack is confirmed", true, true)
}

async fn push(bus: &Bus) -> anyhow::Result<()> {
    let handler = Handler::answering(&[503]).await?;
    let config = PushConfig::new().set_push_endpoint(&handler.url);
    let pushed = Subscription::new().set_push_config(config);
    let (topic, _) = bus.both("pushed", pushed).await?;
    let ids = bus.publish(&topic, &["pushed"]).await?;
    let seen = handler.deliveries(2).await?;
    let has_id = |body: &[u8]| String::from_utf8_lossy(body).contains(&ids[0]);
    let all = seen.iter().all(|one| has_id(&one.body));
    check("pushed, and again after 503", all, true)
}

async fn next(stream: &mut MessageStream) -> anyhow::Result<(Message, Delivered)> {
    let next = tokio::time::timeout(PATIENCE, stream.next()).await?;
    Ok(next.ok_or_else(|| anyhow::anyhow!("the stream ended"))??)
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

// === impl Bus ===

impl Bus {
    async fn connect(broker: &str) -> anyhow::Result<Self> {
        let endpoint = format!("http://{broker}");
        let anonymous = || anonymous::Builder::new().build();
        Ok(Self {
            topics: TopicAdmin::builder()
                .with_endpoint(&endpoint)
                .with_credentials(anonymous())
                .build()
                .await?,
            subscriptions: SubscriptionAdmin::builder()
                .with_endpoint(&endpoint)
                .with_credentials(anonymous())
                .build()
                .await?,
            subscriber: Subscriber::builder()
                .with_endpoint(&endpoint)
                .with_credentials(anonymous())
                .build()
                .await?,
            endpoint,
        })
    }

    /// A topic, and a subscription to it whose nacked messages come again quickly.
    async fn both(&self, short: &str, wanted: Subscription) -> anyhow::Result<(String, String)> {
        let topic = format!("{PROJECT}/topics/{short}");
        self.topics.create_topic().set_name(&topic).send().await?;
        let quick = RetryPolicy::new()
            .set_minimum_backoff(Duration::clamp(0, 10_000_000))
            .set_maximum_backoff(Duration::clamp(0, 50_000_000));
        let subscription = wanted
            .set_name(format!("{PROJECT}/subscriptions/{short}"))
            .set_topic(&topic)
            .set_retry_policy(quick);
        let created = self
            .subscriptions
            .create_subscription()
            .with_request(subscription)
            .send()
            .await?;
        Ok((topic, created.name))
    }

    /// Publishes each, and returns the ids once they are accepted.
    async fn publish(&self, topic: &str, bodies: &[&'static str]) -> anyhow::Result<Vec<String>> {
        let publisher = Publisher::builder(topic)
            .with_endpoint(&self.endpoint)
            .with_credentials(anonymous::Builder::new().build())
            .build()
            .await?;
        let accepted: Vec<_> = bodies
            .iter()
            .map(|body| publisher.publish(Message::new().set_data(*body)))
            .collect();
        let mut ids = Vec::new();
        for id in accepted {
            ids.push(id.await?);
        }
        Ok(ids)
    }
}
