use super::*;
use crate::support::PATIENCE;
use pubsub::{ReceivedMessage, StreamingPullRequest, StreamingPullResponse};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::too_many_lines,
    clippy::use_self,
    clippy::large_futures,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]
mod pubsub {
    tonic::include_proto!("google.pubsub.v1");
}

const METHOD: &str = "/google.pubsub.v1.Subscriber/StreamingPull";

/// A client's end of a stream.
struct Client {
    frames: mpsc::Sender<StreamingPullRequest>,
    responses: Streaming<StreamingPullResponse>,
}

// === impl Client ===

impl Client {
    async fn open(test: &TestTopic, messages: i64) -> Result<Self, Status> {
        let channel = Channel::from_shared(format!("http://{}", test.address)).unwrap();
        let mut grpc = tonic::client::Grpc::new(channel.connect().await.unwrap());
        grpc.ready().await.unwrap();
        let (frames, outgoing) = mpsc::channel(8);
        let first = StreamingPullRequest {
            subscription: SUBSCRIPTION.into(),
            stream_ack_deadline_seconds: 60,
            max_outstanding_messages: messages,
            ..Default::default()
        };
        frames.send(first).await.unwrap();
        let request = Request::new(ReceiverStream::new(outgoing));
        let codec = tonic_prost::ProstCodec::default();
        let path = http::uri::PathAndQuery::from_static(METHOD);
        let responses = grpc.streaming(request, path, codec).await?.into_inner();
        let mut client = Self { frames, responses };
        let first = client.response().await?;
        assert!(first.received_messages.is_empty());
        assert!(first.subscription_properties.is_some());
        Ok(client)
    }

    async fn response(&mut self) -> Result<StreamingPullResponse, Status> {
        let next = tokio::time::timeout(PATIENCE, self.responses.message()).await;
        next.expect("nothing came")
            .map(|it| it.expect("the stream ended"))
    }

    /// Receives until it has so many.
    async fn receive(&mut self, count: usize) -> Vec<ReceivedMessage> {
        let mut received = Vec::new();
        while received.len() < count {
            received.extend(self.response().await.unwrap().received_messages);
        }
        received
    }

    async fn send(&self, frame: StreamingPullRequest) {
        self.frames.send(frame).await.unwrap();
    }
}

fn texts_of(received: &[ReceivedMessage]) -> Vec<String> {
    let data = |it: &ReceivedMessage| it.message.as_ref().unwrap().data.to_vec();
    received
        .iter()
        .map(|it| String::from_utf8(data(it)).unwrap())
        .collect()
}

fn ack_ids_of(received: &[ReceivedMessage]) -> Vec<String> {
    received.iter().map(|it| it.ack_id.clone()).collect()
}

#[tokio::test]
async fn messages_come_as_they_are_published_and_leave_by_the_stream() {
    let test = TestTopic::with(json!({})).await;
    let mut client = Client::open(&test, 0).await.unwrap();
    test.publish(&["a"]).await;
    let received = client.receive(1).await;
    let refuse = StreamingPullRequest {
        modify_deadline_ack_ids: ack_ids_of(&received),
        modify_deadline_seconds: vec![0],
        ..Default::default()
    };
    client.send(refuse).await;
    let again = client.receive(1).await;
    assert_eq!(again[0].message, received[0].message);
    let ack = StreamingPullRequest {
        ack_ids: ack_ids_of(&again),
        ..Default::default()
    };
    client.send(ack).await;
    test.idle(true).await;
}

#[tokio::test]
async fn a_stream_has_no_more_outstanding_than_it_asked_for() {
    let test = TestTopic::with(json!({})).await;
    let mut client = Client::open(&test, 2).await.unwrap();
    test.publish(&["a", "b", "c"]).await;
    let first = client.receive(2).await;
    assert_eq!(texts_of(&first), ["a", "b"]);
    // The third is still there for anybody else.
    assert_eq!(texts(&test.pull(SUBSCRIPTION).await), ["c"]);
    test.publish(&["d"]).await;
    let ids = json!({ "ackIds": ack_ids_of(&first[..1]) });
    test.tell("acknowledge", ids).await.unwrap();
    assert_eq!(texts_of(&client.receive(1).await), ["d"]);
}

#[tokio::test]
async fn streams_share_the_messages() {
    let test = TestTopic::with(json!({})).await;
    let (together, mut all) = mpsc::channel(100);
    for number in 0..5 {
        let mut client = Client::open(&test, 1000).await.unwrap();
        let together = together.clone();
        tokio::spawn(async move {
            while let Ok(response) = client.response().await {
                for text in texts_of(&response.received_messages) {
                    together.send((number, text)).await.unwrap();
                }
            }
        });
    }
    let many: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
    test.publish(&many.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
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
    let test = TestTopic::with(json!({ "enableExactlyOnceDelivery": true })).await;
    let mut client = Client::open(&test, 0).await.unwrap();
    test.publish(&["a"]).await;
    let received = client.receive(1).await;
    let ack = StreamingPullRequest {
        ack_ids: vec![received[0].ack_id.clone(), "1-2-3".into()],
        ..Default::default()
    };
    client.send(ack).await;
    let response = client.response().await.unwrap();
    let properties = response.subscription_properties.unwrap();
    assert!(properties.exactly_once_delivery_enabled);
    let confirmed = response.acknowledge_confirmation.unwrap();
    assert_eq!(confirmed.ack_ids, ack_ids_of(&received));
    assert_eq!(confirmed.invalid_ack_ids, ["1-2-3"]);
}

#[tokio::test]
async fn a_stream_follows_the_keys_it_holds() {
    let test = TestTopic::with(json!({ "enableMessageOrdering": true })).await;
    let mut client = Client::open(&test, 0).await.unwrap();
    for text in ["a1", "a2", "a3"] {
        test.publish_keyed(&[text], "a").await;
    }
    assert_eq!(texts_of(&client.receive(3).await), ["a1", "a2", "a3"]);
}

#[tokio::test]
async fn a_broken_stream_leaves_its_messages_outstanding_until_their_deadline() {
    let test = TestTopic::with(json!({})).await;
    let mut client = Client::open(&test, 0).await.unwrap();
    test.publish(&["a"]).await;
    client.receive(1).await;
    drop(client);
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
    test.advance(50).await;
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
    test.advance(11).await;
    assert_eq!(texts(&test.wait_pull(SUBSCRIPTION).await), ["a"]);
}

#[tokio::test]
async fn a_stream_ends_with_its_subscription() {
    let test = TestTopic::with(json!({})).await;
    let mut client = Client::open(&test, 0).await.unwrap();
    let push = json!({ "pushConfig": { "pushEndpoint": "http://127.0.0.1:1/" } });
    test.tell("modifyPushConfig", push).await.unwrap();
    let ended = client.response().await.unwrap_err();
    assert_eq!(ended.code(), Code::FailedPrecondition);
    let Err(refused) = Client::open(&test, 0).await else {
        panic!("a push subscription has no streams");
    };
    assert_eq!(refused.code(), Code::FailedPrecondition);
    ok(test.tell("modifyPushConfig", json!({ "pushConfig": {} }))).await;
    let mut client = Client::open(&test, 0).await.unwrap();
    test.delete(&format!("/v1/{SUBSCRIPTION}")).await.unwrap();
    assert_eq!(client.response().await.unwrap_err().code(), Code::NotFound);
}
