use super::super::stream;
use super::*;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

/// A client's end of a stream.
struct Client {
    frames: mpsc::Sender<Result<wire::StreamingPullRequest, Status>>,
    responses: stream::Responses,
}

fn first_frame(messages: i64) -> wire::StreamingPullRequest {
    wire::StreamingPullRequest {
        subscription: SUBSCRIPTION.into(),
        stream_ack_deadline_seconds: 60,
        max_outstanding_messages: messages,
        ..Default::default()
    }
}

// === impl Client ===

impl Client {
    async fn open(bed: &Bed, messages: i64) -> Result<Self, Status> {
        let (frames, incoming) = mpsc::channel(8);
        frames.send(Ok(first_frame(messages))).await.unwrap();
        let registry = Arc::clone(&bed.pubsub.registry);
        let responses = stream::open(registry, ReceiverStream::new(incoming)).await?;
        let mut client = Self { frames, responses };
        let first = client.response().await.unwrap();
        assert!(first.received_messages.is_empty());
        assert!(first.subscription_properties.is_some());
        Ok(client)
    }

    async fn response(&mut self) -> Result<wire::StreamingPullResponse, Status> {
        let next = tokio::time::timeout(Duration::from_secs(10), self.responses.next()).await;
        next.expect("nothing came").expect("the stream ended")
    }

    /// Receives until it has so many.
    async fn receive(&mut self, count: usize) -> Vec<wire::ReceivedMessage> {
        let mut received = Vec::new();
        while received.len() < count {
            received.extend(self.response().await.unwrap().received_messages);
        }
        received
    }

    async fn send(&self, frame: wire::StreamingPullRequest) {
        self.frames.send(Ok(frame)).await.unwrap();
    }
}

#[tokio::test]
async fn messages_come_as_they_are_published_and_leave_by_the_stream() {
    let bed = Bed::with(&[], |_| {}).await;
    let mut client = Client::open(&bed, 0).await.unwrap();
    bed.publish(&["a"]).await;
    let received = client.receive(1).await;
    let refuse = wire::StreamingPullRequest {
        modify_deadline_ack_ids: ack_ids(&received),
        modify_deadline_seconds: vec![0],
        ..Default::default()
    };
    client.send(refuse).await;
    let again = client.receive(1).await;
    assert_eq!(ids(&again), ids(&received));
    let ack = wire::StreamingPullRequest {
        ack_ids: ack_ids(&again),
        ..Default::default()
    };
    client.send(ack).await;
    bed.idle(true).await;
}

#[tokio::test]
async fn a_stream_has_no_more_outstanding_than_it_asked_for() {
    let bed = Bed::with(&[], |_| {}).await;
    let mut client = Client::open(&bed, 2).await.unwrap();
    bed.publish(&["a", "b", "c"]).await;
    let first = client.receive(2).await;
    assert_eq!(texts(&first), ["a", "b"]);
    // The third is still there for anybody else.
    assert_eq!(texts(&bed.pull(SUBSCRIPTION).await), ["c"]);
    bed.publish(&["d"]).await;
    bed.ack(&first[..1]).await.unwrap();
    assert_eq!(texts(&client.receive(1).await), ["d"]);
}

#[tokio::test]
async fn streams_share_the_messages() {
    let bed = Bed::with(&[], |_| {}).await;
    let (together, mut all) = mpsc::channel(100);
    for number in 0..5 {
        let mut client = Client::open(&bed, 1000).await.unwrap();
        let together = together.clone();
        tokio::spawn(async move {
            while let Ok(response) = client.response().await {
                for text in texts(&response.received_messages) {
                    together.send((number, text)).await.unwrap();
                }
            }
        });
    }
    let many: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    bed.publish(&many).await;
    let mut shares = [0; 5];
    let mut received = Vec::new();
    while received.len() < 100 {
        let (number, text): (usize, String) = all.recv().await.unwrap();
        shares[number] += 1;
        received.push(text);
    }
    received.sort();
    assert_eq!(received, many, "each exactly once");
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
}

#[tokio::test]
async fn exactly_once_confirms_on_the_stream() {
    let bed = Bed::with(&[], |it| it.enable_exactly_once_delivery = true).await;
    let mut client = Client::open(&bed, 0).await.unwrap();
    bed.publish(&["a"]).await;
    let received = client.receive(1).await;
    let ack = wire::StreamingPullRequest {
        ack_ids: vec![received[0].ack_id.clone(), "1-2-3".into()],
        ..Default::default()
    };
    client.send(ack).await;
    let response = client.response().await.unwrap();
    let properties = response.subscription_properties.unwrap();
    assert!(properties.exactly_once_delivery_enabled);
    let confirmed = response.acknowledge_confirmation.unwrap();
    assert_eq!(confirmed.ack_ids, ack_ids(&received));
    assert_eq!(confirmed.invalid_ack_ids, ["1-2-3"]);
}

#[tokio::test]
async fn a_stream_follows_the_keys_it_holds() {
    let bed = Bed::with(&[], |it| it.enable_message_ordering = true).await;
    let mut client = Client::open(&bed, 0).await.unwrap();
    for text in ["a1", "a2", "a3"] {
        bed.publish_keyed(&[text], "a").await;
    }
    let received = client.receive(3).await;
    assert_eq!(texts(&received), ["a1", "a2", "a3"]);
}

#[tokio::test]
async fn a_broken_stream_leaves_its_messages_outstanding_until_their_deadline() {
    let bed = Bed::with(&[], |_| {}).await;
    let mut client = Client::open(&bed, 0).await.unwrap();
    bed.publish(&["a"]).await;
    client.receive(1).await;
    drop(client);
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
    bed.advance(59);
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
    bed.advance(2);
    assert_eq!(texts(&bed.wait_pull(SUBSCRIPTION).await), ["a"]);
}

#[tokio::test]
async fn a_stream_ends_with_its_subscription() {
    let bed = Bed::with(&[], |_| {}).await;
    let mut client = Client::open(&bed, 0).await.unwrap();
    let push = wire::ModifyPushConfigRequest {
        subscription: SUBSCRIPTION.into(),
        push_config: Some(wire::PushConfig {
            push_endpoint: "http://127.0.0.1:1/".into(),
            ..Default::default()
        }),
    };
    bed.pubsub
        .modify_push_config(Request::new(push))
        .await
        .unwrap();
    let ended = client.response().await.unwrap_err();
    assert_eq!(ended.code(), Code::FailedPrecondition);
    let Err(refused) = Client::open(&bed, 0).await else {
        panic!("a push subscription has no streams");
    };
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let pull = wire::ModifyPushConfigRequest {
        subscription: SUBSCRIPTION.into(),
        push_config: None,
    };
    bed.pubsub
        .modify_push_config(Request::new(pull))
        .await
        .unwrap();
    let mut client = Client::open(&bed, 0).await.unwrap();
    let delete = wire::DeleteSubscriptionRequest {
        subscription: SUBSCRIPTION.into(),
    };
    bed.pubsub
        .delete_subscription(Request::new(delete))
        .await
        .unwrap();
    assert_eq!(client.response().await.unwrap_err().code(), Code::NotFound);
}
