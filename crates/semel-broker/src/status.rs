//! Refusals with details, as Google's services attach them.

use crate::proto::rpc::{self, ErrorInfo};
use prost::Message;
use prost_types::Any;
use tonic::{Code, Status};

/// A refusal with these details.
pub(crate) fn detailed(code: Code, message: &str, details: Vec<Any>) -> Status {
    let status = rpc::Status {
        code: code.into(),
        message: message.into(),
        details,
    };
    Status::with_details(code, message, status.encode_to_vec().into())
}

/// Why, in words for programs.
pub(crate) fn error_info<'a>(
    reason: &str,
    domain: &str,
    metadata: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Any {
    let metadata = metadata.into_iter();
    let info = ErrorInfo {
        reason: reason.into(),
        domain: domain.into(),
        metadata: metadata
            .map(|(key, value)| (key.into(), value.into()))
            .collect(),
    };
    detail("ErrorInfo", &info)
}

/// A detail of a type in `google.rpc`.
pub(crate) fn detail(name: &str, message: &impl Message) -> Any {
    Any {
        type_url: format!("type.googleapis.com/google.rpc.{name}"),
        value: message.encode_to_vec(),
    }
}
