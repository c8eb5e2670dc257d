//! What is refused, in the words of production.

use super::names::short;
use crate::proto::rpc;
use prost::Message;
use prost_types::Any;
use std::collections::HashMap;
use tonic::{Code, Status};

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

/// What clients look for in the details.
const INVALID_ACK_ID: &str = "PERMANENT_FAILURE_INVALID_ACK_ID";

const BAD_ACK_IDS: &str = "Some acknowledgement ids in the request were invalid. This could be because the \
                           acknowledgement ids have expired or the acknowledgement ids were malformed.";

pub(super) fn not_found(name: &str) -> Status {
    Status::not_found(format!("Resource not found (resource={}).", short(name)))
}

pub(super) fn already_exists(name: &str) -> Status {
    let name = short(name);
    Status::already_exists(format!(
        "Resource already exists in the project (resource={name})."
    ))
}

pub(super) fn bad_name(field: &str, name: &str) -> Status {
    Status::invalid_argument(format!(
        "Invalid resource name given ({field}={name}). Refer to \
         https://cloud.google.com/pubsub/docs/admin#resource_names for more information."
    ))
}

pub(super) fn bad_argument(argument: &str) -> Status {
    Status::invalid_argument(format!(
        "You have passed an invalid argument to the service (argument={argument})."
    ))
}

/// The value of one field is wrong, and why.
pub(super) fn invalid(field: &str, value: impl std::fmt::Display, why: &str) -> Status {
    bad_argument(&format!("{field}={value}, {why}"))
}

pub(super) fn not_for_push() -> Status {
    Status::failed_precondition("This method is not supported for this subscription type.")
}

pub(super) fn detached(name: &str) -> Status {
    let name = short(name);
    Status::failed_precondition(format!("Subscription is detached (resource={name})."))
}

/// Some acknowledgement ids are malformed.
pub(super) fn malformed_ack_ids() -> Status {
    Status::invalid_argument(BAD_ACK_IDS)
}

/// Some acknowledgement ids do not count any more; the details name them.
pub(super) fn invalid_ack_ids(ids: &[String]) -> Status {
    let metadata: HashMap<String, String> = ids
        .iter()
        .map(|id| (id.clone(), INVALID_ACK_ID.to_owned()))
        .collect();
    let info = rpc::ErrorInfo {
        reason: INVALID_ACK_ID.into(),
        domain: "pubsub.googleapis.com".into(),
        metadata,
    };
    let status = rpc::Status {
        code: Code::InvalidArgument as i32,
        message: BAD_ACK_IDS.into(),
        details: vec![Any {
            type_url: ERROR_INFO.into(),
            value: info.encode_to_vec(),
        }],
    };
    let details = status.encode_to_vec().into();
    Status::with_details(Code::InvalidArgument, BAD_ACK_IDS, details)
}
