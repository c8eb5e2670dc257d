//! What is accepted: sizes, ranges and defaults.

use super::backlog::DeliveryPolicy;
use super::errors::{bad_argument, invalid};
use super::filter;
use super::names;
use crate::clock::{proto_span, span_of};
use crate::proto::pubsub as wire;
use prost::Message;
use prost_types::Duration as ProtoDuration;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;
use tonic::Status;
use url::Url;

const MESSAGE_BYTES_MAX: usize = 10_000_000;
const BATCH_MESSAGES_MAX: usize = 1000;
const ATTRIBUTES_MAX: usize = 100;
const ATTRIBUTE_KEY_BYTES_MAX: usize = 256;
const ATTRIBUTE_VALUE_BYTES_MAX: usize = 1024;
const ORDERING_KEY_BYTES_MAX: usize = 1024;

const LABELS_MAX: usize = 64;
const LABEL_CHARS_MAX: usize = 63;

const ACK_DEADLINE_SECONDS: RangeInclusive<i32> = 10..=600;
const ATTEMPTS: RangeInclusive<i32> = 5..=100;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);
const RETENTION: RangeInclusive<Duration> = Duration::from_secs(600)..=RETENTION_MAX;
const RETENTION_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3600);
const RETENTION_MAX: Duration = Duration::from_secs(31 * 24 * 3600);
const BACKOFF: RangeInclusive<Duration> = Duration::ZERO..=BACKOFF_MAX;
const BACKOFF_MIN_DEFAULT: Duration = Duration::from_secs(10);
const BACKOFF_MAX: Duration = Duration::from_secs(600);

/// Looks at what is to be published.
pub(super) fn check_messages(messages: &[wire::PubsubMessage]) -> Result<(), Status> {
    if messages.is_empty() {
        return Err(Status::invalid_argument(
            "The value for message_count is too small. You passed 0 in the request, but the minimum value is 1.",
        ));
    }
    if messages.len() > BATCH_MESSAGES_MAX {
        return Err(Status::invalid_argument(format!(
            "The value for message_count is too large. You passed {} in the request, but the maximum value is \
             {BATCH_MESSAGES_MAX}.",
            messages.len()
        )));
    }
    let bytes: usize = messages.iter().map(Message::encoded_len).sum();
    if bytes > MESSAGE_BYTES_MAX {
        return Err(Status::invalid_argument(format!(
            "The value for request_size is too large. You passed {bytes} in the request, but the maximum value is \
             {MESSAGE_BYTES_MAX}."
        )));
    }
    messages.iter().try_for_each(check_message)
}

fn check_message(message: &wire::PubsubMessage) -> Result<(), Status> {
    let attributes = &message.attributes;
    if message.data.is_empty() && attributes.is_empty() {
        return Err(Status::invalid_argument(
            "Some messages in the batch are invalid: each message must contain either non-empty data, or at least one \
             attribute.",
        ));
    }
    if attributes.len() > ATTRIBUTES_MAX {
        let why = "at most 100 are allowed";
        return Err(invalid("attributes", attributes.len(), why));
    }
    for (key, value) in attributes {
        if key.is_empty()
            || key.len() > ATTRIBUTE_KEY_BYTES_MAX
            || key.starts_with("goog") && !key.starts_with("googclient_")
        {
            let why = "it has 1 to 256 bytes and does not begin with goog";
            return Err(invalid("attributes.key", key, why));
        }
        if value.len() > ATTRIBUTE_VALUE_BYTES_MAX {
            let why = "its value has at most 1024 bytes";
            return Err(invalid("attributes.value", key, why));
        }
    }
    let bytes = message.ordering_key.len();
    if bytes > ORDERING_KEY_BYTES_MAX {
        return Err(invalid("ordering_key", bytes, "it has at most 1024 bytes"));
    }
    Ok(())
}

/// The rules that all of Google Cloud has for labels; those that a resource has stay as they are.
pub(super) fn check_labels(
    labels: &HashMap<String, String>,
    old: &HashMap<String, String>,
) -> Result<(), Status> {
    if labels == old {
        return Ok(());
    }
    if labels.len() > LABELS_MAX {
        return Err(invalid("labels", labels.len(), "at most 64 are allowed"));
    }
    for (key, value) in labels {
        let shown = key.chars().take(LABEL_CHARS_MAX + 1).collect::<String>();
        let shown = format!("{shown:?}");
        let begins = key.chars().next().is_some_and(is_label_letter);
        if !begins || !is_label_text(key) {
            let why = "it has 1 to 63 lower-case letters, digits, underscores and dashes, and begins with a letter";
            return Err(invalid("labels.key", shown, why));
        }
        if !is_label_text(value) {
            let why = "its value has at most 63 lower-case letters, digits, underscores and dashes";
            return Err(invalid("labels.value", shown, why));
        }
    }
    Ok(())
}

fn is_label_text(text: &str) -> bool {
    let is_other = |it: char| it.is_ascii_digit() || it == '_' || it == '-';
    text.chars().count() <= LABEL_CHARS_MAX
        && text.chars().all(|it| is_label_letter(it) || is_other(it))
}

/// Of the letters, digits and marks of other scripts only capitals are refused.
fn is_label_letter(it: char) -> bool {
    match it.is_ascii() {
        true => it.is_ascii_lowercase(),
        false => !it.is_uppercase() && !it.is_control() && !it.is_whitespace(),
    }
}

/// Looks at a topic's settings and fills in the defaults.
pub(super) fn complete_topic(topic: &mut wire::Topic) -> Result<(), Status> {
    if let Some(retention) = &topic.message_retention_duration {
        check_span("message_retention_duration", retention, RETENTION)?;
    }
    // Only answers have these.
    topic.state = wire::topic::State::Active as i32;
    topic.satisfies_pzs = false;
    Ok(())
}

/// Looks at a subscription's settings and fills in the defaults.
pub(super) fn complete(subscription: &mut wire::Subscription) -> Result<(), Status> {
    if subscription.ack_deadline_seconds == 0 {
        subscription.ack_deadline_seconds = *ACK_DEADLINE_SECONDS.start();
    }
    check_ack_deadline("ack_deadline_seconds", subscription.ack_deadline_seconds)?;
    let retention = &mut subscription.message_retention_duration;
    let retention = retention.get_or_insert_with(|| proto_span(RETENTION_DEFAULT));
    check_span("message_retention_duration", retention, RETENTION)?;
    let expiration = &mut subscription.expiration_policy;
    let expiration = expiration.get_or_insert_with(|| wire::ExpirationPolicy {
        ttl: Some(proto_span(RETENTION_MAX)),
    });
    if let Some(ttl) = &expiration.ttl {
        check_span("expiration_policy.ttl", ttl, DAY..=Duration::MAX)?;
    }
    if let Some(policy) = &mut subscription.dead_letter_policy {
        complete_dead_letter(policy)?;
    }
    if let Some(policy) = &mut subscription.retry_policy {
        complete_retry(policy)?;
    }
    filter::read(&subscription.filter)
        .map_err(|error| invalid("filter", &subscription.filter, &error))?;
    let push = subscription
        .push_config
        .get_or_insert_with(Default::default);
    complete_push(push)?;
    if subscription.enable_exactly_once_delivery && !push.push_endpoint.is_empty() {
        return Err(bad_argument(
            "enable_exactly_once_delivery=true, a push subscription cannot have it",
        ));
    }
    subscription.state = wire::subscription::State::Active as i32;
    Ok(())
}

pub(super) fn check_ack_deadline(field: &str, seconds: i32) -> Result<(), Status> {
    match ACK_DEADLINE_SECONDS.contains(&seconds) {
        true => Ok(()),
        false => Err(invalid(field, seconds, "it is from 10 to 600")),
    }
}

fn complete_dead_letter(policy: &mut wire::DeadLetterPolicy) -> Result<(), Status> {
    names::check("dead_letter_topic", &policy.dead_letter_topic, "topics")?;
    if policy.max_delivery_attempts == 0 {
        policy.max_delivery_attempts = *ATTEMPTS.start();
    }
    let attempts = policy.max_delivery_attempts;
    match ATTEMPTS.contains(&attempts) {
        true => Ok(()),
        false => {
            let why = "it is from 5 to 100";
            Err(invalid("max_delivery_attempts", attempts, why))
        }
    }
}

fn complete_retry(policy: &mut wire::RetryPolicy) -> Result<(), Status> {
    let min = &mut policy.minimum_backoff;
    let min = *min.get_or_insert_with(|| proto_span(BACKOFF_MIN_DEFAULT));
    let max = &mut policy.maximum_backoff;
    let max = *max.get_or_insert_with(|| proto_span(BACKOFF_MAX));
    check_span("minimum_backoff", &min, BACKOFF)?;
    check_span("maximum_backoff", &max, BACKOFF)?;
    match span_of(&min) <= span_of(&max) {
        true => Ok(()),
        false => Err(bad_argument("minimum_backoff, it is above maximum_backoff")),
    }
}

/// Looks at where messages are pushed to.
pub(super) fn complete_push(push: &mut wire::PushConfig) -> Result<(), Status> {
    if push.push_endpoint.is_empty() {
        return Ok(());
    }
    match Url::parse(&push.push_endpoint) {
        Ok(url) if ["http", "https"].contains(&url.scheme()) && url.has_host() => Ok(()),
        Ok(_) | Err(_) => Err(Status::invalid_argument(format!(
            "Invalid push endpoint given (endpoint={}). Refer to \
             https://cloud.google.com/pubsub/docs/push for more information.",
            push.push_endpoint
        ))),
    }
}

fn check_span(
    field: &str,
    span: &ProtoDuration,
    allowed: RangeInclusive<Duration>,
) -> Result<(), Status> {
    if span_of(span).is_some_and(|value| allowed.contains(&value)) {
        return Ok(());
    }
    let value = format!("{}.{:09}s", span.seconds, span.nanos);
    let (min, max) = allowed.into_inner();
    let max = match max {
        Duration::MAX => "any length".to_owned(),
        max => format!("{} minutes", max.as_secs() / MINUTE.as_secs()),
    };
    let min = min.as_secs() / MINUTE.as_secs();
    let why = format!("it is from {min} minutes to {max}");
    Err(invalid(field, value, &why))
}

/// What a complete subscription's backlog goes by.
pub(super) fn policy(subscription: &wire::Subscription) -> DeliveryPolicy {
    let span = |span: &Option<ProtoDuration>| span.as_ref().and_then(span_of);
    let seconds = u64::try_from(subscription.ack_deadline_seconds).unwrap_or(10);
    let retry = subscription.retry_policy.as_ref().map(|policy| {
        (
            span(&policy.minimum_backoff).unwrap_or(BACKOFF_MIN_DEFAULT),
            span(&policy.maximum_backoff).unwrap_or(BACKOFF_MAX),
        )
    });
    let dead_letter = subscription.dead_letter_policy.as_ref();
    let retention = span(&subscription.message_retention_duration).unwrap_or(RETENTION_DEFAULT);
    // What the topic still has is available to every subscription.
    let of_topic = span(&subscription.topic_message_retention_duration).unwrap_or_default();
    DeliveryPolicy {
        ordered: subscription.enable_message_ordering,
        exactly_once: subscription.enable_exactly_once_delivery,
        retain_acked: subscription.retain_acked_messages,
        ack_deadline: Duration::from_secs(seconds),
        retention: retention.max(of_topic),
        retry,
        attempts_max: dead_letter.map(|it| u32::try_from(it.max_delivery_attempts).unwrap_or(5)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(key: &str, value: &str) -> Result<(), Status> {
        check_labels(
            &[(key.to_owned(), value.to_owned())].into(),
            &HashMap::new(),
        )
    }

    #[test]
    fn labels_are_what_google_takes() {
        let (longest, longer) = ("a".repeat(63), "a".repeat(64));
        for (key, value) in [
            ("env", "production"),
            ("a", ""),
            ("a-_9", "-_9a"),
            ("goog-terraform-provisioned", "true"),
            ("größe", "mañana"),
            ("名前", "値"),
            (&longest, &longest),
            (&"é".repeat(63), "नमस्ते"),
        ] {
            checked(key, value).unwrap_or_else(|why| panic!("{key}: {value}: {why}"));
        }
        for (key, value) in [
            ("A", ""),
            ("", ""),
            ("1a", ""),
            ("_a", ""),
            ("a.b", ""),
            ("Éa", ""),
            (&longer, ""),
            ("a", "B"),
            ("a", "b c"),
            ("a", "\u{1}"),
            ("a", "\u{85}"),
            ("a", &longer),
        ] {
            let old = [(key.to_owned(), value.to_owned())].into();
            check_labels(&old, &old).unwrap();
            let refused = checked(key, value).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::InvalidArgument);
            assert!(
                refused.message().contains(&format!("={key:?}, ")),
                "{refused}"
            );
        }
        let many = |count: usize| {
            (0..count)
                .map(|n| (format!("a{n}"), String::new()))
                .collect()
        };
        check_labels(&many(64), &HashMap::new()).unwrap();
        assert!(check_labels(&many(65), &HashMap::new()).is_err());
    }
}
