//! Making what was declared so, through the same doors as everybody.

use super::Declared;
use crate::proto::pubsub::{
    GetSubscriptionRequest, Subscription, Topic, UpdateSubscriptionRequest,
};
use crate::proto::tasks::UpdateQueueRequest;
use crate::pubsub::{PubSub, Registry};
use crate::tasks::Tasks;
use prost_types::FieldMask;
use std::sync::Arc;
use tonic::{Code, Status};

/// Something declared could not be made so.
#[derive(Clone, Debug, thiserror::Error)]
#[error("declared {name}: {why}")]
pub(crate) struct NotApplied {
    name: String,
    why: String,
}

/// What may be changed about a subscription once it is there.
const CHANGEABLE: [&str; 5] = [
    "push_config",
    "ack_deadline_seconds",
    "enable_exactly_once_delivery",
    "dead_letter_policy",
    "retry_policy",
];

// === impl Declared ===

impl Declared {
    /// Makes it so: what is missing is made, what is there is changed. It can be repeated.
    pub(crate) async fn apply(
        &self,
        tasks: &Arc<Tasks>,
        pubsub: &PubSub,
    ) -> Result<(), NotApplied> {
        for queue in &self.queues {
            // It makes the queue if there is none.
            let request = UpdateQueueRequest {
                queue: Some(queue.clone()),
                update_mask: None,
            };
            let answer = Arc::clone(tasks).update_queue(request).await;
            answer.map_err(|status| NotApplied::queue(&queue.name, &status))?;
        }
        for name in &self.topics {
            let topic = Topic {
                name: name.clone(),
                ..Topic::default()
            };
            match pubsub.registry().create_topic(topic).await {
                Ok(_) => {}
                Err(status) if status.code() == Code::AlreadyExists => {}
                Err(status) => return Err(NotApplied::new(name, &status)),
            }
        }
        for subscription in &self.subscriptions {
            subscribe(&pubsub.registry(), subscription).await?;
        }
        Ok(())
    }
}

async fn subscribe(pubsub: &Arc<Registry>, declared: &Subscription) -> Result<(), NotApplied> {
    let failed = |status| NotApplied::new(&declared.name, &status);
    let create = Arc::clone(pubsub).create_subscription(declared.clone());
    match create.await {
        Ok(_) => return Ok(()),
        Err(status) if status.code() == Code::AlreadyExists => {}
        Err(status) => return Err(failed(status)),
    }
    let request = GetSubscriptionRequest {
        subscription: declared.name.clone(),
    };
    let there = pubsub.get_subscription(&request).map_err(failed)?;
    check(declared, &there)?;
    let request = UpdateSubscriptionRequest {
        subscription: Some(declared.clone()),
        update_mask: Some(FieldMask {
            paths: CHANGEABLE.map(Into::into).into(),
        }),
    };
    let updated = Arc::clone(pubsub).update_subscription(request).await;
    updated.map(drop).map_err(failed)
}

/// Refuses to keep a subscription that can never become what is declared.
fn check(declared: &Subscription, there: &Subscription) -> Result<(), NotApplied> {
    let differing = [
        ("topic", declared.topic != there.topic),
        ("filter", declared.filter != there.filter),
        (
            "ordering",
            declared.enable_message_ordering != there.enable_message_ordering,
        ),
    ];
    match differing.into_iter().find(|(_, differs)| *differs) {
        Some((what, _)) => Err(NotApplied {
            name: declared.name.clone(),
            why: format!(
                "it is there with another {what}, which cannot be changed: delete it, or start in a fresh directory"
            ),
        }),
        None => Ok(()),
    }
}

// === impl NotApplied ===

impl NotApplied {
    fn queue(name: &str, status: &Status) -> Self {
        let mut not = Self::new(name, status);
        if status.code() == Code::FailedPrecondition {
            let hint = " It was deleted less than three days ago: declare another name, or start in a fresh directory.";
            not.why.push_str(hint);
        }
        not
    }

    fn new(name: &str, status: &Status) -> Self {
        Self {
            name: name.into(),
            why: status.message().into(),
        }
    }
}
