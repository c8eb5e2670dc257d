//! Which settings an update may change.

use super::errors::bad_argument;
use crate::field_mask::{self, Parents};
use prost::Message;
use prost_types::FieldMask;
use tonic::Status;

/// A kind of resource that can be updated.
#[derive(Debug)]
pub(super) struct Updatable {
    /// Its message's full name, and its request's.
    message: &'static str,
    request: &'static str,
    /// Which fields can change.
    fields: &'static [&'static str],
}

pub(super) const TOPIC: Updatable = Updatable {
    message: "google.pubsub.v1.Topic",
    request: "UpdateTopicRequest",
    fields: &[
        "labels",
        "message_storage_policy",
        "schema_settings",
        "schema_settings.schema",
        "schema_settings.encoding",
        "schema_settings.first_revision_id",
        "schema_settings.last_revision_id",
        "message_retention_duration",
    ],
};

pub(super) const SUBSCRIPTION: Updatable = Updatable {
    message: "google.pubsub.v1.Subscription",
    request: "UpdateSubscriptionRequest",
    fields: &[
        "push_config",
        "push_config.push_endpoint",
        "push_config.attributes",
        "push_config.oidc_token",
        "push_config.no_wrapper",
        "push_config.pubsub_wrapper",
        "ack_deadline_seconds",
        "retain_acked_messages",
        "message_retention_duration",
        "labels",
        "expiration_policy",
        "expiration_policy.ttl",
        "dead_letter_policy",
        "dead_letter_policy.dead_letter_topic",
        "dead_letter_policy.max_delivery_attempts",
        "retry_policy",
        "retry_policy.minimum_backoff",
        "retry_policy.maximum_backoff",
        "enable_exactly_once_delivery",
    ],
};

pub(super) const SNAPSHOT: Updatable = Updatable {
    message: "google.pubsub.v1.Snapshot",
    request: "UpdateSnapshotRequest",
    fields: &["labels", "expire_time"],
};

// === impl Updatable ===

impl Updatable {
    /// `old` with the fields of `new` that the mask names; it has to name at least one, and only such as can change.
    pub(super) fn merged<M: Message + Default>(
        &self,
        old: &M,
        new: &M,
        mask: Option<&FieldMask>,
    ) -> Result<M, Status> {
        let paths = mask.map_or(&[][..], |mask| mask.paths.as_slice());
        if paths.is_empty() {
            return Err(Status::invalid_argument(format!(
                "The update_mask in the {} must be set, and must contain a non-empty paths list.",
                self.request
            )));
        }
        let mut copied = Vec::new();
        for path in paths {
            let path = field_mask::snake_case(path);
            field_mask::check_served(self.message, &path)?;
            let known = self.fields.iter().find(|field| **field == path);
            copied.extend(taken_over(known.ok_or_else(|| {
                bad_argument(&format!("update_mask, {path} cannot be changed"))
            })?));
        }
        Ok(field_mask::merged(
            self.message,
            old,
            new,
            copied,
            Parents::Created,
        ))
    }
}

/// What naming a field takes over: a choice is taken over whole, and so is a policy of one field.
fn taken_over(path: &'static str) -> Vec<&'static str> {
    match path {
        "push_config.no_wrapper" | "push_config.pubsub_wrapper" => {
            vec!["push_config.no_wrapper", "push_config.pubsub_wrapper"]
        }
        "expiration_policy.ttl" => vec!["expiration_policy"],
        path => vec![path],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::pubsub::Subscription;

    fn update(paths: &[&str]) -> Result<Subscription, Status> {
        let new = Subscription {
            ack_deadline_seconds: 77,
            ..Subscription::default()
        };
        let paths = paths.iter().map(|it| (*it).to_owned()).collect();
        let mask = FieldMask { paths };
        SUBSCRIPTION.merged(&Subscription::default(), &new, Some(&mask))
    }

    #[test]
    fn both_spellings_of_a_path_are_understood() {
        for path in ["ackDeadlineSeconds", "ack_deadline_seconds"] {
            assert_eq!(update(&[path]).unwrap().ack_deadline_seconds, 77);
        }
        let created = update(&["push_config.pushEndpoint"]).unwrap();
        assert!(created.push_config.is_some());
        assert!(update(&[]).is_err());
    }

    #[test]
    fn what_cannot_change_is_refused() {
        for path in [
            "filter",
            "topic",
            "name",
            "enable_message_ordering",
            "nonsense",
        ] {
            assert!(update(&[path]).is_err(), "{path}");
        }
    }
}
