//! What is refused, in the words of production.

use super::names::short;
use crate::status::{DETAILS_BYTES_MAX, detailed, error_info};
use tonic::{Code, Status};

/// What clients look for in the details.
const INVALID_ACK_ID: &str = "PERMANENT_FAILURE_INVALID_ACK_ID";

const BAD_ACK_IDS: &str = "Some acknowledgement ids in the request were invalid. This could be because the \
                           acknowledgement ids have expired or the acknowledgement ids were malformed.";

/// What stands around all ids that are named, and around each: the message, the types, tags and lengths.
const AROUND_ACK_IDS_BYTES: usize = 400;
const AROUND_ACK_ID_BYTES: usize = 9;

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

/// Some acknowledgement ids do not count any more; the details name as many as clients can read. Of an id that is not
/// named clients say that it failed for another reason, never that it was acknowledged.
pub(super) fn invalid_ack_ids(ids: &[String]) -> Status {
    let mut left = DETAILS_BYTES_MAX - AROUND_ACK_IDS_BYTES;
    let named = ids.iter().filter(|id| {
        let bytes = id.len() + INVALID_ACK_ID.len() + AROUND_ACK_ID_BYTES;
        let fits = bytes <= left;
        left -= if fits { bytes } else { 0 };
        fits
    });
    let metadata = named.map(|id| (&**id, INVALID_ACK_ID));
    let info = error_info(INVALID_ACK_ID, "pubsub.googleapis.com", metadata);
    detailed(Code::InvalidArgument, BAD_ACK_IDS, vec![info])
}
