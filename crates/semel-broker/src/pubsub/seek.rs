//! Seeking: to a time, or to a snapshot.

use super::backlog::{Arrival, Seek};
use super::errors::{bad_argument, unwritten};
use super::house::House;
use super::rows;
use super::things::{Snapshot, Subscription, read_backlog};
use crate::clock::Time;
use crate::proto::pubsub as wire;
use crate::proto::pubsub::seek_request::Target;
use crate::storage::{Batch, Table};
use prost::Message;
use std::collections::BTreeSet;
use std::sync::Arc;
use tonic::Status;

// === impl House ===

impl House {
    pub(super) async fn seek(self: Arc<Self>, request: wire::SeekRequest) -> Result<(), Status> {
        let _alone = self.floor.write().await;
        let subscription = self.subscription(&request.subscription)?;
        if subscription.inside().settings.detached {
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
        self.touch(&subscription);
        Ok(())
    }

    async fn seek_time(&self, subscription: &Subscription, to: Time) -> Result<(), Status> {
        let mut batch = Batch::default();
        let from_topic = self.kept_by_topic(subscription, to, &mut batch)?;
        let seek = {
            let inside = subscription.inside();
            let seek = inside.backlog.seek(to);
            let retain = inside.backlog.rules().retain_acked;
            write_seek(&mut batch, inside.number, &seek, retain);
            seek
        };
        self.commit(batch).await?;
        let now = self.context.clock.now();
        let mut inside = subscription.inside();
        let ended = inside.backlog.sought(&seek, now);
        self.note(ended, now);
        for arrival in from_topic {
            inside.backlog.add(arrival, now);
        }
        Ok(())
    }

    /// What the topic still has from `to` on, and the subscription has not.
    fn kept_by_topic(
        &self,
        subscription: &Subscription,
        to: Time,
        batch: &mut Batch,
    ) -> Result<Vec<Arrival>, Status> {
        let topic = subscription.inside().settings.topic.clone();
        let topic = self.names().topics.get(&topic).cloned();
        let Some(kept) = topic.and_then(|topic| topic.inside().backlog) else {
            return Ok(Vec::new());
        };
        let mut arrivals = Vec::new();
        let inside = subscription.inside();
        rows::each_message(&self.context.storage, kept, |place, message| {
            let arrival = rows::arrival(place, &message);
            let missing = arrival.published >= to && !inside.backlog.holds(place);
            if missing && subscription.wants(&message) {
                let key = rows::message_key(inside.number, place);
                batch.put(Table::Messages, &key, message.encode_to_vec());
                arrivals.push(arrival);
            }
        })
        .map_err(|error| unwritten(&error))?;
        Ok(arrivals)
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
            let inside = subscription.inside();
            (inside.settings.clone(), inside.number)
        };
        self.clear(&mut batch, old)?;
        let mut open = BTreeSet::new();
        let storage = &self.context.storage;
        rows::each_message(storage, snapshot.number, |place, message| {
            // The snapshot may be of a subscription with another filter.
            if subscription.wants(&message) {
                open.insert(place);
                let key = rows::message_key(number, place);
                batch.put(Table::Messages, &key, message.encode_to_vec());
            }
        })
        .map_err(|error| unwritten(&error))?;
        if settings.retain_acked_messages {
            rows::each_message(storage, old, |place, message| {
                if open.insert(place) {
                    let key = rows::message_key(number, place);
                    batch.put(Table::Messages, &key, message.encode_to_vec());
                    rows::put_standing(&mut batch, number, place, &standing(true));
                }
            })
            .map_err(|error| unwritten(&error))?;
        }
        subscription.put(&mut batch, &settings, number);
        self.commit(batch).await?;
        let backlog = read_backlog(&self.context, &settings, number);
        let backlog = backlog.map_err(|error| unwritten(&error))?;
        let mut inside = subscription.inside();
        self.abandon(&mut inside);
        inside.backlog = backlog;
        inside.number = number;
        Ok(())
    }
}

fn standing(acknowledged: bool) -> wire::KeptStanding {
    wire::KeptStanding {
        attempts: 0,
        acknowledged,
    }
}

fn write_seek(batch: &mut Batch, number: u64, seek: &Seek, retain: bool) {
    for place in &seek.acknowledge {
        match retain {
            true => rows::put_standing(batch, number, *place, &standing(true)),
            false => rows::delete_message(batch, number, *place),
        }
    }
    for place in &seek.revive {
        rows::put_standing(batch, number, *place, &standing(false));
    }
}
