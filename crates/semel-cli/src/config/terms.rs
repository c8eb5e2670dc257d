//! Terms: what depends on who delivers, with the defaults of each source.

use semel::key::{KeyRule, Part};
use semel_gate::settings::{DEADLINE_MARGIN, SenderAttempts, Source, Terms, Webhook};
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
    pub(crate) wait: Option<Duration>,
    /// How often the sender delivers; `Some(None)` as long as its horizon lasts.
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
    pub(crate) horizon: Option<Duration>,
    pub(crate) wait: Duration,
    /// How often it delivers by default; without it, as long as its horizon lasts.
    pub(crate) attempts: Option<u32>,
}

/// Why a run does not outlast its sender by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The platform stops this process between two requests.
    Frozen,
    /// What the sender's dead-letter topic gets has another key.
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

const DAY: Duration = seconds(24 * 3600);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The terms for deliveries of this source.
pub(crate) fn terms(source: Source, own: &RouteTerms) -> Terms {
    let defaults = defaults(source);
    let deadline = own.deadline.or(defaults.deadline);
    let latest = deadline.map(|deadline| deadline.saturating_sub(DEADLINE_MARGIN));
    let default_key = || defaults.key.parse().expect("the presets are well formed");
    let mut terms = Terms {
        key: own.key.clone().unwrap_or_else(default_key),
        lease: own.lease,
        timeout: own.timeout.or(latest).unwrap_or(TIMEOUT_API),
        deadline,
        sender_attempts: SenderAttempts {
            most: own.sender_attempts.unwrap_or(defaults.attempts),
            declared: own.sender_attempts.is_some(),
        },
        retention: own.retention.unwrap_or(defaults.retention),
        horizon: horizon(source, own, deadline),
        wait: latest.map_or(defaults.wait, |latest| defaults.wait.min(latest)),
        max_in_doubt: own.max_in_doubt.unwrap_or(if source.is_broker() {
            MAX_IN_DOUBT_BROKER
        } else {
            0
        }),
        park_after: own.park_after.or_else(|| park_after(source, own)),
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

/// Whether a message that is given up arrives once more under another key: Pub/Sub's dead-letter topic gives it a new id.
pub(crate) fn is_renamed(source: Source, terms: &Terms) -> bool {
    let by_id = |part: &Part| matches!(part, Part::Named(name) if name == "message-id");
    source == Source::PubSub
        && terms.sender_attempts.most.is_some()
        && terms.key.parts().iter().any(by_id)
}

/// How long the sender may deliver again. Each attempt of a task renews retention, so for Cloud
/// Tasks only the longest pause between two attempts counts.
fn horizon(source: Source, own: &RouteTerms, deadline: Option<Duration>) -> Option<Duration> {
    match source {
        Source::Api | Source::PubSub | Source::CloudEvents | Source::Webhook(_) => {
            own.horizon.or(defaults(source).horizon)
        }
        Source::CloudTasks => {
            let by_backoff = |pause: Duration| pause.saturating_add(deadline.unwrap_or_default());
            let explicit = own.max_backoff.map(by_backoff).or(own.horizon);
            Some(explicit.unwrap_or_else(|| by_backoff(MAX_BACKOFF_DEFAULT)))
        }
    }
}

/// Shortly before the sender gives up: while it still delivers, what is parked gets its letter. How long a queue of Cloud
/// Tasks tries is not known, only its longest pause.
fn park_after(source: Source, own: &RouteTerms) -> Option<Duration> {
    match source {
        Source::Api | Source::CloudTasks => None,
        Source::PubSub | Source::CloudEvents | Source::Webhook(_) => {
            let horizon = own.horizon.or(defaults(source).horizon)?;
            Some(horizon / 10 * 9)
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
            horizon: None,
            wait: seconds(5),
            attempts: None,
        },
        Source::CloudTasks => SourceDefaults {
            key: "cloud-tasks",
            deadline: Some(seconds(600)),
            retention: DAY,
            horizon: None,
            wait: seconds(30),
            // A queue's `maxAttempts`.
            attempts: Some(100),
        },
        Source::PubSub => SourceDefaults {
            key: "pubsub",
            deadline: Some(seconds(10)),
            retention: seconds(7 * 24 * 3600),
            horizon: Some(seconds(7 * 24 * 3600)),
            wait: seconds(9),
            // Without a dead-letter policy nothing is counted.
            attempts: None,
        },
        Source::CloudEvents => SourceDefaults {
            key: "cloudevents",
            deadline: Some(seconds(600)),
            retention: DAY,
            horizon: Some(DAY),
            wait: seconds(30),
            attempts: None,
        },
        Source::Webhook(webhook) => SourceDefaults {
            key: webhook.word(),
            deadline: Some(webhook_deadline(webhook)),
            retention: seconds(7 * 24 * 3600),
            // Stripe tries for three days, and what GitHub delivered in the last three can be delivered again.
            horizon: Some(seconds(3 * 24 * 3600)),
            wait: seconds(30),
            attempts: webhook_attempts(webhook),
        },
    }
}

/// When the sender of a webhook gives up on one delivery.
const fn webhook_deadline(webhook: Webhook) -> Duration {
    match webhook {
        Webhook::Shopify => seconds(5),
        Webhook::Stripe | Webhook::GitHub => seconds(10),
        Webhook::Standard => seconds(15),
    }
}

/// How often the sender of a webhook delivers by itself. Stripe tells how long it tries, not how often.
const fn webhook_attempts(webhook: Webhook) -> Option<u32> {
    match webhook {
        Webhook::GitHub => Some(1),
        Webhook::Shopify => Some(9),
        Webhook::Standard => Some(8),
        Webhook::Stripe => None,
    }
}
