//! Queues, topics and subscriptions that are there from the start: a file says which, and it is made so.

mod names;
mod values;
mod apply;

use crate::Fault;
use crate::proto::pubsub::{DeadLetterPolicy, PushConfig, RetryPolicy, Subscription, push_config};
use crate::proto::tasks::{
    HttpTarget, PathOverride, QueryOverride, Queue, RateLimits, RetryConfig, UriOverride,
    uri_override,
};
pub(crate) use apply::NotApplied;
use names::NameDefaults;
use serde::Deserialize;
use std::str::FromStr;
use toml::Spanned;
use values::{AckDeadline, Address, Span};

/// What a start-up file declares.
///
/// ```
/// use semel_broker::Declared;
///
/// let declared: Declared = r#"
///     project = "demo"
///     location = "europe-west1"
///     [[queue]]
///     name = "orders"
///     max_attempts = 5
/// "#.parse().unwrap();
/// assert_eq!(declared.queues().collect::<Vec<_>>(), ["projects/demo/locations/europe-west1/queues/orders"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Declared {
    faults: Vec<Fault>,
    queues: Vec<Queue>,
    topics: Vec<String>,
    subscriptions: Vec<Subscription>,
}

/// A start-up file that was not understood; the message names the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadDeclared(String);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    project: Option<String>,
    location: Option<String>,
    #[serde(default, deserialize_with = "values::faults")]
    faults: Vec<Fault>,
    #[serde(default)]
    queue: Vec<QueueTable>,
    #[serde(default)]
    topic: Vec<TopicTable>,
    #[serde(default)]
    subscription: Vec<SubscriptionTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueTable {
    name: Spanned<String>,
    max_dispatches_per_second: Option<f64>,
    max_concurrent_dispatches: Option<i32>,
    max_attempts: Option<i32>,
    max_retry_duration: Option<Span>,
    min_backoff: Option<Span>,
    max_backoff: Option<Span>,
    max_doublings: Option<i32>,
    url: Option<Address>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopicTable {
    name: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubscriptionTable {
    name: Spanned<String>,
    topic: Spanned<String>,
    push: Option<Address>,
    ack_deadline: Option<AckDeadline>,
    #[serde(default)]
    ordering: bool,
    #[serde(default)]
    exactly_once: bool,
    #[serde(default)]
    filter: String,
    dead_letter_topic: Option<Spanned<String>>,
    max_delivery_attempts: Option<Spanned<i32>>,
    min_backoff: Option<Span>,
    max_backoff: Option<Span>,
    unwrapped: Option<Spanned<bool>>,
    write_metadata: Option<Spanned<bool>>,
    oidc_account: Option<Spanned<String>>,
    oidc_audience: Option<Spanned<String>>,
}

/// A mistake and where it is.
type Mistake = (std::ops::Range<usize>, String);

// === impl Declared ===

impl Declared {
    /// What is to go wrong, as the file says.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The full names of the queues.
    pub fn queues(&self) -> impl Iterator<Item = &str> {
        self.queues.iter().map(|queue| &*queue.name)
    }

    /// The full names of the topics, also of those that only a subscription names.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.topics.iter().map(String::as_str)
    }

    /// The full names of the subscriptions.
    pub fn subscriptions(&self) -> impl Iterator<Item = &str> {
        self.subscriptions.iter().map(|it| &*it.name)
    }
}

impl FromStr for Declared {
    type Err = BadDeclared;

    fn from_str(text: &str) -> Result<Self, BadDeclared> {
        let file: File = toml::from_str(text)
            .map_err(|error| BadDeclared(error.to_string().trim_end().into()))?;
        declared(file).map_err(|(span, why)| {
            let before = text.get(..span.start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let written = text.lines().nth(line - 1).unwrap_or_default().trim();
            BadDeclared(format!("line {line}: {written}: {why}"))
        })
    }
}

fn declared(file: File) -> Result<Declared, Mistake> {
    let names = NameDefaults {
        project: file.project,
        location: file.location,
    };
    let mut declared = Declared {
        faults: file.faults,
        ..Declared::default()
    };
    for table in file.queue {
        let queue = table.queue(&names)?;
        once(declared.queues(), &queue.name, &table.name)?;
        declared.queues.push(queue);
    }
    for table in file.topic {
        let topic = names.of("topics", &table.name)?;
        once(declared.topics(), &topic, &table.name)?;
        declared.topics.push(topic);
    }
    for table in file.subscription {
        let subscription = table.subscription(&names)?;
        once(declared.subscriptions(), &subscription.name, &table.name)?;
        let dead = subscription.dead_letter_policy.as_ref();
        let dead = dead.map(|policy| policy.dead_letter_topic.clone());
        for topic in [Some(subscription.topic.clone()), dead]
            .into_iter()
            .flatten()
        {
            if !declared.topics.contains(&topic) {
                declared.topics.push(topic);
            }
        }
        declared.subscriptions.push(subscription);
    }
    Ok(declared)
}

fn once<'a>(
    mut others: impl Iterator<Item = &'a str>,
    name: &str,
    written: &Spanned<String>,
) -> Result<(), Mistake> {
    if others.any(|other| other == name) {
        return Err((written.span(), format!("{name} is declared twice")));
    }
    Ok(())
}

// === impl QueueTable ===

impl QueueTable {
    fn queue(&self, names: &NameDefaults) -> Result<Queue, Mistake> {
        let rate_limits = RateLimits {
            max_dispatches_per_second: self.max_dispatches_per_second.unwrap_or_default(),
            max_concurrent_dispatches: self.max_concurrent_dispatches.unwrap_or_default(),
            ..RateLimits::default()
        };
        let retry_config = RetryConfig {
            max_attempts: self.max_attempts.unwrap_or_default(),
            max_retry_duration: self.max_retry_duration.map(Span::proto),
            min_backoff: self.min_backoff.map(Span::proto),
            max_backoff: self.max_backoff.map(Span::proto),
            max_doublings: self.max_doublings.unwrap_or_default(),
        };
        Ok(Queue {
            name: names.of_queue(&self.name)?,
            rate_limits: Some(rate_limits),
            retry_config: Some(retry_config),
            http_target: self.url.as_ref().map(target),
            ..Queue::default()
        })
    }
}

/// Every task of the queue goes to this address, whatever its own says.
fn target(url: &Address) -> HttpTarget {
    let url = &url.0;
    let scheme = match url.scheme() {
        "https" => uri_override::Scheme::Https,
        _ => uri_override::Scheme::Http,
    };
    let query = url.query().map(|query| QueryOverride {
        query_params: query.into(),
    });
    HttpTarget {
        uri_override: Some(UriOverride {
            scheme: Some(scheme.into()),
            host: url.host_str().map(Into::into),
            port: url.port_or_known_default().map(Into::into),
            path_override: Some(PathOverride {
                path: url.path().into(),
            }),
            query_override: query,
            uri_override_enforce_mode: uri_override::UriOverrideEnforceMode::Always.into(),
        }),
        ..HttpTarget::default()
    }
}

// === impl SubscriptionTable ===

impl SubscriptionTable {
    fn subscription(&self, names: &NameDefaults) -> Result<Subscription, Mistake> {
        self.needs_push()?;
        let dead_letter_policy = match (&self.dead_letter_topic, &self.max_delivery_attempts) {
            (Some(topic), attempts) => Some(DeadLetterPolicy {
                dead_letter_topic: names.of("topics", topic)?,
                max_delivery_attempts: attempts.as_ref().map_or(0, |it| *it.get_ref()),
            }),
            (None, Some(attempts)) => {
                return Err((attempts.span(), "it needs a dead_letter_topic".into()));
            }
            (None, None) => None,
        };
        let retries = self.min_backoff.or(self.max_backoff).is_some();
        Ok(Subscription {
            name: names.of("subscriptions", &self.name)?,
            topic: names.of("topics", &self.topic)?,
            push_config: self.push.as_ref().map(|it| self.push_config(it)),
            ack_deadline_seconds: self.ack_deadline.map_or(0, |it| it.0),
            enable_message_ordering: self.ordering,
            enable_exactly_once_delivery: self.exactly_once,
            filter: self.filter.clone(),
            dead_letter_policy,
            retry_policy: retries.then(|| RetryPolicy {
                minimum_backoff: self.min_backoff.map(Span::proto),
                maximum_backoff: self.max_backoff.map(Span::proto),
            }),
            ..Subscription::default()
        })
    }

    /// Some settings mean nothing to who pulls.
    fn needs_push(&self) -> Result<(), Mistake> {
        let flags = [&self.unwrapped, &self.write_metadata];
        let texts = [&self.oidc_account, &self.oidc_audience];
        let flags = flags.into_iter().flatten().map(Spanned::span);
        let texts = texts.into_iter().flatten().map(Spanned::span);
        match flags.chain(texts).next() {
            Some(span) if self.push.is_none() => {
                Err((span, "it is for push: say push = \"http://…\"".into()))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn push_config(&self, url: &Address) -> PushConfig {
        let text = |it: &Option<Spanned<String>>| it.as_ref().map(|it| it.get_ref().clone());
        let is_set = |it: &Option<Spanned<bool>>| it.as_ref().is_some_and(|it| *it.get_ref());
        let oidc = text(&self.oidc_account).map(|account| push_config::OidcToken {
            service_account_email: account,
            audience: text(&self.oidc_audience).unwrap_or_default(),
        });
        let wrapper = is_set(&self.unwrapped).then(|| push_config::NoWrapper {
            write_metadata: is_set(&self.write_metadata),
        });
        PushConfig {
            push_endpoint: url.0.to_string(),
            authentication_method: oidc.map(push_config::AuthenticationMethod::OidcToken),
            wrapper: wrapper.map(push_config::Wrapper::NoWrapper),
            ..PushConfig::default()
        }
    }
}
