use super::*;
use crate::history::DispatchResult as EndedDelivery;
use crate::proto::rpc;
use prost::Message;
use tonic::Code;

#[tokio::test]
async fn a_message_is_received_until_it_is_acknowledged() {
    let bed = Bed::with(&[], |_| {}).await;
    let published = bed.publish(&["a", "b"]).await;
    let first = bed.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&first), ["a", "b"]);
    assert_eq!(ids(&first), published);
    assert_eq!(first[0].delivery_attempt, 0);
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
    bed.advance(11);
    let again = bed.wait_pull(SUBSCRIPTION).await;
    assert_eq!(ids(&again), published);
    bed.ack(&again[..1]).await.unwrap();
    bed.modify(&again[1..], 0).await.unwrap();
    let third = bed.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&third), ["b"]);
    bed.ack(&third).await.unwrap();
    bed.idle(true).await;
    let ends: Vec<EndedDelivery> = bed.history().into_iter().map(|it| it.result).collect();
    assert_eq!(
        ends,
        [
            EndedDelivery::TimedOut,
            EndedDelivery::TimedOut,
            EndedDelivery::Acknowledged,
            EndedDelivery::Refused,
            EndedDelivery::Acknowledged
        ]
    );
    assert!(bed.history().iter().all(|it| it.target == "pull"));
}

#[tokio::test]
async fn a_pull_waits_for_the_first_message() {
    let bed = Arc::new(Bed::with(&[], |_| {}).await);
    let waiting = Arc::clone(&bed);
    let waiter = tokio::spawn(async move { waiting.wait_pull(SUBSCRIPTION).await });
    tokio::task::yield_now().await;
    bed.publish(&["a"]).await;
    assert_eq!(texts(&waiter.await.unwrap()), ["a"]);
}

#[tokio::test]
async fn every_subscription_gets_its_copy_if_it_wants_it() {
    let bed = Bed::with(&[], |_| {}).await;
    let eu = "projects/p/subscriptions/eu-only";
    let filter = |it: &mut wire::Subscription| it.filter = "attributes.region = \"eu\"".into();
    bed.subscribe(eu, filter).await.unwrap();
    let messages = ["eu", "us"].map(|region| wire::PubsubMessage {
        data: region.into(),
        attributes: [("region".to_owned(), region.to_owned())].into(),
        ..Default::default()
    });
    bed.publish_messages(messages.into()).await.unwrap();
    assert_eq!(texts(&bed.pull(SUBSCRIPTION).await), ["eu", "us"]);
    assert_eq!(texts(&bed.pull(eu).await), ["eu"]);
}

#[tokio::test]
async fn messages_of_one_key_come_in_order() {
    let bed = Bed::with(&[], |it| it.enable_message_ordering = true).await;
    bed.publish_keyed(&["a1", "a2"], "a").await;
    bed.publish_keyed(&["b1"], "b").await;
    let first = bed.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&first), ["a1", "a2", "b1"]);
    bed.publish_keyed(&["a3"], "a").await;
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
    bed.modify(&first[..1], 0).await.unwrap();
    // It comes back after the first, also when it is acknowledged in between.
    bed.ack(&first[1..2]).await.unwrap();
    let again = bed.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&again), ["a1", "a2", "a3"]);
}

#[tokio::test]
async fn with_exactly_once_a_stale_ack_id_fails_and_is_named() {
    let bed = Bed::with(&[], |it| it.enable_exactly_once_delivery = true).await;
    bed.publish(&["a"]).await;
    let first = bed.pull(SUBSCRIPTION).await;
    bed.advance(11);
    let second = bed.wait_pull(SUBSCRIPTION).await;
    let refused = bed.ack(&first).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let status = rpc::Status::decode(refused.details()).unwrap();
    assert_eq!(status.code, Code::InvalidArgument as i32);
    let info = rpc::ErrorInfo::decode(&*status.details[0].value).unwrap();
    assert_eq!(
        info.metadata[&first[0].ack_id],
        "PERMANENT_FAILURE_INVALID_ACK_ID"
    );
    let refused = bed.modify(&first, 30).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    bed.ack(&second).await.unwrap();
    bed.idle(true).await;
}

#[tokio::test]
async fn a_malformed_ack_id_is_refused() {
    let bed = Bed::with(&[], |_| {}).await;
    let nonsense = wire::ReceivedMessage {
        ack_id: "nonsense".into(),
        ..Default::default()
    };
    let refused = bed.ack(&[nonsense]).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(
        bed.ack(&[]).await.unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[tokio::test]
async fn a_message_refused_too_often_goes_to_the_dead_letter_topic() {
    let dead = "projects/p/topics/dead";
    let bed = Bed::with(&[], |it| {
        it.dead_letter_policy = Some(wire::DeadLetterPolicy {
            dead_letter_topic: dead.into(),
            max_delivery_attempts: 5,
        });
    })
    .await;
    bed.topic(dead).await;
    let letters = "projects/p/subscriptions/letters";
    bed.subscribe(letters, |it| it.topic = dead.into())
        .await
        .unwrap();
    let published = bed.publish(&["poison"]).await;
    for attempt in 1..=5 {
        let received = bed.wait_pull(SUBSCRIPTION).await;
        assert_eq!(received[0].delivery_attempt, attempt);
        bed.modify(&received, 0).await.unwrap();
    }
    let letter = bed.wait_pull(letters).await.remove(0).message.unwrap();
    assert_eq!(letter.data, "poison");
    assert_ne!(letter.message_id, published[0]);
    let says =
        |name: &str| letter.attributes[&format!("CloudPubSubDeadLetterSource{name}")].clone();
    assert_eq!(says("DeliveryCount"), "5");
    assert_eq!(says("Subscription"), "billing");
    assert_eq!(says("SubscriptionProject"), "p");
    assert!(says("TopicPublishTime").ends_with("+00:00"));
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
    assert_eq!(bed.pubsub.busy(true), [letters]);
}

#[tokio::test]
async fn without_its_dead_letter_topic_a_message_stays() {
    let bed = Bed::with(&[], |it| {
        it.dead_letter_policy = Some(wire::DeadLetterPolicy {
            dead_letter_topic: "projects/p/topics/none".into(),
            max_delivery_attempts: 5,
        });
    })
    .await;
    bed.publish(&["a"]).await;
    for _ in 0..7 {
        let received = bed.wait_pull(SUBSCRIPTION).await;
        bed.modify(&received, 0).await.unwrap();
    }
    assert_eq!(bed.wait_pull(SUBSCRIPTION).await[0].delivery_attempt, 8);
}

#[tokio::test]
async fn a_retry_policy_pauses_and_old_messages_are_dropped() {
    let bed = Bed::with(&[], |it| {
        it.retry_policy = Some(wire::RetryPolicy {
            minimum_backoff: span(30),
            maximum_backoff: span(600),
        });
        it.message_retention_duration = span(600);
    })
    .await;
    bed.publish(&["a"]).await;
    let first = bed.pull(SUBSCRIPTION).await;
    bed.modify(&first, 0).await.unwrap();
    bed.advance(29);
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
    bed.advance(1);
    assert_eq!(bed.wait_pull(SUBSCRIPTION).await.len(), 1);
    bed.advance(600);
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
}

#[tokio::test]
async fn what_is_too_old_leaves_by_itself() {
    let bed = Bed::with(&[], |it| it.message_retention_duration = span(600)).await;
    bed.publish(&["a"]).await;
    bed.advance(600);
    bed.idle(true).await;
    let number = {
        let subscription = bed.pubsub.registry.subscription(SUBSCRIPTION).unwrap();
        let state = subscription.state();
        state.number.to_be_bytes()
    };
    let rows = || {
        let storage = &bed.context.storage;
        let rows = storage.scan(crate::storage::Table::Messages, &number, None, 10);
        rows.unwrap().len()
    };
    let gone = async {
        while rows() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
    gone.expect("it stays in storage");
}
