//! Which settings an update may change.

use super::errors::bad_argument;
use crate::proto::pubsub as wire;
use prost_types::FieldMask;
use tonic::Status;

/// The paths of a mask, in the spelling of the interface; there has to be at least one.
pub(super) fn paths(mask: Option<&FieldMask>, request: &str) -> Result<Vec<String>, Status> {
    let paths = mask.map_or(&[][..], |mask| mask.paths.as_slice());
    if paths.is_empty() {
        return Err(Status::invalid_argument(format!(
            "The update_mask in the {request} must be set, and must contain a non-empty paths list."
        )));
    }
    Ok(paths.iter().map(|path| snake(path)).collect())
}

/// Takes one field over from what is wanted.
pub(super) fn take_over(
    settings: &mut wire::Subscription,
    wanted: &wire::Subscription,
    path: &str,
) -> Result<(), Status> {
    match path {
        "push_config" => settings.push_config.clone_from(&wanted.push_config),
        "ack_deadline_seconds" => settings.ack_deadline_seconds = wanted.ack_deadline_seconds,
        "retain_acked_messages" => settings.retain_acked_messages = wanted.retain_acked_messages,
        "message_retention_duration" => {
            settings.message_retention_duration = wanted.message_retention_duration;
        }
        "labels" => settings.labels.clone_from(&wanted.labels),
        "expiration_policy" => settings.expiration_policy = wanted.expiration_policy,
        "dead_letter_policy" => {
            settings
                .dead_letter_policy
                .clone_from(&wanted.dead_letter_policy);
        }
        "retry_policy" => settings.retry_policy = wanted.retry_policy,
        "enable_exactly_once_delivery" => {
            settings.enable_exactly_once_delivery = wanted.enable_exactly_once_delivery;
        }
        part => return take_part_over(settings, wanted, part),
    }
    Ok(())
}

/// Takes a field of a field over.
fn take_part_over(
    settings: &mut wire::Subscription,
    wanted: &wire::Subscription,
    path: &str,
) -> Result<(), Status> {
    let wanted_push = wanted.push_config.clone().unwrap_or_default();
    let push = settings.push_config.get_or_insert_default();
    let wanted_letter = wanted.dead_letter_policy.clone().unwrap_or_default();
    match path {
        "push_config.push_endpoint" => push.push_endpoint = wanted_push.push_endpoint,
        "push_config.attributes" => push.attributes = wanted_push.attributes,
        "push_config.oidc_token" => {
            push.authentication_method = wanted_push.authentication_method;
        }
        "push_config.no_wrapper" | "push_config.pubsub_wrapper" => {
            push.wrapper = wanted_push.wrapper;
        }
        "dead_letter_policy.dead_letter_topic" => {
            let letter = settings.dead_letter_policy.get_or_insert_default();
            letter.dead_letter_topic = wanted_letter.dead_letter_topic;
        }
        "dead_letter_policy.max_delivery_attempts" => {
            let letter = settings.dead_letter_policy.get_or_insert_default();
            letter.max_delivery_attempts = wanted_letter.max_delivery_attempts;
        }
        "retry_policy.minimum_backoff" => {
            let retry = settings.retry_policy.get_or_insert_default();
            retry.minimum_backoff = wanted.retry_policy.and_then(|it| it.minimum_backoff);
        }
        "retry_policy.maximum_backoff" => {
            let retry = settings.retry_policy.get_or_insert_default();
            retry.maximum_backoff = wanted.retry_policy.and_then(|it| it.maximum_backoff);
        }
        "expiration_policy.ttl" => settings.expiration_policy = wanted.expiration_policy,
        other => {
            return Err(bad_argument(&format!(
                "update_mask, {other} cannot be changed"
            )));
        }
    }
    Ok(())
}

/// REST clients may write `ackDeadlineSeconds`.
fn snake(path: &str) -> String {
    let mut snake = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_path_are_understood() {
        assert_eq!(snake("ackDeadlineSeconds"), "ack_deadline_seconds");
        assert_eq!(
            snake("push_config.pushEndpoint"),
            "push_config.push_endpoint"
        );
        assert!(paths(None, "UpdateTopicRequest").is_err());
    }

    #[test]
    fn what_cannot_change_is_refused() {
        let wanted = wire::Subscription::default();
        for path in [
            "filter",
            "topic",
            "name",
            "enable_message_ordering",
            "nonsense",
        ] {
            assert!(
                take_over(&mut wanted.clone(), &wanted, path).is_err(),
                "{path}"
            );
        }
    }
}
