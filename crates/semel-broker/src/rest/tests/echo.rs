//! Services that remember what they were asked, and answer what they were told to.

use crate::field_mask::snake_case;
use crate::interface::Refusals;
use crate::methods::{Method, Methods};
use crate::proto::pubsub::*;
use crate::proto::tasks::*;
use crate::rest::BufferCall;
use prost::Message;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tonic::Status;

/// Both services.
#[derive(Debug, Default)]
pub(super) struct Echo {
    asked: Mutex<Vec<String>>,
    answer: Mutex<Option<Result<Vec<u8>, Status>>>,
}

// === impl Echo ===

impl Echo {
    /// What was asked last.
    pub(super) fn asked(&self) -> String {
        self.asked.lock().unwrap().pop().unwrap_or_default()
    }

    /// What is answered next; otherwise an empty message is.
    pub(super) fn answers(&self, answer: Result<&impl Message, Status>) {
        let answer = answer.map(Message::encode_to_vec);
        *self.answer.lock().unwrap() = Some(answer);
    }

    fn reply<A: Message + Default>(&self, rpc: &str, asked: &impl Debug) -> Result<A, Status> {
        self.asked.lock().unwrap().push(format!("{rpc} {asked:?}"));
        match self.answer.lock().unwrap().take() {
            Some(answer) => Ok(A::decode(&*answer?).unwrap()),
            None => Ok(A::default()),
        }
    }
}

/// All methods of both services.
pub(super) fn methods(echo: &Arc<Echo>, refusals: &Arc<Refusals>) -> Vec<Method> {
    let tasks = Methods::new("google.cloud.tasks.v2.CloudTasks", echo, refusals)
        .echo::<CreateTaskRequest, Task>("CreateTask")
        .echo::<GetTaskRequest, Task>("GetTask")
        .echo::<DeleteTaskRequest, ()>("DeleteTask")
        .echo::<ListTasksRequest, ListTasksResponse>("ListTasks")
        .echo::<RunTaskRequest, Task>("RunTask")
        .echo::<ListQueuesRequest, ListQueuesResponse>("ListQueues")
        .echo::<GetQueueRequest, Queue>("GetQueue")
        .echo::<CreateQueueRequest, Queue>("CreateQueue")
        .echo::<UpdateQueueRequest, Queue>("UpdateQueue")
        .echo::<DeleteQueueRequest, ()>("DeleteQueue")
        .echo::<PurgeQueueRequest, Queue>("PurgeQueue")
        .echo::<PauseQueueRequest, Queue>("PauseQueue")
        .echo::<ResumeQueueRequest, Queue>("ResumeQueue");
    let publisher = Methods::new("google.pubsub.v1.Publisher", echo, refusals)
        .echo::<PublishRequest, PublishResponse>("Publish")
        .echo::<Topic, Topic>("CreateTopic")
        .echo::<GetTopicRequest, Topic>("GetTopic")
        .echo::<UpdateTopicRequest, Topic>("UpdateTopic")
        .echo::<DeleteTopicRequest, ()>("DeleteTopic")
        .echo::<ListTopicsRequest, ListTopicsResponse>("ListTopics")
        .echo::<ListTopicSubscriptionsRequest, ListTopicSubscriptionsResponse>(
            "ListTopicSubscriptions",
        )
        .echo::<ListTopicSnapshotsRequest, ListTopicSnapshotsResponse>("ListTopicSnapshots")
        .echo::<DetachSubscriptionRequest, DetachSubscriptionResponse>("DetachSubscription");
    let subscriber = Methods::new("google.pubsub.v1.Subscriber", echo, refusals)
        .echo::<PullRequest, PullResponse>("Pull")
        .echo::<AcknowledgeRequest, ()>("Acknowledge")
        .echo::<ModifyAckDeadlineRequest, ()>("ModifyAckDeadline")
        .echo::<Subscription, Subscription>("CreateSubscription")
        .echo::<GetSubscriptionRequest, Subscription>("GetSubscription")
        .echo::<UpdateSubscriptionRequest, Subscription>("UpdateSubscription")
        .echo::<DeleteSubscriptionRequest, ()>("DeleteSubscription")
        .echo::<ListSubscriptionsRequest, ListSubscriptionsResponse>("ListSubscriptions")
        .echo::<ModifyPushConfigRequest, ()>("ModifyPushConfig")
        .echo::<SeekRequest, SeekResponse>("Seek")
        .echo::<CreateSnapshotRequest, Snapshot>("CreateSnapshot")
        .echo::<GetSnapshotRequest, Snapshot>("GetSnapshot")
        .echo::<UpdateSnapshotRequest, Snapshot>("UpdateSnapshot")
        .echo::<DeleteSnapshotRequest, ()>("DeleteSnapshot")
        .echo::<ListSnapshotsRequest, ListSnapshotsResponse>("ListSnapshots");
    let unary = tasks.unary.into_iter();
    unary
        .chain(publisher.unary)
        .chain(subscriber.unary)
        .collect()
}

/// Requests that become tasks.
pub(super) fn buffer(echo: &Arc<Echo>) -> BufferCall {
    let echo = Arc::clone(echo);
    Box::new(move |it| {
        let kind = it.headers.get("x-kind").unwrap();
        let asked = (it.queue, it.task_id, it.method, kind, it.body);
        Box::pin(std::future::ready(echo.reply("buffer", &asked)))
    })
}

// === impl Methods ===

impl Methods<Echo> {
    fn echo<Q, A>(self, name: &'static str) -> Self
    where
        Q: Message + Default + Debug + 'static,
        A: Message + Default + 'static,
    {
        self.wait(name, move |echo, request: Q| {
            let rpc = snake_case(name);
            std::future::ready(echo.reply::<A>(rpc.trim_start_matches('_'), &request))
        })
    }
}
