//! Publishing: one commit for all copies, then they are available.

use super::backlog::Place;
use super::house::House;
use super::limits;
use super::rows;
use super::things::{Subscription, Topic, message_id};
use crate::clock::{Time, span_of};
use crate::proto::pubsub as wire;
use crate::shelf::{Batch, Table};
use bytes::Bytes;
use prost::Message;
use std::sync::Arc;
use tonic::Status;

/// Sequences that are reserved at once, so that not every publish writes the topic's row.
const RESERVED_AT_ONCE: u64 = 10_000;

/// Rows of the topic's own backlog that one publish looks at to throw old ones away.
const SWEPT_AT_ONCE: usize = 16;

/// Where the copies of a publish go.
#[derive(Debug)]
struct Copies {
    first: Place,
    now: Time,
    /// What the topic's row says from now on, if it changed.
    reserved: Option<Place>,
    subscriptions: Vec<Arc<Subscription>>,
}

// === impl House ===

impl House {
    pub(super) async fn publish(
        self: Arc<Self>,
        request: wire::PublishRequest,
    ) -> Result<wire::PublishResponse, Status> {
        limits::check_messages(&request.messages)?;
        let _shared = self.floor.read().await;
        let topic = self.topic(&request.topic)?;
        let batch = Batch::default();
        let message_ids = self.publish_with(&topic, request.messages, batch).await?;
        Ok(wire::PublishResponse { message_ids })
    }

    /// Publishes in one commit with other changes. The floor is held by the caller.
    pub(super) async fn publish_with(
        &self,
        topic: &Topic,
        mut messages: Vec<wire::PubsubMessage>,
        mut batch: Batch,
    ) -> Result<Vec<String>, Status> {
        let ordered = messages.iter().any(|it| !it.ordering_key.is_empty());
        let _in_order = match ordered {
            true => Some(topic.order.lock().await),
            false => None,
        };
        let copies = self.copy(topic, &mut messages, &mut batch);
        self.commit(batch).await?;
        if let Some(reserved) = copies.reserved {
            let mut inside = topic.inside();
            inside.reserved = inside.reserved.max(reserved);
        }
        self.make_available(&copies, &messages);
        Ok(messages.into_iter().map(|it| it.message_id).collect())
    }

    /// Gives every message its id and puts a copy into every backlog that wants it.
    fn copy(
        &self,
        topic: &Topic,
        messages: &mut [wire::PubsubMessage],
        batch: &mut Batch,
    ) -> Copies {
        let mut inside = topic.inside();
        let now = to_the_millisecond(self.world.clock.now());
        let first = inside.next;
        inside.next += messages.len() as u64;
        let reserved = (inside.next > inside.reserved).then_some(inside.next + RESERVED_AT_ONCE);
        if let Some(reserved) = reserved {
            inside.put(batch, topic.number, reserved);
        }
        self.sweep_topic(inside.backlog, &inside.settings, now, batch);
        for (place, message) in (first..).zip(messages.iter_mut()) {
            message.message_id = message_id(topic.number, place);
            message.publish_time = Some(now.timestamp());
            let row = Bytes::from(message.encode_to_vec());
            let subscriptions = inside.subscriptions.iter().filter(|it| it.wants(message));
            let numbers = subscriptions.map(|it| it.inside().number);
            let snapshots = inside.snapshots.iter();
            let snapshots = snapshots.filter(|it| it.wants(message, now));
            let numbers = numbers.chain(snapshots.map(|it| it.number));
            for number in numbers.chain(inside.backlog) {
                let key = rows::message_key(number, place);
                batch.put(Table::Messages, &key, row.clone());
            }
        }
        Copies {
            first,
            now,
            reserved,
            subscriptions: inside.subscriptions.clone(),
        }
    }

    fn make_available(&self, copies: &Copies, messages: &[wire::PubsubMessage]) {
        for subscription in &copies.subscriptions {
            let mut inside = subscription.inside();
            let mut any = false;
            for (place, message) in (copies.first..).zip(messages) {
                if subscription.wants(message) {
                    let arrival = rows::arrival(place, message, &wire::KeptStanding::default());
                    inside.backlog.add(arrival, copies.now);
                    any = true;
                }
            }
            drop(inside);
            if any {
                self.touch(subscription);
            }
        }
    }

    /// Throws away what a topic kept for long enough.
    fn sweep_topic(
        &self,
        backlog: Option<u64>,
        settings: &wire::Topic,
        now: Time,
        batch: &mut Batch,
    ) {
        let retention = settings.message_retention_duration.as_ref();
        let (Some(number), Some(retention)) = (backlog, retention.and_then(span_of)) else {
            return;
        };
        let prefix = number.to_be_bytes();
        let oldest = self
            .world
            .shelf
            .scan(Table::Messages, &prefix, None, SWEPT_AT_ONCE);
        for row in oldest.unwrap_or_default() {
            let message: Result<wire::PubsubMessage, _> = rows::decode(&row.value);
            let published = message.ok().and_then(|message| message.publish_time);
            if published.is_some_and(|at| Time::of(&at).plus(retention) <= now) {
                batch.delete(Table::Messages, &row.key);
            }
        }
    }
}

// === impl Subscription ===

impl Subscription {
    pub(super) fn wants(&self, message: &wire::PubsubMessage) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|filter| filter.wants(&message.attributes))
    }
}

/// Production tells publish times no finer.
fn to_the_millisecond(moment: Time) -> Time {
    Time(moment.0 - moment.0.rem_euclid(1000))
}
