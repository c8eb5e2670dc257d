//! Publishing: one commit for all copies, then they are available.

use super::backlog::Sequence;
use super::filter;
use super::names::DELETED_SCHEMA;
use super::registry::Registry;
use super::resources::{Subscription, Topic, TopicState, message_id};
use super::rows;
use super::schemas;
use super::validate;
use crate::clock::{Time, span_of};
use crate::proto::pubsub as wire;
use crate::storage::{Batch, Table};
use bytes::Bytes;
use prost::Message;
use std::sync::Arc;
use tonic::Status;

/// Sequences that are reserved at once, so that not every publish writes the topic's row.
const RESERVED_AT_ONCE: u64 = 10_000;

/// Rows of the topic's own backlog that one publish looks at to throw old ones away, besides one for each it adds.
const SWEPT_AT_ONCE: usize = 16;

/// The attributes that tell receivers what a message was checked by.
const SCHEMA_NAME: &str = "googclient_schemaname";
const SCHEMA_REVISION: &str = "googclient_schemarevisionid";
const SCHEMA_ENCODING: &str = "googclient_schemaencoding";

/// Where the copies of a publish go.
#[derive(Debug)]
struct Copies {
    first: Sequence,
    now: Time,
    subscriptions: Vec<Arc<Subscription>>,
}

// === impl Registry ===

impl Registry {
    pub(super) async fn publish(
        self: Arc<Self>,
        request: wire::PublishRequest,
    ) -> Result<wire::PublishResponse, Status> {
        validate::check_messages(&request.messages)?;
        let _shared = self.topology.read().await;
        let topic = self.topic(&request.topic)?;
        let mut messages = request.messages;
        let schema = topic.state().settings.schema_settings.clone();
        if let Some(schema) = schema {
            self.check_by_schema(&schema, &mut messages)?;
        }
        let batch = Batch::default();
        let message_ids = self.publish_with(&topic, messages, batch).await?;
        Ok(wire::PublishResponse { message_ids })
    }

    /// Checks messages by a topic's schema. Those who receive them are told which revision they are of.
    fn check_by_schema(
        &self,
        settings: &wire::SchemaSettings,
        messages: &mut [wire::PubsubMessage],
    ) -> Result<(), Status> {
        if settings.schema == DELETED_SCHEMA {
            return Err(Status::not_found(
                "The schema of the topic was deleted: update the topic, then retry.",
            ));
        }
        let allowed = self.schema(&settings.schema)?.allowed(settings)?;
        let encoding = settings.encoding();
        for message in messages {
            let mut wrong = "no revision of the schema is left between the topic's first and last one; update the \
                             topic's schema settings"
                .to_owned();
            let revision = allowed.iter().find(|revision| {
                let checked = revision.definition.check(&message.data, encoding);
                checked.map_err(|why| wrong = why).is_ok()
            });
            let revision = revision.ok_or_else(|| schemas::bad_message(&wrong))?;
            message.attributes.extend([
                (SCHEMA_NAME.into(), settings.schema.clone()),
                (SCHEMA_REVISION.into(), revision.schema.revision_id.clone()),
                (SCHEMA_ENCODING.into(), encoding.as_str_name().into()),
            ]);
        }
        Ok(())
    }

    /// Publishes in one commit with other changes. The caller holds the topology lock.
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
        let first = self.allot(topic, messages.len()).await?;
        let copies = self.copy(topic, first, &mut messages, &mut batch);
        self.commit(batch).await?;
        self.make_available(&copies, &messages);
        Ok(messages.into_iter().map(|it| it.message_id).collect())
    }

    /// Sequences that nobody else gets, not even after a restart.
    async fn allot(&self, topic: &Topic, count: usize) -> Result<Sequence, Status> {
        let count = count as u64;
        if let Some(first) = topic.state().allot(count) {
            return Ok(first);
        }
        // One at a time: of two rows the one with less must not come last.
        let _alone = topic.reserving.lock().await;
        loop {
            let mut batch = Batch::default();
            let reserved = {
                let mut state = topic.state();
                if let Some(first) = state.allot(count) {
                    return Ok(first);
                }
                let reserved = state.next + count + RESERVED_AT_ONCE;
                state.put(&mut batch, topic.number, reserved);
                reserved
            };
            self.commit(batch).await?;
            topic.state().reserved = reserved;
        }
    }

    /// Gives every message its id and puts a copy into every backlog that wants it.
    fn copy(
        &self,
        topic: &Topic,
        first: Sequence,
        messages: &mut [wire::PubsubMessage],
        batch: &mut Batch,
    ) -> Copies {
        let mut state = topic.state();
        let now = to_the_millisecond(self.context.clock.now());
        let swept = messages.len() + SWEPT_AT_ONCE;
        self.sweep_topic(&mut state, swept, now, batch);
        for (sequence, message) in (first..).zip(messages.iter_mut()) {
            message.message_id = message_id(topic.number, sequence);
            message.publish_time = Some(now.timestamp());
            let row = Bytes::from(message.encode_to_vec());
            let subscriptions = state.subscriptions.iter().filter(|it| it.wants(message));
            let numbers = subscriptions.map(|it| it.state().number);
            let snapshots = state.snapshots.iter();
            let snapshots = snapshots.filter(|it| it.wants(message, now));
            let numbers = numbers.chain(snapshots.map(|it| it.number));
            for number in numbers.chain(state.backlog) {
                let key = rows::message_key(number, sequence);
                batch.put(Table::Messages, &key, row.clone());
            }
        }
        Copies {
            first,
            now,
            subscriptions: state.subscriptions.clone(),
        }
    }

    fn make_available(&self, copies: &Copies, messages: &[wire::PubsubMessage]) {
        for subscription in &copies.subscriptions {
            let mut state = subscription.state();
            let mut any = false;
            for (sequence, message) in (copies.first..).zip(messages) {
                if subscription.wants(message) {
                    let new_message = rows::new_message(sequence, message);
                    state.backlog.add(new_message, copies.now);
                    any = true;
                }
            }
            drop(state);
            if any {
                self.notify(subscription);
            }
        }
    }

    /// Throws away what a topic kept for long enough.
    fn sweep_topic(&self, state: &mut TopicState, limit: usize, now: Time, batch: &mut Batch) {
        let retention = state.settings.message_retention_duration.as_ref();
        let (Some(number), Some(retention)) = (state.backlog, retention.and_then(span_of)) else {
            return;
        };
        if now < state.sweep_at {
            return;
        }
        let storage = &self.context.storage;
        let oldest = storage.scan(Table::Messages, &number.to_be_bytes(), None, limit);
        state.sweep_at = now.plus(retention);
        for row in oldest.unwrap_or_default() {
            let message = rows::decode::<rows::Head>(row.value).unwrap_or_default();
            let published = message.publish_time.as_ref().map(Time::of);
            let end = published.unwrap_or_default().plus(retention);
            if end > now {
                state.sweep_at = end;
                return;
            }
            // There may be more of them.
            state.sweep_at = now;
            batch.delete(Table::Messages, &row.key);
        }
    }
}

// === impl Subscription ===

impl Subscription {
    pub(super) fn wants(&self, message: &wire::PubsubMessage) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|it| filter::wants(it, &message.attributes))
    }
}

/// Production tells publish times no finer.
fn to_the_millisecond(moment: Time) -> Time {
    Time(moment.0 - moment.0.rem_euclid(1000))
}
