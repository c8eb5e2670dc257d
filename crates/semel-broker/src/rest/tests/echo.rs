//! Services that remember what they were asked, and answer what they were told to.

use super::super::Buffer;
use crate::proto::pubsub::publisher_server::Publisher;
use crate::proto::pubsub::subscriber_server::Subscriber;
use crate::proto::pubsub::*;
use crate::proto::tasks::cloud_tasks_server::CloudTasks;
use crate::proto::tasks::*;
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method};
use prost::Message;
use std::fmt::Debug;
use std::sync::Mutex;
use tonic::{Request, Response, Status};

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

macro_rules! rpcs {
    ($service:ident: $($rpc:ident: $ask:ty => $answer:ty,)*) => {
        #[async_trait]
        impl $service for Echo {
            $(async fn $rpc(&self, request: Request<$ask>) -> Result<Response<$answer>, Status> {
                self.reply(stringify!($rpc), request.get_ref()).map(Response::new)
            })*
        }
    };
}

rpcs! {
    CloudTasks:
    create_task: CreateTaskRequest => Task,
    get_task: GetTaskRequest => Task,
    delete_task: DeleteTaskRequest => (),
    list_tasks: ListTasksRequest => ListTasksResponse,
    run_task: RunTaskRequest => Task,
    list_queues: ListQueuesRequest => ListQueuesResponse,
    get_queue: GetQueueRequest => Queue,
    create_queue: CreateQueueRequest => Queue,
    update_queue: UpdateQueueRequest => Queue,
    delete_queue: DeleteQueueRequest => (),
    purge_queue: PurgeQueueRequest => Queue,
    pause_queue: PauseQueueRequest => Queue,
    resume_queue: ResumeQueueRequest => Queue,
}

rpcs! {
    Publisher:
    publish: PublishRequest => PublishResponse,
    create_topic: Topic => Topic,
    get_topic: GetTopicRequest => Topic,
    update_topic: UpdateTopicRequest => Topic,
    delete_topic: DeleteTopicRequest => (),
    list_topics: ListTopicsRequest => ListTopicsResponse,
    list_topic_subscriptions: ListTopicSubscriptionsRequest => ListTopicSubscriptionsResponse,
    list_topic_snapshots: ListTopicSnapshotsRequest => ListTopicSnapshotsResponse,
    detach_subscription: DetachSubscriptionRequest => DetachSubscriptionResponse,
}

rpcs! {
    Subscriber:
    pull: PullRequest => PullResponse,
    acknowledge: AcknowledgeRequest => (),
    modify_ack_deadline: ModifyAckDeadlineRequest => (),
    create_subscription: Subscription => Subscription,
    get_subscription: GetSubscriptionRequest => Subscription,
    update_subscription: UpdateSubscriptionRequest => Subscription,
    delete_subscription: DeleteSubscriptionRequest => (),
    list_subscriptions: ListSubscriptionsRequest => ListSubscriptionsResponse,
    modify_push_config: ModifyPushConfigRequest => (),
    seek: SeekRequest => SeekResponse,
    create_snapshot: CreateSnapshotRequest => Snapshot,
    get_snapshot: GetSnapshotRequest => Snapshot,
    update_snapshot: UpdateSnapshotRequest => Snapshot,
    delete_snapshot: DeleteSnapshotRequest => (),
    list_snapshots: ListSnapshotsRequest => ListSnapshotsResponse,
}

#[async_trait]
impl Buffer for Echo {
    async fn buffer(
        &self,
        queue: &str,
        task_id: Option<&str>,
        method: &Method,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Task, Status> {
        let kind = headers.get("x-kind").unwrap();
        self.reply("buffer", &(queue, task_id, method, kind, body))
    }
}
