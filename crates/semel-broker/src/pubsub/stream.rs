//! `StreamingPull`: messages as they come, for as long as the client has room for them.

use super::backlog::{Capacity, Consumer};
use super::errors::bad_argument;
use super::pull::RESPONSE_BYTES_MAX;
use super::registry::Registry;
use super::resources::Subscription;
use super::validate;
use crate::interface::is_not_served;
use crate::proto::pubsub as wire;
use crate::proto::pubsub::streaming_pull_response::{
    AcknowledgeConfirmation, ModifyAckDeadlineConfirmation, SubscriptionProperties,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

/// What a response holds at most.
const RESPONSE_MESSAGES_MAX: usize = 1000;

/// What the client gets.
pub(super) type Responses = ReceiverStream<Result<wire::StreamingPullResponse, Status>>;

/// What the client sends.
pub(super) type Frames = Streaming<wire::StreamingPullRequest>;

/// One open stream.
#[derive(Debug)]
struct PullStream {
    registry: Arc<Registry>,
    subscription: Arc<Subscription>,
    consumer: Consumer,
    deadline: Option<Duration>,
    capacity: Capacity,
    responses: mpsc::Sender<Result<wire::StreamingPullResponse, Status>>,
}

/// Opens a stream: the first frame says which.
pub(super) async fn open(registry: Arc<Registry>, mut frames: Frames) -> Result<Responses, Status> {
    let first = frames.next().await.transpose()?;
    let first = first.ok_or_else(|| bad_argument("subscription, the first frame names it"))?;
    let subscription = registry.subscription(&first.subscription)?;
    validate::check_ack_deadline(
        "stream_ack_deadline_seconds",
        first.stream_ack_deadline_seconds,
    )?;
    let (sender, responses) = mpsc::channel(1);
    subscription.state().streams += 1;
    let puller = PullStream {
        consumer: Consumer::Stream(registry.consumer()),
        deadline: None,
        capacity: Capacity {
            messages: limit(first.max_outstanding_messages),
            bytes: limit(first.max_outstanding_bytes),
        },
        registry,
        subscription,
        responses: sender,
    };
    // Fails at once where it cannot go on, and else shows the client an open stream.
    puller.check_open()?;
    tokio::spawn(puller.run(first, frames));
    Ok(ReceiverStream::new(responses))
}

// === impl PullStream ===

impl PullStream {
    async fn run(mut self, first: wire::StreamingPullRequest, mut frames: Frames) {
        let closed = self.registry.closed.clone();
        let responses = self.responses.clone();
        let subscription = Arc::clone(&self.subscription);
        let mut wake = subscription.wake.subscribe();
        let mut ended = self.answer(wire::StreamingPullResponse::default()).await;
        if ended.is_ok() {
            ended = self.handle_frame(first).await;
        }
        let mut may_have_more = true;
        while ended.is_ok() {
            ended = tokio::select! {
                frame = frames.next() => {
                    may_have_more = true;
                    match frame {
                        Some(Ok(frame)) => self.handle_frame(frame).await,
                        Some(Err(status)) if is_not_served(&status) => Err(status),
                        Some(Err(_)) | None => return,
                    }
                }
                _ = wake.changed() => {
                    may_have_more = true;
                    self.check_open()
                }
                ready = responses.reserve(), if may_have_more => match ready {
                    Err(_) => return,
                    Ok(permit) => self.take().map(|response| match response {
                        Some(response) => permit.send(Ok(response)),
                        None => may_have_more = false,
                    }),
                },
                () = responses.closed() => return,
                () = closed.cancelled() => Err(Status::unavailable("The broker stops.")),
            };
        }
        if let Err(status) = ended {
            // A client that is gone does not need to know.
            drop(self.responses.send(Err(status)).await);
        }
    }

    /// What there is for this stream, if anything: its share, and no more than it has room for.
    fn take(&self) -> Result<Option<wire::StreamingPullResponse>, Status> {
        let capacity = {
            let state = self.subscription.state();
            let load = state.backlog.load(self.consumer);
            let share = state.backlog.waiting().div_ceil(state.streams.max(1));
            let free = self.capacity.messages.saturating_sub(load.messages);
            let bytes = self.capacity.bytes.saturating_sub(load.bytes);
            Capacity {
                messages: free.min(share.max(1)).min(RESPONSE_MESSAGES_MAX),
                bytes: bytes.min(RESPONSE_BYTES_MAX),
            }
        };
        let received = self.lease_messages(capacity)?;
        Ok((!received.is_empty()).then(|| wire::StreamingPullResponse {
            received_messages: received,
            subscription_properties: Some(self.properties()),
            ..Default::default()
        }))
    }

    /// Whether the stream may go on.
    fn check_open(&self) -> Result<(), Status> {
        let none = Capacity {
            messages: 0,
            bytes: 0,
        };
        self.lease_messages(none).map(drop)
    }

    fn lease_messages(&self, capacity: Capacity) -> Result<Vec<wire::ReceivedMessage>, Status> {
        self.registry
            .lease_messages(&self.subscription, self.consumer, self.deadline, capacity)
    }

    /// Does what a frame asks for.
    async fn handle_frame(&mut self, frame: wire::StreamingPullRequest) -> Result<(), Status> {
        if frame.stream_ack_deadline_seconds != 0 {
            let seconds = frame.stream_ack_deadline_seconds;
            validate::check_ack_deadline("stream_ack_deadline_seconds", seconds)?;
            self.deadline = Some(Duration::from_secs(u64::from(seconds.unsigned_abs())));
        }
        if !frame.ack_ids.is_empty() {
            self.acknowledge(frame.ack_ids).await?;
        }
        if frame.modify_deadline_ack_ids.len() != frame.modify_deadline_seconds.len() {
            return Err(bad_argument(
                "modify_deadline_seconds, there is one for each of modify_deadline_ack_ids",
            ));
        }
        if !frame.modify_deadline_ack_ids.is_empty() {
            self.modify(frame.modify_deadline_ack_ids, frame.modify_deadline_seconds)
                .await?;
        }
        Ok(())
    }

    async fn acknowledge(&self, ids: Vec<String>) -> Result<(), Status> {
        let registry = &self.registry;
        let invalid = registry.acknowledge_ids(&self.subscription, &ids).await?;
        let (ack_ids, invalid_ack_ids) = split(ids, &invalid);
        self.confirm(wire::StreamingPullResponse {
            acknowledge_confirmation: Some(AcknowledgeConfirmation {
                ack_ids,
                invalid_ack_ids,
                ..Default::default()
            }),
            ..Default::default()
        })
        .await
    }

    async fn modify(&self, ids: Vec<String>, seconds: Vec<i32>) -> Result<(), Status> {
        let pairs = ids.iter().zip(seconds);
        let invalid = self.registry.modify_ids(&self.subscription, pairs)?;
        let (ack_ids, invalid_ack_ids) = split(ids, &invalid);
        self.confirm(wire::StreamingPullResponse {
            modify_ack_deadline_confirmation: Some(ModifyAckDeadlineConfirmation {
                ack_ids,
                invalid_ack_ids,
                ..Default::default()
            }),
            ..Default::default()
        })
        .await
    }

    /// Only exactly-once delivery confirms.
    async fn confirm(&self, response: wire::StreamingPullResponse) -> Result<(), Status> {
        match self.properties().exactly_once_delivery_enabled {
            true => self.answer(response).await,
            false => Ok(()),
        }
    }

    async fn answer(&self, mut response: wire::StreamingPullResponse) -> Result<(), Status> {
        response.subscription_properties = Some(self.properties());
        let sent = self.responses.send(Ok(response)).await;
        sent.map_err(|_| Status::cancelled("The client is gone."))
    }

    fn properties(&self) -> SubscriptionProperties {
        let state = self.subscription.state();
        SubscriptionProperties {
            exactly_once_delivery_enabled: state.settings.enable_exactly_once_delivery,
            message_ordering_enabled: state.settings.enable_message_ordering,
        }
    }
}

impl Drop for PullStream {
    fn drop(&mut self) {
        let mut state = self.subscription.state();
        state.streams = state.streams.saturating_sub(1);
    }
}

/// The valid ids, and the others.
fn split(ids: Vec<String>, invalid: &[String]) -> (Vec<String>, Vec<String>) {
    ids.into_iter().partition(|id| !invalid.contains(id))
}

/// 0 and less mean no limit.
fn limit(wanted: i64) -> usize {
    match usize::try_from(wanted) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(limit) => limit,
    }
}
