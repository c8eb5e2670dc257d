//! What the gate remembers of its latest deliveries, in bounded memory: for whoever asks what happened to one piece of
//! work, and, live, for whoever watches. No body, caller or credential is here.

mod json;

use crate::disposition::Disposition;
use crate::flow::Flow;
use crate::label::{self, Digests, PART_TEXT_BYTES_MAX};
use http::StatusCode;
use jiff::Timestamp;
use semel::Key;
use semel::clock::Time;
use semel::letter::LetterId;
use semel::protocol::Fence;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;

/// How many deliveries are remembered.
pub(crate) const DELIVERIES_MAX: usize = 10_000;

/// How many bytes they take together, nearly.
pub(crate) const BYTES_MAX: usize = 8 * 1024 * 1024;

/// How many deliveries a watcher may be behind; one that is slower hears how many it has missed.
pub(crate) const BEHIND_MAX: usize = 1024;

/// The longest text that is remembered of one delivery: a name, or why it was refused.
const TEXT_BYTES_MAX: usize = 512;

/// The latest deliveries.
#[derive(Debug)]
pub(crate) struct Recent {
    remembered: Mutex<Remembered>,
    live: broadcast::Sender<Arc<RecentDelivery>>,
}

/// One delivery that has its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecentDelivery {
    /// When it arrived.
    pub(crate) at: Timestamp,
    pub(crate) route: Arc<str>,
    /// The word for who sent it.
    pub(crate) source: &'static str,
    /// Which work it is; `None` when it could have no key.
    pub(crate) key: Option<Key>,
    /// The parts of its key by name: in clear, or a keyed digest on a private route.
    pub(crate) parts: Vec<(String, String)>,
    /// The word of its disposition, as in log lines.
    pub(crate) outcome: &'static str,
    /// Whether it ran nothing because the same work was settled, running or not due.
    pub(crate) is_duplicate: bool,
    /// What its sender heard now.
    pub(crate) status: Option<u16>,
    /// The fence of its run, if it ran.
    pub(crate) fence: Option<Fence>,
    /// Which run of its work it was, from 1, if it ran.
    pub(crate) attempt: Option<u32>,
    /// How long it took from arrival to reply.
    pub(crate) elapsed: Duration,
    /// How long the handler took, if it was called.
    pub(crate) handler_took: Option<Duration>,
    /// The sender's own name for it: of the task, message or event.
    pub(crate) id: Option<Box<str>>,
    /// The queue or subscription that it came from.
    pub(crate) from: Option<Box<str>>,
    /// Which attempt of its sender it is, from 1, if the sender counts.
    pub(crate) sender_attempt: Option<u64>,
    pub(crate) trace_id: u128,
    /// The letter that keeps it.
    pub(crate) letter: Option<LetterId>,
    /// Of what its fingerprint was taken.
    pub(crate) digests: Digests,
    /// Why a person should look at it.
    pub(crate) why: Option<Box<str>>,
    /// Whether it is the end of a run whose sender heard before that it goes on: no delivery of its own.
    pub(crate) is_end: bool,
}

#[derive(Debug, Default)]
struct Remembered {
    /// Oldest first.
    deliveries: VecDeque<Arc<RecentDelivery>>,
    bytes: usize,
}

// === impl Recent ===

impl Recent {
    pub(crate) fn new() -> Self {
        Self {
            remembered: Mutex::default(),
            live: broadcast::Sender::new(BEHIND_MAX),
        }
    }

    /// Remembers a delivery, and tells it to those who watch.
    pub(crate) fn note(&self, delivery: RecentDelivery) {
        let delivery = Arc::new(delivery);
        self.lock().push(Arc::clone(&delivery));
        if self.live.receiver_count() > 0 {
            // The last watcher may just have gone.
            drop(self.live.send(delivery));
        }
    }

    /// The deliveries of one piece of work, oldest first.
    pub(crate) fn of_key(&self, key: &Key) -> Vec<Arc<RecentDelivery>> {
        self.all(|delivery| delivery.key.as_ref() == Some(key))
    }

    /// Those that somebody means by this text, oldest first: a key, a part of one, a task's name, the id of a message or
    /// event, or the id of a trace. Names may be whole resource names.
    pub(crate) fn find(&self, text: &str) -> Vec<Arc<RecentDelivery>> {
        let meant = Meant::of(text);
        self.all(|delivery| meant.is(delivery))
    }

    /// The latest ones, newest first.
    pub(crate) fn latest(&self, count: usize) -> Vec<Arc<RecentDelivery>> {
        let remembered = self.lock();
        let newest = remembered.deliveries.iter().rev().take(count);
        newest.cloned().collect()
    }

    /// Those whose key stands for other work, newest first.
    pub(crate) fn mismatches(&self) -> Vec<Arc<RecentDelivery>> {
        let mut found = self.all(|delivery| delivery.outcome == "mismatched");
        found.reverse();
        found
    }

    /// The one that a letter keeps.
    pub(crate) fn of_letter(&self, letter: &LetterId) -> Option<Arc<RecentDelivery>> {
        let remembered = self.lock();
        let mut newest = remembered.deliveries.iter().rev();
        newest
            .find(|it| it.letter.as_ref() == Some(letter))
            .cloned()
    }

    /// All that are noted from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<RecentDelivery>> {
        self.live.subscribe()
    }

    /// Drops what is remembered of one piece of work.
    pub(crate) fn forget(&self, key: &Key) {
        self.lock().forget(key);
    }

    fn all(&self, is_meant: impl Fn(&RecentDelivery) -> bool) -> Vec<Arc<RecentDelivery>> {
        let remembered = self.lock();
        let meant = remembered.deliveries.iter().filter(|it| is_meant(it));
        meant.cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        // Nobody panics while holding it.
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Remembered ===

impl Remembered {
    fn push(&mut self, delivery: Arc<RecentDelivery>) {
        self.bytes += delivery.bytes();
        self.deliveries.push_back(delivery);
        while self.deliveries.len() > DELIVERIES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.deliveries.pop_front() else {
                return;
            };
            self.bytes -= oldest.bytes();
        }
    }

    fn forget(&mut self, key: &Key) {
        let bytes = &mut self.bytes;
        self.deliveries.retain(|delivery| {
            let stays = delivery.key.as_ref() != Some(key);
            if !stays {
                *bytes -= delivery.bytes();
            }
            stays
        });
    }
}

// === impl RecentDelivery ===

impl RecentDelivery {
    /// A delivery whose flow has ended so.
    pub(crate) fn of(
        flow: &Flow,
        disposition: &Disposition,
        status: Option<StatusCode>,
        elapsed: Duration,
    ) -> Self {
        let transport = &flow.transport;
        let description = flow.description.as_ref();
        Self {
            at: flow.arrival.received_at,
            route: Arc::clone(&flow.route.name),
            source: flow.source.word(),
            key: flow.identity().map(|identity| identity.key),
            parts: description.map(|it| it.parts.clone()).unwrap_or_default(),
            outcome: disposition.word(),
            is_duplicate: disposition.is_duplicate(),
            status: status.map(|status| status.as_u16()),
            fence: flow.lease.as_ref().map(|lease| lease.fence),
            attempt: flow.lease.as_ref().map(|lease| lease.attempt),
            elapsed,
            handler_took: flow.handler_took,
            id: transport.id().map(text_of),
            from: transport.from().map(text_of),
            sender_attempt: flow.arrival.attempt,
            trace_id: flow.trace.trace_number(),
            letter: flow.letter,
            digests: description.map(|it| it.digests).unwrap_or_default(),
            why: disposition.warning().map(|why| text_of(&why)),
            is_end: false,
        }
    }

    /// When it arrived, as stores write it.
    pub(crate) fn time(&self) -> Time {
        Time(u64::try_from(self.at.as_microsecond()).unwrap_or_default())
    }

    /// What the work is about, in a short line: `order_id A-1`.
    pub(crate) fn about(&self) -> String {
        label::about(&self.parts)
    }

    /// What it takes in memory, nearly.
    fn bytes(&self) -> usize {
        let text = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        let part = |(name, value): &(String, String)| {
            size_of::<(String, String)>() + name.len() + value.len()
        };
        let parts: usize = self.parts.iter().map(part).sum();
        size_of::<Self>() + parts + text(&self.id) + text(&self.from) + text(&self.why)
    }
}

fn text_of(text: &str) -> Box<str> {
    label::cut(text, TEXT_BYTES_MAX).into()
}

/// What a name is indexed as: the last name of a resource's whole name, the id of a trace's whole context.
pub(crate) fn indexed_as(text: &str) -> String {
    let meant = Meant::of(text);
    match meant.trace_id {
        Some(trace_id) => format!("{trace_id:032x}"),
        None => meant.name.to_owned(),
    }
}

/// What a text that somebody looks for may mean.
pub(crate) struct Meant<'a> {
    text: &'a str,
    key: Option<Key>,
    trace_id: Option<u128>,
    /// The last name of a resource's whole name, else the text.
    name: &'a str,
}

// === impl Meant ===

impl<'a> Meant<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let is_whole = text.starts_with("projects/");
        Self {
            text,
            key: text.parse().ok(),
            trace_id: trace_number(text),
            name: text.rsplit('/').next().filter(|_| is_whole).unwrap_or(text),
        }
    }

    /// Whether a sender's name for a delivery is meant.
    pub(crate) fn is_name(&self, name: &str) -> bool {
        name == self.name || name == self.text
    }

    /// Whether a trace is meant, by its context.
    pub(crate) fn is_trace(&self, traceparent: &str) -> bool {
        self.trace_id.is_some() && self.trace_id == trace_number(traceparent)
    }

    fn is(&self, delivery: &RecentDelivery) -> bool {
        // A part that was cut is as long as it can be, and so is what is compared with it.
        let value = label::cut(self.text, PART_TEXT_BYTES_MAX);
        let is_part = delivery.parts.iter().any(|(_, part)| *part == value);
        (self.key.is_some() && self.key == delivery.key)
            || self.trace_id == Some(delivery.trace_id)
            || delivery.id.as_deref().is_some_and(|id| self.is_name(id))
            || is_part
    }
}

/// The id of a trace, by itself or in its whole context, whatever the case of its digits.
fn trace_number(text: &str) -> Option<u128> {
    let is_id = |text: &&str| text.len() == 32 && text.bytes().all(|it| it.is_ascii_hexdigit());
    let id = Some(text).filter(is_id);
    let id = id.or_else(|| text.split('-').nth(1).filter(is_id))?;
    u128::from_str_radix(id, 16).ok()
}
