use super::*;
use crate::proto::pubsub::publisher_server::Publisher;
use crate::proto::pubsub::subscriber_server::Subscriber;
use crate::proto::pubsub::{GetSubscriptionRequest, Topic, UpdateSubscriptionRequest};
use crate::proto::tasks::UpdateQueueRequest;
use crate::proto::tasks::cloud_tasks_server::CloudTasks;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Mutex;
use tonic::{Request, Response, Status};

const WHOLE: &str = r#"
project = "demo"
location = "europe-west1"
faults = ["duplicate=0.05"]

[[queue]]
name = "orders"
max_dispatches_per_second = 500
max_concurrent_dispatches = 100
max_attempts = 5
min_backoff = "0.1s"
max_backoff = "10m"
max_doublings = 3
max_retry_duration = "7d"
url = "http://127.0.0.1:3000/tasks?a=b"

[[topic]]
name = "invoices"

[[subscription]]
name = "invoices-push"
topic = "invoices"
push = "http://127.0.0.1:3000/invoice"
ack_deadline = "30s"
ordering = true
exactly_once = true
filter = 'attributes.kind = "x"'
dead_letter_topic = "projects/other/topics/dead"
max_delivery_attempts = 5
min_backoff = "10s"
unwrapped = true
write_metadata = true
oidc_account = "a@b"
oidc_audience = "us"
"#;

#[test]
fn a_file_is_read_whole() {
    let declared: Declared = WHOLE.parse().unwrap();
    assert_eq!(declared.faults(), ["duplicate=0.05".parse().unwrap()]);
    let queue = &declared.queues[0];
    assert_eq!(
        queue.name,
        "projects/demo/locations/europe-west1/queues/orders"
    );
    let retries = queue.retry_config.as_ref().unwrap();
    let span = |seconds, nanos| Some(prost_types::Duration { seconds, nanos });
    assert_eq!(retries.min_backoff, span(0, 100_000_000));
    assert_eq!(retries.max_backoff, span(600, 0));
    assert_eq!(retries.max_retry_duration, span(604_800, 0));
    let to = queue
        .http_target
        .as_ref()
        .and_then(|it| it.uri_override.as_ref())
        .unwrap();
    assert_eq!(
        (to.host.as_deref(), to.port),
        (Some("127.0.0.1"), Some(3000))
    );
    assert_eq!(to.path_override.as_ref().unwrap().path, "/tasks");
    assert_eq!(to.query_override.as_ref().unwrap().query_params, "a=b");
    let topics = [
        "projects/demo/topics/invoices",
        "projects/other/topics/dead",
    ];
    assert_eq!(declared.topics().collect::<Vec<_>>(), topics);
    let subscription = &declared.subscriptions[0];
    assert_eq!(subscription.topic, topics[0]);
    assert_eq!(subscription.ack_deadline_seconds, 30);
    assert!(subscription.enable_message_ordering && subscription.enable_exactly_once_delivery);
    let push = subscription.push_config.as_ref().unwrap();
    assert_eq!(push.push_endpoint, "http://127.0.0.1:3000/invoice");
    assert!(
        matches!(&push.wrapper, Some(push_config::Wrapper::NoWrapper(it)) if it.write_metadata)
    );
    assert!(push.authentication_method.is_some());
    assert_eq!(
        subscription.retry_policy.as_ref().unwrap().minimum_backoff,
        span(10, 0)
    );
}

#[test]
fn mistakes_are_named_with_their_line() {
    let subscription = "project = \"p\"\n[[subscription]]\nname = \"s\"\ntopic = \"t\"\n";
    for (text, parts) in [
        ("[[queue]]\nname = \"q\"", vec!["line 2", "project = "]),
        (
            "project = \"p\"\n[[queue]]\nname = \"q\"",
            vec!["line 3", "location = "],
        ),
        (
            "[[queue]]\nname = \"queues/q\"",
            vec!["line 2", "projects/P/locations/L/queues/Q"],
        ),
        (
            "[[topic]]\nname = \"projects/p/topic/t\"",
            vec!["line 2", "projects/P/topics/NAME"],
        ),
        (
            "[[topic]]\nnome = \"t\"",
            vec!["line 2", "unknown field `nome`"],
        ),
        ("[[topic]]\n", vec!["missing field `name`"]),
        (
            "faults = [\"explode=1\"]",
            vec!["line 1", "no kind \"explode\""],
        ),
        (
            "project = \"p\"\n[[topic]]\nname = \"t\"\n[[topic]]\nname = \"t\"",
            vec!["line 5", "twice"],
        ),
        (
            "[[queue]]\nname = \"q\"\nmin_backoff = \"soon\"",
            vec!["line 3", "min_backoff", "is not a span"],
        ),
        (
            "[[queue]]\nname = \"q\"\nurl = \"ftp://h/\"",
            vec!["line 3", "is not an address"],
        ),
        (
            &format!("{subscription}ack_deadline = \"5s\""),
            vec!["line 5", "10 to 600"],
        ),
        (
            &format!("{subscription}unwrapped = true"),
            vec!["line 5", "it is for push"],
        ),
        (
            &format!("{subscription}max_delivery_attempts = 5"),
            vec!["line 5", "dead_letter_topic"],
        ),
        ("project = ", vec!["line 1"]),
    ] {
        let error = text.parse::<Declared>().unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

/// Services that keep what they are told.
#[derive(Debug, Default)]
struct FakeServices {
    queues: Mutex<BTreeMap<String, Queue>>,
    topics: Mutex<BTreeMap<String, Topic>>,
    subscriptions: Mutex<BTreeMap<String, Subscription>>,
}

#[async_trait]
impl CloudTasks for FakeServices {
    async fn update_queue(
        &self,
        request: Request<UpdateQueueRequest>,
    ) -> Result<Response<Queue>, Status> {
        let queue = request.into_inner().queue.unwrap();
        self.queues
            .lock()
            .unwrap()
            .insert(queue.name.clone(), queue.clone());
        Ok(Response::new(queue))
    }
}

#[async_trait]
impl Publisher for FakeServices {
    async fn create_topic(&self, request: Request<Topic>) -> Result<Response<Topic>, Status> {
        let topic = request.into_inner();
        match self
            .topics
            .lock()
            .unwrap()
            .insert(topic.name.clone(), topic.clone())
        {
            Some(_) => Err(Status::already_exists("")),
            None => Ok(Response::new(topic)),
        }
    }
}

#[async_trait]
impl Subscriber for FakeServices {
    async fn create_subscription(
        &self,
        request: Request<Subscription>,
    ) -> Result<Response<Subscription>, Status> {
        let subscription = request.into_inner();
        let mut all = self.subscriptions.lock().unwrap();
        if !self
            .topics
            .lock()
            .unwrap()
            .contains_key(&subscription.topic)
        {
            return Err(Status::not_found("Topic not found"));
        }
        if all.contains_key(&subscription.name) {
            return Err(Status::already_exists(""));
        }
        all.insert(subscription.name.clone(), subscription.clone());
        Ok(Response::new(subscription))
    }

    async fn get_subscription(
        &self,
        request: Request<GetSubscriptionRequest>,
    ) -> Result<Response<Subscription>, Status> {
        let all = self.subscriptions.lock().unwrap();
        Ok(Response::new(all[&request.get_ref().subscription].clone()))
    }

    async fn update_subscription(
        &self,
        request: Request<UpdateSubscriptionRequest>,
    ) -> Result<Response<Subscription>, Status> {
        let request = request.into_inner();
        assert!(request.update_mask.is_some());
        let subscription = request.subscription.unwrap();
        let mut all = self.subscriptions.lock().unwrap();
        all.insert(subscription.name.clone(), subscription.clone());
        Ok(Response::new(subscription))
    }
}

#[tokio::test]
async fn what_is_declared_is_made_so_again_and_again() {
    let kept = FakeServices::default();
    let declared: Declared = WHOLE.parse().unwrap();
    declared.apply(&kept, &kept).await.unwrap();
    let changed: Declared = WHOLE.replace("\"30s\"", "\"40s\"").parse().unwrap();
    changed.apply(&kept, &kept).await.unwrap();
    let subscriptions = kept.subscriptions.lock().unwrap().clone();
    let subscription = &subscriptions["projects/demo/subscriptions/invoices-push"];
    assert_eq!(subscription.ack_deadline_seconds, 40);
    assert_eq!(kept.topics.lock().unwrap().len(), 2);
    assert_eq!(kept.queues.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn what_cannot_be_changed_is_refused_by_name() {
    let kept = FakeServices::default();
    let declared: Declared = WHOLE.parse().unwrap();
    declared.apply(&kept, &kept).await.unwrap();
    let changed: Declared = WHOLE
        .replace("kind = \"x\"", "kind = \"y\"")
        .parse()
        .unwrap();
    let error = changed.apply(&kept, &kept).await.unwrap_err().to_string();
    assert!(
        error.contains("invoices-push") && error.contains("another filter"),
        "{error}"
    );
}
