//! Topics, subscriptions and snapshots as they are in memory.

use super::backlog::{Backlog, Sequence};
use super::filter::{self, MessageFilter};
use super::push::PushWindow;
use super::{rows, validate};
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
    state: Mutex<TopicState>,
    /// Held while messages with ordering keys are published: they become available in order.
    pub(super) order: tokio::sync::Mutex<()>,
    /// Held while sequences are reserved.
    pub(super) reserving: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
pub(super) struct TopicState {
    pub(super) settings: wire::Topic,
    /// The next message's sequence.
    pub(super) next: Sequence,
    /// No committed message has this sequence or a later one.
    pub(super) reserved: Sequence,
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
    pub(super) filter: Option<MessageFilter>,
    state: Mutex<SubscriptionState>,
    /// Says that something is to be done: by its worker, or by who waits for messages.
    pub(super) wake: watch::Sender<()>,
}

#[derive(Debug)]
pub(super) struct SubscriptionState {
    pub(super) settings: wire::Subscription,
    pub(super) number: u64,
    pub(super) backlog: Backlog,
    pub(super) push_window: PushWindow,
    /// How many streams share it.
    pub(super) streams: usize,
    pub(super) deleted: bool,
}

#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) name: String,
    pub(super) number: u64,
    pub(super) topic_number: u64,
    pub(super) filter: Option<MessageFilter>,
    pub(super) filter_text: String,
    settings: Mutex<wire::Snapshot>,
}

// === impl Topic ===

impl Topic {
    pub(super) fn kept(kept: wire::StoredTopic) -> Self {
        let settings = kept.topic.unwrap_or_default();
        Self {
            number: kept.number,
            state: Mutex::new(TopicState {
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

    pub(super) fn state(&self) -> MutexGuard<'_, TopicState> {
        self.state.lock().expect("nobody panics holding it")
    }
}

// === impl TopicState ===

impl TopicState {
    /// So many sequences, if they are reserved.
    pub(super) fn allot(&mut self, count: u64) -> Option<Sequence> {
        let first = self.next;
        let next = first + count;
        (next <= self.reserved).then(|| {
            self.next = next;
            first
        })
    }

    pub(super) fn put(&self, batch: &mut Batch, number: u64, reserved: Sequence) {
        put_topic(batch, &self.settings, number, reserved, self.backlog);
    }

    /// Puts its row as it will be. Nobody else changes it while the topology lock is held alone.
    pub(super) fn put_with(
        &self,
        batch: &mut Batch,
        number: u64,
        settings: &wire::Topic,
        backlog: Option<u64>,
    ) {
        put_topic(
            batch,
            settings,
            number,
            self.reserved.max(self.next),
            backlog,
        );
    }
}

// === impl Subscription ===

impl Subscription {
    /// With the messages that are in storage for it.
    pub(super) fn kept(
        context: &Context,
        kept: wire::StoredSubscription,
    ) -> Result<Self, StorageError> {
        let settings = kept.subscription.unwrap_or_default();
        let filter = filter::read(&settings.filter);
        let filter =
            filter.map_err(|error| StorageError(format!("a filter is damaged: {error}")))?;
        let backlog = read_backlog(context, &settings, kept.backlog)?;
        Ok(Self {
            name: settings.name.clone(),
            topic_number: kept.topic_number,
            filter,
            state: Mutex::new(SubscriptionState {
                settings,
                number: kept.backlog,
                backlog,
                push_window: PushWindow::default(),
                streams: 0,
                deleted: false,
            }),
            wake: watch::channel(()).0,
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, SubscriptionState> {
        self.state.lock().expect("nobody panics holding it")
    }

    /// Puts its row with these settings and this backlog.
    pub(super) fn put(&self, batch: &mut Batch, settings: &wire::Subscription, number: u64) {
        let kept = wire::StoredSubscription {
            subscription: Some(settings.clone()),
            backlog: number,
            topic_number: self.topic_number,
        };
        let name = self.name.as_bytes();
        batch.put(Table::Subscriptions, name, kept.encode_to_vec());
    }

    /// A message's id: its topic's number and its own there.
    pub(super) fn message_id(&self, sequence: Sequence) -> String {
        message_id(self.topic_number, sequence)
    }
}

// === impl SubscriptionState ===

impl SubscriptionState {
    pub(super) fn pushes(&self) -> bool {
        let push = self.settings.push_config.as_ref();
        push.is_some_and(|push| !push.push_endpoint.is_empty())
    }

    pub(super) fn is_busy(&self) -> bool {
        self.backlog.unfinished() > 0 || self.push_window.is_running()
    }
}

// === impl Snapshot ===

impl Snapshot {
    pub(super) fn kept(kept: wire::StoredSnapshot) -> Self {
        let settings = kept.snapshot.unwrap_or_default();
        Self {
            name: settings.name.clone(),
            number: kept.backlog,
            topic_number: kept.topic_number,
            filter: filter::read(&kept.filter).ok().flatten(),
            filter_text: kept.filter,
            settings: Mutex::new(settings),
        }
    }

    pub(super) fn settings(&self) -> MutexGuard<'_, wire::Snapshot> {
        self.settings.lock().expect("nobody panics holding it")
    }
}

fn put_topic(
    batch: &mut Batch,
    settings: &wire::Topic,
    number: u64,
    reserved: Sequence,
    backlog: Option<u64>,
) {
    let kept = wire::StoredTopic {
        topic: Some(settings.clone()),
        number,
        reserved,
        backlog: backlog.unwrap_or(0),
    };
    batch.put(
        Table::Topics,
        settings.name.as_bytes(),
        kept.encode_to_vec(),
    );
}

/// A message's id is unique in the whole broker.
pub(super) fn message_id(topic_number: u64, sequence: Sequence) -> String {
    format!("{topic_number}{sequence:012}")
}

/// A subscription's backlog as it is in storage.
pub(super) fn read_backlog(
    context: &Context,
    settings: &wire::Subscription,
    number: u64,
) -> Result<Backlog, StorageError> {
    let now = context.clock.now();
    let deliveries = u64::try_from(now.0).unwrap_or(0);
    let mut backlog = Backlog::new(validate::policy(settings), deliveries);
    rows::each_head(&context.storage, number, |new_message| {
        backlog.add(new_message, now)
    })?;
    Ok(backlog)
}
