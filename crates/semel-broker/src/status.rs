//! Refusals with details, as Google's services attach them, and no longer than clients can read.
//!
//! gRPC's clients take at most 8 kB of metadata; more of it, and a refusal reaches them as `RESOURCE_EXHAUSTED`, which
//! they retry.

use crate::proto::rpc::{self, ErrorInfo};
use prost::Message;
use prost_types::Any;
use std::borrow::Cow;
use tonic::{Code, Status};

/// Of a longer message the middle is left out. On the wire one byte may become three.
const MESSAGE_BYTES_MAX: usize = 1000;

/// How much of a message that is too long is kept before and after what is left out.
const HEAD_BYTES: usize = 600;
const TAIL_BYTES: usize = 300;

/// All details together. On the wire three bytes become four.
pub(crate) const DETAILS_BYTES_MAX: usize = 4000;

/// A refusal with these details, but for the last ones if they are too long.
pub(crate) fn detailed(code: Code, message: &str, details: Vec<Any>) -> Status {
    let message = cut(message);
    let mut status = rpc::Status {
        code: code.into(),
        message: message.clone().into(),
        details,
    };
    while status.encoded_len() > DETAILS_BYTES_MAX && status.details.pop().is_some() {}
    Status::with_details(code, message, status.encode_to_vec().into())
}

/// A refusal as it is told: whatever it repeats of the request, it is short enough.
pub(crate) fn told(status: Status) -> Status {
    match cut(status.message()) {
        Cow::Borrowed(_) => status,
        Cow::Owned(message) => {
            let details = bytes::Bytes::copy_from_slice(status.details());
            let metadata = status.metadata().clone();
            Status::with_details_and_metadata(status.code(), message, details, metadata)
        }
    }
}

/// A text without its middle if it is long: what is wrong stands before a value or after it.
pub(crate) fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= MESSAGE_BYTES_MAX {
        return text.into();
    }
    let head = text.floor_char_boundary(HEAD_BYTES);
    let tail = text.ceil_char_boundary(text.len() - TAIL_BYTES);
    let (head, tail) = (text.get(..head), text.get(tail..));
    let (head, tail) = (head.unwrap_or_default(), tail.unwrap_or_default());
    let left_out = text.len() - head.len() - tail.len();
    format!("{head} [{left_out} bytes left out] {tail}").into()
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
            .map(|(key, value)| (key.into(), cut(value).into()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_loses_its_middle() {
        assert_eq!(cut("short"), "short");
        for letter in ["x", "é", "😀"] {
            let text = format!("before {} after", letter.repeat(20_000));
            let shown = cut(&text);
            assert!(shown.len() <= MESSAGE_BYTES_MAX, "{}", shown.len());
            assert!(shown.starts_with("before ") && shown.ends_with(" after"));
        }
    }

    #[test]
    fn details_that_are_too_long_are_left_out_from_the_last_on() {
        let long = "x".repeat(DETAILS_BYTES_MAX);
        let localized = rpc::LocalizedMessage {
            locale: "en-US".into(),
            message: long.clone(),
        };
        let details = vec![
            error_info("R", "d", [("k", &*long)]),
            detail("LocalizedMessage", &localized),
        ];
        let status = detailed(Code::InvalidArgument, &long, details);
        assert!(status.details().len() <= DETAILS_BYTES_MAX);
        let kept = rpc::Status::decode(status.details()).expect("it was encoded");
        assert_eq!(kept.details.len(), 1);
        assert_eq!(kept.message, status.message());
    }
}
