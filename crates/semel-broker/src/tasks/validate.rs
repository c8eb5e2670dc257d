//! A task as it is stored, from what its creator sent: checked, cleaned, and gaps filled.

use super::errors::{invalid, invalid_somehow};
use super::{config, headers, target};
use crate::clock::{Time, proto_span, span_of};
use crate::proto::tasks::http_request::AuthorizationHeader as TaskToken;
use crate::proto::tasks::http_target::AuthorizationHeader as QueueToken;
use crate::proto::tasks::task::MessageType;
use crate::proto::tasks::{AppEngineHttpRequest, HttpMethod, HttpRequest, HttpTarget, Queue, Task};
use bytes::Bytes;
use jiff::{Timestamp, tz::TimeZone};
use prost::Message;
use prost_types::Timestamp as ProtoTimestamp;
use std::collections::HashMap;
use std::time::Duration;
use tonic::Status;
use url::Url;

const TASK_BYTES_MAX: usize = (1 << 20) - 7;
const URL_CHARS_MAX: usize = 2083;
const HEADERS_BYTES_MAX: usize = 80 * 1024;
const DEADLINE_MIN: Duration = Duration::from_secs(15);
const DEADLINE_MAX: Duration = Duration::from_secs(30 * 60);
const APP_ENGINE_DEADLINE_MAX: Duration = Duration::from_secs(24 * 3600 + 15);
const DEADLINE_DEFAULT: Duration = Duration::from_secs(600);
const AHEAD_MAX: Duration = Duration::from_secs(720 * 3600);
/// The first second of the year 10000, which no timestamp may name.
const TIME_END_SECONDS: i64 = 253_402_300_800;
const SCOPE_DEFAULT: &str = "https://www.googleapis.com/auth/cloud-platform";

/// What a task is checked against.
#[derive(Debug)]
pub(super) struct Validation<'a> {
    pub(super) queue: &'a Queue,
    /// Where tasks without an address go.
    pub(super) functions_url: Option<&'a Url>,
    pub(super) now: Time,
}

/// The task as it will be stored under `name`.
pub(super) fn accepted(
    task: Task,
    name: String,
    validation: &Validation<'_>,
) -> Result<Task, Status> {
    let message = match task.message_type {
        None => return Err(invalid("Task.payload_type is not set.")),
        Some(MessageType::HttpRequest(request)) => {
            MessageType::HttpRequest(Box::new(http_request(*request, validation)?))
        }
        Some(MessageType::AppEngineHttpRequest(request)) => {
            MessageType::AppEngineHttpRequest(Box::new(app_engine_request(*request)?))
        }
    };
    let dispatch_deadline = Some(deadline(task.dispatch_deadline, &message)?);
    let retry_config = task
        .retry_config
        .map(config::retry_with_defaults)
        .transpose()?;
    let task = Task {
        name,
        message_type: Some(message),
        schedule_time: Some(schedule(task.schedule_time.as_ref(), validation.now)?),
        create_time: Some(ProtoTimestamp {
            nanos: 0,
            ..validation.now.timestamp()
        }),
        dispatch_deadline,
        retry_config,
        ..Task::default()
    };
    if task.encoded_len() > TASK_BYTES_MAX {
        return Err(invalid("Task size too large"));
    }
    Ok(task)
}

fn http_request(
    mut request: HttpRequest,
    validation: &Validation<'_>,
) -> Result<HttpRequest, Status> {
    let queue_target = validation.queue.http_target.as_ref();
    if request.url.is_empty() {
        request.url =
            given_address(validation).ok_or_else(|| invalid("HttpRequest.url is required."))?;
    }
    if !request.url.starts_with("http://") && !request.url.starts_with("https://") {
        return Err(invalid(
            "HttpTarget.url must start with 'http://' or 'https://'.",
        ));
    }
    if request.url.chars().count() > URL_CHARS_MAX {
        return Err(invalid(
            "HttpRequest.url must not be longer than 2083 characters.",
        ));
    }
    request.http_method = method(request.http_method).into();
    check_body(request.http_method(), &request.body)?;
    request.headers = headers::stored(request.headers, headers::AGENT);
    check_headers(&request.headers)?;
    if let Some(token) = &request.authorization_header {
        check_email(token)?;
    }
    let token = queue_target
        .and_then(token_of)
        .or(request.authorization_header);
    request.authorization_header = token.map(|token| with_defaults(token, &request.url));
    check_oauth_host(&request)?;
    Ok(request)
}

/// Where a task without an address goes, if anything says so.
fn given_address(validation: &Validation<'_>) -> Option<String> {
    let target = validation.queue.http_target.as_ref();
    if let Some(url) = target.and_then(target::address) {
        return Some(url.into());
    }
    let mut url = validation.functions_url?.clone();
    let parts: Vec<&str> = validation.queue.name.split('/').collect();
    let [_, project, _, location, _, queue] = parts.as_slice() else {
        return None;
    };
    url.path_segments_mut()
        .ok()?
        .pop_if_empty()
        .extend([project, location, queue]);
    Some(url.into())
}

/// The queue's way to say who delivers, as a task's.
pub(super) fn token_of(target: &HttpTarget) -> Option<TaskToken> {
    let token = target.authorization_header.clone()?;
    Some(match token {
        QueueToken::OauthToken(token) => TaskToken::OauthToken(token),
        QueueToken::OidcToken(token) => TaskToken::OidcToken(token),
    })
}

/// A token with its audience or scope.
pub(super) fn with_defaults(token: TaskToken, url: &str) -> TaskToken {
    match token {
        TaskToken::OidcToken(mut token) => {
            if token.audience.is_empty() {
                token.audience = url.into();
            }
            TaskToken::OidcToken(token)
        }
        TaskToken::OauthToken(mut token) => {
            if token.scope.is_empty() {
                token.scope = SCOPE_DEFAULT.into();
            }
            TaskToken::OauthToken(token)
        }
    }
}

pub(super) fn check_email(token: &TaskToken) -> Result<(), Status> {
    match token {
        TaskToken::OidcToken(token) => target::check_email(&token.service_account_email),
        TaskToken::OauthToken(token) => target::check_email(&token.service_account_email),
    }
}

fn check_oauth_host(request: &HttpRequest) -> Result<(), Status> {
    let Some(TaskToken::OauthToken(_)) = request.authorization_header else {
        return Ok(());
    };
    let url = Url::parse(&request.url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    if host.ends_with(".googleapis.com") {
        return Ok(());
    }
    Err(invalid(
        "Invalid url for HttpRequest.oauth_token. The hostname in the url must end with \".googleapis.com\"",
    ))
}

fn app_engine_request(mut request: AppEngineHttpRequest) -> Result<AppEngineHttpRequest, Status> {
    if request.relative_uri.is_empty() {
        request.relative_uri = "/".into();
    }
    if !request.relative_uri.starts_with('/') {
        return Err(invalid(
            "AppEngineHttpRequest.relativeUri must begin with '/'.",
        ));
    }
    request.http_method = method(request.http_method).into();
    check_body(request.http_method(), &request.body)?;
    request.headers = headers::stored(request.headers, headers::APP_ENGINE_AGENT);
    check_headers(&request.headers)?;
    Ok(request)
}

/// POST unless it is one we know.
fn method(number: i32) -> HttpMethod {
    match HttpMethod::try_from(number) {
        Ok(HttpMethod::Unspecified) | Err(_) => HttpMethod::Post,
        Ok(method) => method,
    }
}

/// Whether requests of this method carry a body.
pub(super) fn carries_body(method: HttpMethod) -> bool {
    match method {
        HttpMethod::Unspecified | HttpMethod::Post | HttpMethod::Put | HttpMethod::Patch => true,
        HttpMethod::Get | HttpMethod::Head | HttpMethod::Delete | HttpMethod::Options => false,
    }
}

fn check_body(method: HttpMethod, body: &Bytes) -> Result<(), Status> {
    if body.is_empty() || carries_body(method) {
        return Ok(());
    }
    Err(invalid(
        "Body can only be set if the http_method is POST, PUT, or PATCH.",
    ))
}

fn check_headers(headers: &HashMap<String, String>) -> Result<(), Status> {
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if bytes >= HEADERS_BYTES_MAX {
        return Err(invalid(
            "The headers of a task must be smaller than 80KB together.",
        ));
    }
    Ok(())
}

fn deadline(
    wanted: Option<prost_types::Duration>,
    message: &MessageType,
) -> Result<prost_types::Duration, Status> {
    let (max, range) = match message {
        MessageType::HttpRequest(_) => (DEADLINE_MAX, "[15s, 30m]"),
        MessageType::AppEngineHttpRequest(_) => (APP_ENGINE_DEADLINE_MAX, "[15s, 24h15s]"),
    };
    let Some(wanted) = wanted else {
        return Ok(proto_span(DEADLINE_DEFAULT));
    };
    match span_of(&wanted) {
        Some(span) if (DEADLINE_MIN..=max).contains(&span) => {
            let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            Ok(proto_span(Duration::from_millis(millis)))
        }
        Some(_) | None => Err(invalid(format!(
            "Task.dispatchDeadline must be between {range}."
        ))),
    }
}

fn schedule(wanted: Option<&ProtoTimestamp>, now: Time) -> Result<ProtoTimestamp, Status> {
    let Some(wanted) = wanted else {
        return Ok(now.timestamp());
    };
    if wanted.seconds >= TIME_END_SECONDS || !(0..1_000_000_000).contains(&wanted.nanos) {
        return Err(invalid_somehow());
    }
    let time = Time::of(wanted);
    if time > now.plus(AHEAD_MAX) {
        return Err(invalid(format!(
            "The Task.scheduleTime, {}, is too far in the future. Schedule time must be no more than 720h in the future.",
            in_california(wanted)
        )));
    }
    Ok(time.max(now).timestamp())
}

/// As production writes times in its refusals: in its own time zone, by the rules of today.
fn in_california(time: &ProtoTimestamp) -> String {
    let zone = TimeZone::posix("PST8PDT,M3.2.0,M11.1.0").unwrap_or(TimeZone::UTC);
    let stamp = Timestamp::new(time.seconds, time.nanos).unwrap_or_default();
    let zoned = stamp.to_zoned(zone);
    zoned.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_recorded() {
        let written = |seconds, nanos| in_california(&ProtoTimestamp { seconds, nanos });
        assert_eq!(written(4_102_444_800, 0), "2099-12-31T16:00:00-08:00");
        assert_eq!(
            written(4_102_444_800, 500_000_000),
            "2099-12-31T16:00:00.5-08:00"
        );
        assert_eq!(
            written(4_102_444_800, 1),
            "2099-12-31T16:00:00.000000001-08:00"
        );
        assert_eq!(written(4_118_083_200, 0), "2100-06-30T17:00:00-07:00");
    }

    #[test]
    fn past_times_become_now() {
        let now = Time(1_700_000_000_000_000);
        for seconds in [0, -1, -62_135_596_800, -62_135_596_801] {
            let time = ProtoTimestamp { seconds, nanos: 0 };
            assert_eq!(schedule(Some(&time), now).unwrap(), now.timestamp());
        }
        let never = ProtoTimestamp {
            seconds: TIME_END_SECONDS,
            nanos: 0,
        };
        let refusal = schedule(Some(&never), now).unwrap_err();
        assert_eq!(refusal.message(), "Request contains an invalid argument.");
    }
}
