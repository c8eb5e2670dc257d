//! Topics, subscriptions and snapshots as they are in memory.

use super::backlog::{Backlog, Place};
use super::filter::Filter;
use super::push::Pace;
use super::{limits, rows};
use crate::clock::Time;
use crate::context::Context;
use crate::proto::pubsub as wire;
use crate::storage::{Batch, StorageError, Table};
use prost::Message;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct Topic {
    pub(super) number: u64,
    inside: Mutex<TopicInside>,
    /// Held while messages with ordering keys are published: they become available in order.
    pub(super) order: tokio::sync::Mutex<()>,
    /// Held while sequences are reserved.
    pub(super) reserving: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
pub(super) struct TopicInside {
    pub(super) settings: wire::Topic,
    /// The next message's sequence.
    pub(super) next: Place,
    /// No committed message has this sequence or a later one.
    pub(super) reserved: Place,
    /// Its own backlog, while it has a retention.
    pub(super) backlog: Option<u64>,
    /// Before this moment nothing in its backlog is too old.
    pub(super) sweep_at: Time,
    pub(super) subscriptions: Vec<Arc<Subscription>>,
    pub(super) snapshots: Vec<Arc<Snapshot>>,
}

#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) name: String,
    pub(super) topic_number: u64,
    pub(super) filter: Option<Filter>,
    inside: Mutex<Inside>,
    /// Says that something is to be done: by its keeper, or by who waits for messages.
    pub(super) wake: watch::Sender<()>,
}

#[derive(Debug)]
pub(super) struct Inside {
    pub(super) settings: wire::Subscription,
    pub(super) number: u64,
    pub(super) backlog: Backlog,
    pub(super) pace: Pace,
    /// How many streams share it.
    pub(super) streams: usize,
    pub(super) deleted: bool,
}

#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) name: String,
    pub(super) number: u64,
    pub(super) topic_number: u64,
    pub(super) filter: Option<Filter>,
    pub(super) filter_text: String,
    settings: Mutex<wire::Snapshot>,
}

// === impl Topic ===

impl Topic {
    pub(super) fn kept(kept: wire::KeptTopic) -> Self {
        let settings = kept.topic.unwrap_or_default();
        Self {
            number: kept.number,
            inside: Mutex::new(TopicInside {
                settings,
                next: kept.reserved.max(1),
                reserved: kept.reserved.max(1),
                backlog: Some(kept.backlog).filter(|backlog| *backlog != 0),
                sweep_at: Time::default(),
                subscriptions: Vec::new(),
                snapshots: Vec::new(),
            }),
            order: tokio::sync::Mutex::default(),
            reserving: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn inside(&self) -> MutexGuard<'_, TopicInside> {
        self.inside.lock().expect("nobody panics holding it")
    }
}

// === impl TopicInside ===

impl TopicInside {
    /// So many sequences, if they are reserved.
    pub(super) fn allot(&mut self, count: u64) -> Option<Place> {
        let first = self.next;
        let next = first + count;
        (next <= self.reserved).then(|| {
            self.next = next;
            first
        })
    }

    pub(super) fn put(&self, batch: &mut Batch, number: u64, reserved: Place) {
        let kept = wire::KeptTopic {
            topic: Some(self.settings.clone()),
            number,
            reserved,
            backlog: self.backlog.unwrap_or(0),
        };
        let name = self.settings.name.as_bytes();
        batch.put(Table::Topics, name, kept.encode_to_vec());
    }
}

// === impl Subscription ===

impl Subscription {
    /// With the messages that are in storage for it.
    pub(super) fn kept(
        context: &Context,
        kept: wire::KeptSubscription,
    ) -> Result<Self, StorageError> {
        let settings = kept.subscription.unwrap_or_default();
        let filter = Filter::read(&settings.filter);
        let filter =
            filter.map_err(|error| StorageError(format!("a filter is damaged: {error}")))?;
        let backlog = read_backlog(context, &settings, kept.backlog)?;
        Ok(Self {
            name: settings.name.clone(),
            topic_number: kept.topic_number,
            filter,
            inside: Mutex::new(Inside {
                settings,
                number: kept.backlog,
                backlog,
                pace: Pace::default(),
                streams: 0,
                deleted: false,
            }),
            wake: watch::channel(()).0,
        })
    }

    pub(super) fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().expect("nobody panics holding it")
    }

    /// Puts its row with these settings and this backlog.
    pub(super) fn put(&self, batch: &mut Batch, settings: &wire::Subscription, number: u64) {
        let kept = wire::KeptSubscription {
            subscription: Some(settings.clone()),
            backlog: number,
            topic_number: self.topic_number,
        };
        let name = self.name.as_bytes();
        batch.put(Table::Subscriptions, name, kept.encode_to_vec());
    }

    /// A message's id: its topic's number and its own there.
    pub(super) fn message_id(&self, place: Place) -> String {
        message_id(self.topic_number, place)
    }
}

// === impl Inside ===

impl Inside {
    pub(super) fn pushes(&self) -> bool {
        let push = self.settings.push_config.as_ref();
        push.is_some_and(|push| !push.push_endpoint.is_empty())
    }

    pub(super) fn is_busy(&self) -> bool {
        self.backlog.unfinished() > 0 || self.pace.is_running()
    }
}

// === impl Snapshot ===

impl Snapshot {
    pub(super) fn kept(kept: wire::KeptSnapshot) -> Self {
        let settings = kept.snapshot.unwrap_or_default();
        Self {
            name: settings.name.clone(),
            number: kept.backlog,
            topic_number: kept.topic_number,
            filter: Filter::read(&kept.filter).ok().flatten(),
            filter_text: kept.filter,
            settings: Mutex::new(settings),
        }
    }

    pub(super) fn settings(&self) -> MutexGuard<'_, wire::Snapshot> {
        self.settings.lock().expect("nobody panics holding it")
    }
}

/// A message's id is unique in the whole broker.
pub(super) fn message_id(topic_number: u64, place: Place) -> String {
    format!("{topic_number}{place:012}")
}

/// A subscription's backlog as it is in storage.
pub(super) fn read_backlog(
    context: &Context,
    settings: &wire::Subscription,
    number: u64,
) -> Result<Backlog, StorageError> {
    let now = context.clock.now();
    let deliveries = u64::try_from(now.0).unwrap_or(0);
    let mut backlog = Backlog::new(limits::rules(settings), deliveries);
    rows::each_head(&context.storage, number, |arrival| {
        backlog.add(arrival, now)
    })?;
    Ok(backlog)
}
