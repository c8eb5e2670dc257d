//! Terms: what depends on who delivers, with the defaults of each source.

use semel::key::KeyRule;
use semel_gate::settings::{Source, Terms, Webhook};
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
}

/// The defaults of a source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceDefaults {
    pub(crate) key: &'static str,
    pub(crate) deadline: Option<Duration>,
    pub(crate) retention: Duration,
    pub(crate) horizon: Option<Duration>,
    pub(crate) wait: Duration,
}

/// The handler must be cut so long before its sender gives up.
pub(crate) const MARGIN: Duration = Duration::from_secs(1);

/// How long a handler may take when no sender gives up.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

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
    let latest = deadline.map(|deadline| deadline.saturating_sub(MARGIN));
    let default_key = || defaults.key.parse().expect("the presets are well formed");
    Terms {
        key: own.key.clone().unwrap_or_else(default_key),
        lease: own.lease,
        timeout: own.timeout.or(latest).unwrap_or(TIMEOUT_DEFAULT),
        deadline,
        retention: own.retention.unwrap_or(defaults.retention),
        horizon: horizon(source, own, deadline),
        wait: own
            .wait
            .unwrap_or_else(|| latest.map_or(defaults.wait, |latest| defaults.wait.min(latest))),
    }
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

/// The defaults of a source.
pub(crate) const fn defaults(source: Source) -> SourceDefaults {
    match source {
        Source::Api => SourceDefaults {
            key: "idempotency-key",
            deadline: None,
            retention: DAY,
            horizon: None,
            wait: seconds(5),
        },
        Source::CloudTasks => SourceDefaults {
            key: "cloud-tasks",
            deadline: Some(seconds(600)),
            retention: DAY,
            horizon: None,
            wait: seconds(30),
        },
        Source::PubSub => SourceDefaults {
            key: "pubsub",
            deadline: Some(seconds(10)),
            retention: seconds(7 * 24 * 3600),
            horizon: Some(seconds(7 * 24 * 3600)),
            wait: seconds(9),
        },
        Source::CloudEvents => SourceDefaults {
            key: "cloudevents",
            deadline: Some(seconds(600)),
            retention: DAY,
            horizon: Some(DAY),
            wait: seconds(30),
        },
        Source::Webhook(webhook) => SourceDefaults {
            key: webhook.word(),
            deadline: Some(webhook_deadline(webhook)),
            retention: seconds(7 * 24 * 3600),
            // Stripe tries for three days, and what GitHub delivered in the last three can be delivered again.
            horizon: Some(seconds(3 * 24 * 3600)),
            wait: seconds(30),
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
