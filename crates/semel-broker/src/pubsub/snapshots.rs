//! Snapshots: silent backlogs that go on receiving what is published.

use super::errors::{already_exists, bad_argument, not_found};
use super::filter;
use super::names;
use super::registry::Registry;
use super::resources::Snapshot;
use super::{rows, update, validate};
use crate::clock::Time;
use crate::policies::Policies;
use crate::proto::pubsub as wire;
use crate::storage::{Batch, Table};
use prost::Message;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

const LIFE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
const LIFE_MIN: Duration = Duration::from_secs(3600);

// === impl Registry ===

impl Registry {
    pub(super) async fn create_snapshot(
        self: Arc<Self>,
        request: wire::CreateSnapshotRequest,
    ) -> Result<wire::Snapshot, Status> {
        names::check("name", &request.name, "snapshots")?;
        validate::check_labels(&request.labels, &HashMap::new())?;
        let _alone = self.topology.write().await;
        let subscription = self.subscription(&request.subscription)?;
        if self.snapshot(&request.name).is_ok() {
            return Err(already_exists(&request.name));
        }
        let (topic, number, open, filter) = {
            let state = subscription.state();
            let (topic, filter) = (&state.settings.topic, &state.settings.filter);
            let open = state.backlog.unacknowledged();
            (topic.clone(), state.number, open, filter.clone())
        };
        let mut batch = Batch::default();
        self.delete_expired(&mut batch)?;
        let now = self.context.clock.now();
        let oldest = open.first().map_or(now, |(_, published)| *published);
        let expires = oldest.plus(LIFE_MAX);
        if expires.since(now) < LIFE_MIN {
            return Err(Status::failed_precondition(
                "The snapshot would expire in less than 1 hour: its oldest message is too old.",
            ));
        }
        let settings = wire::Snapshot {
            name: request.name,
            topic: topic.clone(),
            expire_time: Some(expires.timestamp()),
            labels: request.labels,
        };
        let snapshot = Arc::new(Snapshot::kept(wire::StoredSnapshot {
            snapshot: Some(settings.clone()),
            backlog: self.number(&mut batch),
            topic_number: subscription.topic_number,
            filter,
        }));
        snapshot.put(&mut batch);
        for (sequence, _) in open {
            let key = rows::message_key(number, sequence);
            let row = self.context.storage.get(Table::Messages, &key);
            if let Some(row) = row? {
                let copy = rows::message_key(snapshot.number, sequence);
                batch.put(Table::Messages, &copy, row);
            }
        }
        self.commit(batch).await?;
        let mut names = self.names();
        if let Some(topic) = names.topics.get(&topic) {
            topic.state().snapshots.push(Arc::clone(&snapshot));
        }
        names.snapshots.insert(snapshot.name.clone(), snapshot);
        Ok(settings)
    }

    /// One that has not expired.
    pub(super) fn snapshot(&self, name: &str) -> Result<Arc<Snapshot>, Status> {
        names::check("snapshot", name, "snapshots")?;
        let snapshot = self.names().snapshots.get(name).cloned();
        let now = self.context.clock.now();
        let snapshot = snapshot.filter(|snapshot| snapshot.is_alive(now));
        snapshot.ok_or_else(|| not_found(name))
    }

    pub(super) fn get_snapshot(
        &self,
        request: &wire::GetSnapshotRequest,
    ) -> Result<wire::Snapshot, Status> {
        let snapshot = self.snapshot(&request.snapshot)?;
        let settings = snapshot.settings().clone();
        Ok(settings)
    }

    pub(super) fn list_snapshots(
        &self,
        request: &wire::ListSnapshotsRequest,
    ) -> Result<wire::ListSnapshotsResponse, Status> {
        let prefix = names::in_project(&request.project)?;
        let now = self.context.clock.now();
        let show = |it: &Arc<Snapshot>| it.is_alive(now).then(|| it.settings().clone());
        let (size, token) = (request.page_size, &request.page_token);
        let (snapshots, next_page_token) =
            names::page(&self.names().snapshots, &prefix, size, token, show)?;
        Ok(wire::ListSnapshotsResponse {
            snapshots,
            next_page_token,
        })
    }

    pub(super) fn list_topic_snapshots(
        &self,
        request: &wire::ListTopicSnapshotsRequest,
    ) -> Result<wire::ListTopicSnapshotsResponse, Status> {
        let topic = self.topic(&request.topic)?;
        let now = self.context.clock.now();
        let all = topic.state().snapshots.clone().into_iter();
        let all: BTreeMap<_, _> = all.map(|it| (it.name.clone(), it)).collect();
        let show = |it: &Arc<Snapshot>| it.is_alive(now).then(|| it.name.clone());
        let (size, token) = (request.page_size, &request.page_token);
        let (snapshots, next_page_token) = names::page(&all, "projects/", size, token, show)?;
        Ok(wire::ListTopicSnapshotsResponse {
            snapshots,
            next_page_token,
        })
    }

    pub(super) async fn update_snapshot(
        self: Arc<Self>,
        request: wire::UpdateSnapshotRequest,
    ) -> Result<wire::Snapshot, Status> {
        let wanted = request.snapshot.unwrap_or_default();
        let _alone = self.topology.write().await;
        let snapshot = self.snapshot(&wanted.name)?;
        let old = snapshot.settings().clone();
        let settings = update::SNAPSHOT.merged(&old, &wanted, request.update_mask.as_ref())?;
        validate::check_labels(&settings.labels, &old.labels)?;
        if settings.expire_time != old.expire_time {
            self.check_expire_time(&settings)?;
        }
        let mut batch = Batch::default();
        snapshot.put_with(&mut batch, &settings);
        self.commit(batch).await?;
        snapshot.settings().clone_from(&settings);
        Ok(settings)
    }

    /// Not before now, nor later than a snapshot that is made now can expire.
    fn check_expire_time(&self, settings: &wire::Snapshot) -> Result<(), Status> {
        let now = self.context.clock.now();
        let expires = settings.expire_time.as_ref().map(Time::of);
        if expires.is_some_and(|it| it > now && it <= now.plus(LIFE_MAX)) {
            return Ok(());
        }
        Err(bad_argument(
            "snapshot.expire_time, it is in the future, at most 7 days from now",
        ))
    }

    pub(super) async fn delete_snapshot(
        self: Arc<Self>,
        request: wire::DeleteSnapshotRequest,
    ) -> Result<(), Status> {
        let _alone = self.topology.write().await;
        let snapshot = self.snapshot(&request.snapshot)?;
        let mut batch = Batch::default();
        self.remove(&snapshot, &mut batch)?;
        self.commit(batch).await
    }

    fn delete_expired(&self, batch: &mut Batch) -> Result<(), Status> {
        let now = self.context.clock.now();
        let all: Vec<_> = self.names().snapshots.values().cloned().collect();
        let mut expired = all.iter().filter(|it| !it.is_alive(now));
        expired.try_for_each(|it| self.remove(it, batch))
    }

    fn remove(&self, snapshot: &Arc<Snapshot>, batch: &mut Batch) -> Result<(), Status> {
        batch.delete(Table::Snapshots, snapshot.name.as_bytes());
        Policies::delete(batch, &snapshot.name);
        self.clear(batch, snapshot.number)?;
        let mut names = self.names();
        names.snapshots.remove(&snapshot.name);
        let topic = snapshot.settings().topic.clone();
        if let Some(topic) = names.topics.get(&topic) {
            let stays = |it: &Arc<Snapshot>| !Arc::ptr_eq(it, snapshot);
            topic.state().snapshots.retain(stays);
        }
        Ok(())
    }
}

// === impl Snapshot ===

impl Snapshot {
    /// Whether it wants a message published now.
    pub(super) fn wants(&self, message: &wire::PubsubMessage, now: Time) -> bool {
        let filter = self.filter.as_ref();
        self.is_alive(now) && filter.is_none_or(|it| filter::wants(it, &message.attributes))
    }

    fn is_alive(&self, now: Time) -> bool {
        let expires = self.settings().expire_time.as_ref().map(Time::of);
        expires.is_none_or(|expires| expires > now)
    }

    pub(super) fn put(&self, batch: &mut Batch) {
        let settings = self.settings().clone();
        self.put_with(batch, &settings);
    }

    fn put_with(&self, batch: &mut Batch, settings: &wire::Snapshot) {
        let kept = wire::StoredSnapshot {
            snapshot: Some(settings.clone()),
            backlog: self.number,
            topic_number: self.topic_number,
            filter: self.filter_text.clone(),
        };
        let name = self.name.as_bytes();
        batch.put(Table::Snapshots, name, kept.encode_to_vec());
    }
}
