//! Seeking: to a time, or to a snapshot.

use super::backlog::{NewMessage, Seek};
use super::errors::bad_argument;
use super::registry::Registry;
use super::resources::{Snapshot, Subscription, read_backlog};
use super::rows;
use crate::clock::Time;
use crate::proto::pubsub as wire;
use crate::proto::pubsub::seek_request::Target;
use crate::storage::{Batch, Table};
use prost::Message;
use std::collections::BTreeSet;
use std::sync::Arc;
use tonic::Status;

// === impl Registry ===

impl Registry {
    pub(super) async fn seek(
        self: Arc<Self>,
        request: wire::SeekRequest,
    ) -> Result<wire::SeekResponse, Status> {
        let _alone = self.topology.write().await;
        let subscription = self.subscription(&request.subscription)?;
        if subscription.state().settings.detached {
            return Err(super::errors::detached(&subscription.name));
        }
        match request.target {
            Some(Target::Time(to)) => self.seek_time(&subscription, Time::of(&to)).await?,
            Some(Target::Snapshot(name)) => {
                let snapshot = self.snapshot(&name)?;
                self.seek_snapshot(&subscription, &snapshot).await?;
            }
            None => return Err(bad_argument("target, it is a time or a snapshot")),
        }
        self.notify(&subscription);
        Ok(wire::SeekResponse {})
    }

    async fn seek_time(&self, subscription: &Subscription, to: Time) -> Result<(), Status> {
        let mut batch = Batch::default();
        let from_topic = self.kept_by_topic(subscription, to, &mut batch)?;
        let seek = {
            let state = subscription.state();
            let seek = state.backlog.seek(to);
            let retain = state.backlog.policy().retain_acked;
            write_seek(&mut batch, state.number, &seek, retain);
            seek
        };
        self.commit(batch).await?;
        let now = self.context.clock.now();
        let mut state = subscription.state();
        let ended = state.backlog.apply_seek(&seek, now);
        self.note(ended, now);
        for new_message in from_topic {
            state.backlog.replay(new_message, now);
        }
        Ok(())
    }

    /// What the topic still has from `to` on, and the subscription has not.
    fn kept_by_topic(
        &self,
        subscription: &Subscription,
        to: Time,
        batch: &mut Batch,
    ) -> Result<Vec<NewMessage>, Status> {
        let topic = subscription.state().settings.topic.clone();
        let topic = self.names().topics.get(&topic).cloned();
        let Some(kept) = topic.and_then(|topic| topic.state().backlog) else {
            return Ok(Vec::new());
        };
        let mut messages_added = Vec::new();
        let state = subscription.state();
        rows::each_message(&self.context.storage, kept, |sequence, message| {
            let new_message = rows::new_message(sequence, &message);
            let missing = new_message.published >= to && !state.backlog.holds(sequence);
            if missing && subscription.wants(&message) {
                let key = rows::message_key(state.number, sequence);
                batch.put(Table::Messages, &key, message.encode_to_vec());
                messages_added.push(new_message);
            }
        })?;
        Ok(messages_added)
    }

    /// The subscription gets a new backlog: a copy of the snapshot's.
    async fn seek_snapshot(
        &self,
        subscription: &Subscription,
        snapshot: &Snapshot,
    ) -> Result<(), Status> {
        if snapshot.topic_number != subscription.topic_number {
            return Err(bad_argument(
                "snapshot, it is of another topic than the subscription",
            ));
        }
        let mut batch = Batch::default();
        let number = self.number(&mut batch);
        let (settings, old) = {
            let state = subscription.state();
            (state.settings.clone(), state.number)
        };
        self.clear(&mut batch, old)?;
        let mut open = BTreeSet::new();
        let storage = &self.context.storage;
        rows::each_message(storage, snapshot.number, |sequence, message| {
            // The snapshot may be of a subscription with another filter.
            if subscription.wants(&message) {
                open.insert(sequence);
                let key = rows::message_key(number, sequence);
                batch.put(Table::Messages, &key, message.encode_to_vec());
            }
        })?;
        if settings.retain_acked_messages {
            rows::each_message(storage, old, |sequence, message| {
                if open.insert(sequence) {
                    let key = rows::message_key(number, sequence);
                    batch.put(Table::Messages, &key, message.encode_to_vec());
                    rows::end_message(&mut batch, number, sequence, 0, true);
                }
            })?;
        }
        subscription.put(&mut batch, &settings, number);
        self.commit(batch).await?;
        let backlog = read_backlog(&self.context, &settings, number)?;
        let mut state = subscription.state();
        self.abandon(&mut state);
        state.backlog = backlog;
        state.number = number;
        Ok(())
    }
}

fn write_seek(batch: &mut Batch, number: u64, seek: &Seek, retain: bool) {
    for sequence in &seek.acknowledge {
        rows::end_message(batch, number, *sequence, 0, retain);
    }
    for sequence in &seek.restart {
        rows::put_state(batch, number, *sequence, &wire::StoredState::default());
    }
}
