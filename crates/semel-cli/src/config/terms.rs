//! Terms: what depends on who delivers, with the defaults of each source.

use semel::key::{KeyRule, Part};
use semel::work::DOUBT_AGE_MIN;
use semel_gate::settings::{DEADLINE_MARGIN, Promise, SenderAttempts, Source, Terms, Webhook};
use std::time::Duration;

/// What a route says itself; it holds for every source of the route.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteTerms {
    pub(crate) key: Option<KeyRule>,
    pub(crate) lease: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) retention: Option<Duration>,
    pub(crate) horizon: Option<Duration>,
    pub(crate) max_backoff: Option<Duration>,
    /// Declares that the subscription is never sought back.
    pub(crate) never_seeks: bool,
    /// The promise that the route demands.
    pub(crate) promise: Option<Promise>,
    pub(crate) wait: Option<Duration>,
    /// Number of times that the sender delivers; `Some(None)`: no limit.
    pub(crate) sender_attempts: Option<Option<u32>>,
    pub(crate) max_in_doubt: Option<u32>,
    pub(crate) park_after: Option<Duration>,
    /// Whether the platform stops this process between two requests.
    pub(crate) freezes: bool,
    /// Whether nothing is remembered, so that nobody would hear of a run that outlasts its sender.
    pub(crate) stateless: bool,
    /// How long after its arrival the handler's answer may land, where it does.
    pub(crate) land_within: Option<Duration>,
}

/// The defaults of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceDefaults {
    pub(crate) key: &'static str,
    pub(crate) deadline: Option<Duration>,
    pub(crate) retention: Duration,
    pub(crate) wait: Duration,
    /// Number of times that it delivers by default; `None`: no limit.
    pub(crate) attempts: Option<u32>,
}

/// Why a run does not outlast its sender by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The platform stops this process between two requests.
    Frozen,
    /// The copy in the sender's dead-letter topic has another key.
    Renamed,
    /// The sender gives up after so many attempts.
    Attempts(u32),
}

/// How long a handler may take when an API client waits.
const TIMEOUT_API: Duration = seconds(60);

/// The same for a broker, which delivers again when it does not wait so long.
pub(crate) const TIMEOUT_BROKER: Duration = seconds(600);

/// How often a broker's work may end in doubt by default.
const MAX_IN_DOUBT_BROKER: u32 = 5;

/// So long a row has at least to become durable when its handler took all its time.
pub(crate) const LAND_MARGIN: Duration = seconds(5);

/// A Cloud Tasks queue's own default.
const MAX_BACKOFF_DEFAULT: Duration = Duration::from_secs(3600);

/// The longest pause between two deliveries of Pub/Sub, and of Eventarc, which delivers through it.
const MAX_BACKOFF_PUBSUB: Duration = seconds(600);

/// Cloud Tasks deletes a task this long after its creation.
const TASK_RETENTION: Duration = days(31);

/// Maximum time between the creation of a task and the time for which it is scheduled.
const TASK_SCHEDULED_AHEAD: Duration = days(30);

/// The longest retention of a Pub/Sub topic or subscription: a seek delivers all of it again.
const PUBSUB_RETENTION_MAX: Duration = days(31);

/// The default retention of a Pub/Sub subscription.
const PUBSUB_RETENTION: Duration = days(7);

const DAY: Duration = days(1);

/// Parts of a key that a message and its copy in a dead-letter topic never share.
const CHANGED_BY_COPY: [&str; 8] = [
    "message-id",
    "subscription",
    "ce:id",
    "ce:source",
    "ce:time",
    "header:ce-id",
    "header:ce-source",
    "header:ce-time",
];

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn days(days: u64) -> Duration {
    seconds(days * 24 * 3600)
}

/// The terms for deliveries of this source.
pub(crate) fn terms(source: Source, own: &RouteTerms) -> Terms {
    let defaults = defaults(source);
    let deadline = own.deadline.or(defaults.deadline);
    let latest = deadline.map(|deadline| deadline.saturating_sub(DEADLINE_MARGIN));
    // A client that gives up leaves its run going; a broker's run ends first, unless that is safe.
    let ends_by = latest.filter(|_| source.is_broker());
    let default_key = || defaults.key.parse().expect("the presets are well formed");
    let attempts = SenderAttempts {
        most: own.sender_attempts.unwrap_or(defaults.attempts),
        declared: own.sender_attempts.is_some(),
    };
    let horizon = own
        .horizon
        .or_else(|| horizon(source, attempts, own.never_seeks));
    let delivers_for = delivers_for(source, attempts, own.horizon);
    let demanded = horizon.filter(|_| own.promise.is_some_and(needs_memory));
    let mut terms = Terms {
        key: own.key.clone().unwrap_or_else(default_key),
        lease: own.lease,
        timeout: own.timeout.or(ends_by).unwrap_or(TIMEOUT_API),
        deadline,
        sender_attempts: attempts,
        // A demand makes memory longer, never shorter.
        retention: own
            .retention
            .unwrap_or(defaults.retention.max(demanded.unwrap_or_default())),
        horizon,
        delivers_for,
        gap: gap(source, deadline, own.max_backoff),
        wait: latest.map_or(defaults.wait, |latest| defaults.wait.min(latest)),
        max_in_doubt: own.max_in_doubt.unwrap_or(if source.is_broker() {
            MAX_IN_DOUBT_BROKER
        } else {
            0
        }),
        doubt_age: DOUBT_AGE_MIN,
        park_after: own.park_after.or_else(|| park_after(source, delivers_for)),
    };
    if own.timeout.is_none() && source.is_broker() && !own.stateless {
        terms.timeout = default_timeout(source, &terms, own.freezes);
    }
    if let (None, Some(within)) = (own.timeout, own.land_within) {
        let lands_in_time = within.saturating_sub(LAND_MARGIN);
        terms.timeout = terms.timeout.min(lands_in_time);
    }
    if let Some(latest) = latest.filter(|_| deadline < Some(terms.timeout) && source.is_broker()) {
        // Attempts are not burnt while the run goes on.
        terms.wait = latest;
    }
    terms.wait = own.wait.unwrap_or(terms.wait);
    terms
}

/// How long a broker's handler may take by default: longer than one delivery may, where that is safe. `terms` has what
/// the sender itself waits.
fn default_timeout(source: Source, terms: &Terms, freezes: bool) -> Duration {
    let (patience, long) = (terms.timeout, TIMEOUT_BROKER.max(terms.timeout));
    match bound(source, terms, freezes) {
        None => long,
        Some(Bound::Frozen | Bound::Renamed | Bound::Attempts(1)) => patience,
        Some(Bound::Attempts(most)) => {
            let covered = terms.deadline.unwrap_or(patience).saturating_mul(most);
            long.min(covered)
        }
    }
}

/// What keeps a default timeout from outlasting its sender as far as it could.
pub(crate) fn bound(source: Source, terms: &Terms, freezes: bool) -> Option<Bound> {
    let covered = |most: u32| terms.deadline.map(|deadline| deadline.saturating_mul(most));
    let most = terms.sender_attempts.most;
    if freezes {
        return Some(Bound::Frozen);
    }
    if is_renamed(source, terms) {
        return Some(Bound::Renamed);
    }
    most.filter(|most| covered(*most) < Some(TIMEOUT_BROKER))
        .map(Bound::Attempts)
}

/// Returns whether a message that is given up arrives once more under another key, through a dead-letter topic.
pub(crate) fn is_renamed(source: Source, terms: &Terms) -> bool {
    terms.sender_attempts.most.is_some() && changed_by_copy(source, terms).is_some()
}

/// Returns a part of the key that differs between a message and its copy in a dead-letter topic: the copy has its own id, and
/// comes through another subscription, or as another event. A push without its envelope has these in headers.
pub(crate) fn changed_by_copy(source: Source, terms: &Terms) -> Option<&Part> {
    let is_copied = match source {
        Source::PubSub | Source::CloudEvents => true,
        Source::Api | Source::CloudTasks | Source::Webhook(_) => false,
    };
    let changes = |part: &&Part| match part {
        Part::Named(name) => {
            CHANGED_BY_COPY.contains(&name.as_str()) || name.starts_with("header:x-goog-pubsub-")
        }
        Part::Pointer(_) | Part::Form(_) | Part::Body => false,
    };
    let mut parts = terms.key.parts().iter();
    parts.find(changes).filter(|_| is_copied)
}

/// Returns whether a task names its work, and nothing of its payload does. Callers that choose the names of their tasks may use
/// one again for other work, and no header of the transport tells the two apart.
pub(crate) fn is_named_by_task(source: Source, terms: &Terms) -> bool {
    let parts = terms.key.parts();
    let of_task = |part: &Part| match part {
        Part::Named(name) => {
            let name = name.replace('_', "-");
            let header = name.strip_prefix("header:").unwrap_or_default();
            matches!(&*name, "task-name" | "queue")
                || header.starts_with("x-cloudtasks-")
                || header.starts_with("x-appengine-")
        }
        Part::Pointer(_) | Part::Form(_) | Part::Body => false,
    };
    let of_payload = |part: &Part| match part {
        Part::Pointer(_) | Part::Form(_) | Part::Body => true,
        Part::Named(_) => false,
    };
    source == Source::CloudTasks && parts.iter().any(of_task) && !parts.iter().any(of_payload)
}

/// Returns whether a promise fails once an outcome is forgotten that the sender delivers again. Work that runs once more
/// still runs at least once.
pub(crate) const fn needs_memory(promise: Promise) -> bool {
    match promise {
        Promise::ExactlyOnce | Promise::AtMostOnce => true,
        Promise::AtLeastOnce => false,
    }
}

/// The longest time from a sender's first delivery to its last possible one, pauses included.
fn horizon(source: Source, attempts: SenderAttempts, never_seeks: bool) -> Option<Duration> {
    match source {
        Source::Api => None,
        Source::CloudTasks => Some(TASK_RETENTION),
        Source::PubSub => {
            let one = if never_seeks {
                PUBSUB_RETENTION
            } else {
                PUBSUB_RETENTION_MAX
            };
            // A subscription to the dead-letter topic delivers for as long again.
            Some(attempts.most.map_or(one, |_| one * 2))
        }
        // The same, for the trigger of a dead-letter topic.
        Source::CloudEvents => Some(attempts.most.map_or(DAY, |_| DAY * 2)),
        Source::Webhook(webhook) if exceeds_schedule(webhook, attempts) => None,
        Source::Webhook(webhook) => Some(schedule(webhook)),
    }
}

/// Returns whether a webhook is declared to be delivered more often than its sender documents. Then no document says for how long.
fn exceeds_schedule(webhook: Webhook, attempts: SenderAttempts) -> bool {
    let documented = webhook_attempts(webhook);
    documented.is_some_and(|documented| attempts.most.is_none_or(|most| most > documented))
}

/// The documented time from the first delivery of a webhook to the last one that its sender makes by itself.
const fn schedule(webhook: Webhook) -> Duration {
    match webhook {
        Webhook::Stripe => days(3),
        Webhook::GitHub => Duration::ZERO,
        Webhook::Shopify => seconds(4 * 3600),
        // The tenth attempt of the specification's example comes 75 h 35 min after the first.
        Webhook::Standard => seconds(76 * 3600),
    }
}

/// The horizon of a route that declares nothing.
pub(crate) fn default_horizon(source: Source) -> Option<Duration> {
    terms(source, &RouteTerms::default()).horizon
}

/// The horizon of this sender if nothing is declared that makes it shorter.
pub(crate) fn longest_horizon(source: Source, terms: &Terms) -> Option<Duration> {
    horizon(source, terms.sender_attempts, false)
}

/// The horizon of a subscription that is never sought back.
pub(crate) fn never_sought_horizon(terms: &Terms) -> Duration {
    horizon(Source::PubSub, terms.sender_attempts, true).unwrap_or(PUBSUB_RETENTION)
}

/// The shortest time for which the sender keeps delivering. A declared horizon is an upper bound: it makes this time shorter,
/// never longer. A client of an API may stop at any time, and so may a queue that counts attempts.
fn delivers_for(
    source: Source,
    attempts: SenderAttempts,
    declared: Option<Duration>,
) -> Option<Duration> {
    let known = match source {
        Source::Api | Source::Webhook(Webhook::GitHub) => None,
        Source::CloudTasks if attempts.most.is_some() => None,
        // What is left to a task that was scheduled as far ahead as possible.
        Source::CloudTasks => Some(TASK_RETENTION - TASK_SCHEDULED_AHEAD),
        Source::PubSub => Some(PUBSUB_RETENTION),
        Source::CloudEvents => Some(DAY),
        Source::Webhook(webhook) => Some(schedule(webhook)),
    };
    known.map(|known| declared.map_or(known, |declared| declared.min(known)))
}

/// The longest pause between two deliveries. Senders of webhooks document a schedule, whose longest pause this is.
fn gap(
    source: Source,
    deadline: Option<Duration>,
    max_backoff: Option<Duration>,
) -> Option<Duration> {
    let with_deadline = |pause: Duration| Some(pause.saturating_add(deadline.unwrap_or_default()));
    match source {
        Source::Api | Source::Webhook(Webhook::GitHub) => None,
        Source::CloudTasks => with_deadline(max_backoff.unwrap_or(MAX_BACKOFF_DEFAULT)),
        Source::PubSub | Source::CloudEvents => with_deadline(MAX_BACKOFF_PUBSUB),
        Source::Webhook(Webhook::Shopify) => Some(schedule(Webhook::Shopify)),
        Source::Webhook(Webhook::Stripe | Webhook::Standard) => Some(DAY),
    }
}

/// Shortly before the sender gives up: what is parked while it still delivers gets its letter. The time for which a queue of
/// Cloud Tasks delivers is not known.
fn park_after(source: Source, delivers_for: Option<Duration>) -> Option<Duration> {
    match source {
        Source::Api | Source::CloudTasks => None,
        Source::PubSub | Source::CloudEvents | Source::Webhook(_) => {
            delivers_for.map(|time| time / 10 * 9)
        }
    }
}

/// The defaults of a source.
pub(crate) const fn defaults(source: Source) -> SourceDefaults {
    match source {
        Source::Api => SourceDefaults {
            key: "idempotency-key",
            deadline: None,
            retention: DAY,
            wait: seconds(5),
            attempts: None,
        },
        Source::CloudTasks => SourceDefaults {
            key: "cloud-tasks",
            deadline: Some(seconds(600)),
            retention: DAY,
            wait: seconds(30),
            // A queue's `maxAttempts`.
            attempts: Some(100),
        },
        Source::PubSub => SourceDefaults {
            key: "pubsub",
            deadline: Some(seconds(10)),
            retention: days(7),
            wait: seconds(9),
            // Without a dead-letter policy nothing is counted.
            attempts: None,
        },
        Source::CloudEvents => SourceDefaults {
            key: "cloudevents",
            deadline: Some(seconds(600)),
            retention: DAY,
            wait: seconds(30),
            attempts: None,
        },
        Source::Webhook(webhook) => SourceDefaults {
            key: webhook.word(),
            deadline: Some(webhook_deadline(webhook)),
            retention: days(7),
            wait: seconds(30),
            attempts: webhook_attempts(webhook),
        },
    }
}

/// The time after which the sender of a webhook gives up on one delivery; Stripe's is not documented.
const fn webhook_deadline(webhook: Webhook) -> Duration {
    match webhook {
        Webhook::Shopify => seconds(5),
        Webhook::Stripe | Webhook::GitHub => seconds(10),
        Webhook::Standard => seconds(15),
    }
}

/// Number of deliveries that the sender of a webhook makes by itself. Stripe documents a time, and no number.
const fn webhook_attempts(webhook: Webhook) -> Option<u32> {
    match webhook {
        Webhook::GitHub => Some(1),
        Webhook::Shopify => Some(9),
        Webhook::Standard => Some(10),
        Webhook::Stripe => None,
    }
}
