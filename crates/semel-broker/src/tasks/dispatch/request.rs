//! Where an attempt goes and with what.

use crate::clock::span_of;
use crate::context::Context;
use crate::http_client::{OutgoingRequest, Redirects};
use crate::proto::tasks::http_request::AuthorizationHeader as TaskToken;
use crate::proto::tasks::task::MessageType;
use crate::proto::tasks::{AppEngineHttpRequest, HttpMethod, HttpRequest, Queue, StoredTask, Task};
use crate::tasks::headers::{self, AttemptInfo};
use crate::tasks::queue_runner::QueueRunner;
use crate::tasks::{target, validate};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method};
use std::time::Duration;
use url::{Host, Url};

/// What a Google API would check; nothing here can issue one that it accepts.
const OAUTH: &str = "Bearer not-a-real-access-token";

#[derive(Debug)]
pub(super) enum TaskRequest {
    Http(Box<OutgoingRequest>),
    /// The request cannot be made.
    Unroutable {
        target: String,
        why: String,
    },
}

// === impl TaskRequest ===

impl TaskRequest {
    /// As the history names it.
    pub(super) fn target(&self) -> &str {
        match self {
            Self::Http(call) => call.url.as_str(),
            Self::Unroutable { target, .. } => target,
        }
    }

    fn unroutable(target: &str, why: &str) -> Self {
        Self::Unroutable {
            target: target.into(),
            why: why.into(),
        }
    }
}

/// The request of a task's next attempt, as its queue is configured now; `before` dispatches came first. A fault may
/// `cut` it after so many bytes of its body.
pub(super) async fn build(
    runner: &QueueRunner,
    stored: &StoredTask,
    id: &str,
    before: u32,
    cut: Option<usize>,
) -> TaskRequest {
    let queue = runner.queue();
    let info = AttemptInfo {
        queue: &runner.name,
        id,
        before,
        stored,
    };
    let task = stored.task.as_ref();
    let mut request = match task.and_then(|task| task.message_type.as_ref()) {
        Some(MessageType::HttpRequest(request)) => {
            to_handler(runner.context(), &queue, request, &info).await
        }
        Some(MessageType::AppEngineHttpRequest(request)) => {
            to_app_engine(runner.app_engine_url(), &queue, request, &info)
        }
        None => TaskRequest::unroutable("", "the task has no target"),
    };
    if let TaskRequest::Http(call) = &mut request {
        call.cut = cut;
    }
    request
}

async fn to_handler(
    context: &Context,
    queue: &Queue,
    request: &HttpRequest,
    info: &AttemptInfo<'_>,
) -> TaskRequest {
    let over = queue.http_target.as_ref();
    let Some(url) = target::resolve(over, &request.url) else {
        return TaskRequest::unroutable(&request.url, "this is not an address");
    };
    let method = match over.map(crate::proto::tasks::HttpTarget::http_method) {
        None | Some(HttpMethod::Unspecified) => request.http_method(),
        Some(method) => method,
    };
    if !request.body.is_empty() && !validate::carries_body(method) {
        return TaskRequest::unroutable(url.as_str(), "a request of this method carries no body");
    }
    let mut headers = headers::base(&request.headers, over);
    headers::add_attempt_headers(&mut headers, info);
    let token = over
        .and_then(validate::token_of)
        .or(request.authorization_header.clone());
    if let Some(token) = token {
        let token = validate::with_defaults(token, &request.url);
        match authorization(context, &token).await {
            Ok(value) => drop(headers.insert(AUTHORIZATION, value)),
            Err(why) => return TaskRequest::unroutable(url.as_str(), &why),
        }
    }
    let body = request.body.clone();
    call(url, method, headers, body, info, Redirects::Follow)
}

async fn authorization(context: &Context, token: &TaskToken) -> Result<HeaderValue, String> {
    match token {
        TaskToken::OauthToken(_) => Ok(HeaderValue::from_static(OAUTH)),
        TaskToken::OidcToken(oidc) => {
            let (email, audience) = (&oidc.service_account_email, &oidc.audience);
            context.issuer.bearer(email, audience).await
        }
    }
}

/// App Engine itself is not here: a host on this machine can stand in for it, or what the broker was told at its start.
fn to_app_engine(
    stands_in: Option<&Url>,
    queue: &Queue,
    request: &AppEngineHttpRequest,
    info: &AttemptInfo<'_>,
) -> TaskRequest {
    let routing = queue.app_engine_routing_override.as_ref();
    let routing = routing.or(request.app_engine_routing.as_ref());
    let host = routing
        .map(|routing| routing.host.as_str())
        .unwrap_or_default();
    let address = format!("http://{host}{}", request.relative_uri);
    let routed = Url::parse(&address).ok();
    let routed = routed.filter(|url| is_host_and_port(host) && is_here(url));
    let stands_in = || joined(stands_in?, &request.relative_uri);
    let Some(url) = routed.or_else(stands_in) else {
        let why = "App Engine is not here: route the task to a host and port on this machine, or start the broker with \
                   --app-engine-url";
        return TaskRequest::unroutable(&address, why);
    };
    let mut headers = headers::base(&request.headers, None);
    headers::add_app_engine_headers(&mut headers, info);
    let (method, body) = (request.http_method(), request.body.clone());
    call(url, method, headers, body, info, Redirects::Answer)
}

/// A URL with a task's own path and query after it.
fn joined(base: &Url, relative_uri: &str) -> Option<Url> {
    let base = base.as_str().trim_end_matches('/');
    Url::parse(&format!("{base}{relative_uri}")).ok()
}

/// Whether there is nothing else in it that a URL would take for a user, a path or a query.
fn is_host_and_port(host: &str) -> bool {
    let allowed = |it: char| it.is_ascii_alphanumeric() || ".-_:[]".contains(it);
    host.chars().all(allowed)
}

fn is_here(url: &Url) -> bool {
    let loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    loopback && url.port().is_some()
}

fn call(
    url: Url,
    method: HttpMethod,
    headers: HeaderMap,
    body: Bytes,
    info: &AttemptInfo<'_>,
    redirects: Redirects,
) -> TaskRequest {
    TaskRequest::Http(Box::new(OutgoingRequest {
        method: http_method(method),
        url,
        headers,
        body,
        deadline: deadline(info.stored.task.as_ref()),
        redirects,
        cut: None,
    }))
}

/// POST unless another one is said; the names are HTTP's own.
fn http_method(method: HttpMethod) -> Method {
    if method == HttpMethod::Unspecified {
        return Method::POST;
    }
    let name = method.as_str_name().parse();
    name.expect("it is a method of HTTP")
}

fn deadline(task: Option<&Task>) -> Duration {
    let deadline = task.and_then(|task| task.dispatch_deadline.as_ref());
    deadline
        .and_then(span_of)
        .unwrap_or(Duration::from_secs(600))
}
