//! The same interfaces as JSON over HTTP: a path, a query and a body become a message, the service answers, and the
//! answer becomes JSON. What is accepted, and the words of a refusal, are those of Google's front end.

mod route;
mod template;
mod query;
mod read;
mod scalar;
mod write;
mod error;

use crate::interface::{self, NotServed, Refusals};
use crate::methods::Method;
use crate::proto::tasks::{BufferTaskResponse, Task};
use crate::proto::{self, BUFFER_TASK_RESPONSE};
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use error::ErrorResponse;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use query::Query;
use read::MessageReader;
use route::{Action, Route};
use std::pin::Pin;
use std::sync::Arc;
use template::Path;
use tonic::Status;

/// The largest body of a request.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=UTF-8");

/// What only REST offers: requests that become tasks, with a version and without it.
const BUFFER_PATHS: [&str; 6] = [
    "/v2/{queue=projects/*/locations/*/queues/*}/tasks:buffer",
    "/v2/{queue=projects/*/locations/*/queues/*}/tasks/{task_id}:buffer",
    "/v2beta3/{queue=projects/*/locations/*/queues/*}/tasks:buffer",
    "/v2beta3/{queue=projects/*/locations/*/queues/*}/tasks/{task_id}:buffer",
    "/{queue=projects/*/locations/*/queues/*}/tasks:buffer",
    "/{queue=projects/*/locations/*/queues/*}/tasks/{task_id}:buffer",
];

/// All routes of all services.
struct Rest {
    routes: Vec<Route>,
    buffer: BufferCall,
    refusals: Arc<Refusals>,
}

/// A request that becomes a task of a queue that knows its target.
#[derive(Debug)]
pub(crate) struct Buffered {
    pub(crate) queue: String,
    pub(crate) task_id: Option<String>,
    pub(crate) method: http::Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Takes a request that becomes a task.
pub(crate) type BufferCall = Box<dyn Fn(Buffered) -> BufferFuture + Send + Sync>;

pub(crate) type BufferFuture = Pin<Box<dyn Future<Output = Result<Task, Status>> + Send>>;

/// A router whose fallback serves these methods as JSON.
pub(crate) fn router(
    methods: impl IntoIterator<Item = Method>,
    buffer: BufferCall,
    refusals: &Arc<Refusals>,
) -> Router {
    let mut routes: Vec<_> = methods.into_iter().flat_map(Route::of).collect();
    let refused = interface::refused_methods();
    let refused = refused.iter().flat_map(|(it, why)| Route::refused(it, why));
    routes.extend(BUFFER_PATHS.map(Route::buffer).into_iter().chain(refused));
    let rest = Arc::new(Rest {
        routes,
        buffer,
        refusals: Arc::clone(refusals),
    });
    Router::new().fallback(move |request: Request<Body>| {
        let rest = Arc::clone(&rest);
        async move { rest.answer(request).await }
    })
}

// === impl Rest ===

impl Rest {
    async fn answer(&self, request: Request<Body>) -> Response {
        if is_grpc(request.headers()) {
            return self
                .refused(&no_grpc_method(request.uri().path()))
                .into_http();
        }
        let (parts, body) = request.into_parts();
        let path = Path::new(parts.uri.path());
        let mut routes = self.routes.iter();
        let Some(route) = routes.find(|route| route.is_for(&parts.method, &path)) else {
            return match parts.uri.path().strip_prefix("/v2beta2/") {
                Some(_) => ErrorResponse::from(self.refused(&pull_queues())).response(),
                None => error::unmapped(parts.uri.path()),
            };
        };
        let values = route.values(&path);
        match self.serve(route, values, &parts, body).await {
            Ok(json) => ([(CONTENT_TYPE, JSON)], json).into_response(),
            Err(refusal) => refusal.response(),
        }
    }

    async fn serve(
        &self,
        route: &Route,
        values: Vec<String>,
        parts: &Parts,
        body: Body,
    ) -> Result<Vec<u8>, ErrorResponse> {
        let query = Query::parse(parts.uri.query().unwrap_or_default())?;
        let body = whole(body).await?;
        let answer = match &route.action {
            Action::Call {
                method,
                binding,
                variables,
            } => {
                let mut reader = MessageReader::new(method.descriptor.input());
                reader.body(binding, &body)?;
                for (name, value) in &query.fields {
                    reader.parameter(name, value);
                }
                // What comes last wins: a name in the body cannot lead elsewhere than the path.
                for (fields, value) in variables.iter().zip(&values) {
                    reader.variable(fields, value);
                }
                for name in reader.unknown() {
                    method.check.unknown(name);
                }
                if let Some(not_served) = reader.not_served() {
                    return Err(method.check.refused(not_served.status()).into());
                }
                (method.call)(reader.finish()?).await?
            }
            Action::Refuse(not_served) => return Err(self.refused(not_served).into()),
            Action::Buffer => {
                let mut values = values.into_iter();
                let task = (self.buffer)(Buffered {
                    queue: values.next().unwrap_or_default(),
                    task_id: values.next(),
                    method: parts.method.clone(),
                    headers: parts.headers.clone(),
                    body,
                });
                let task = Some(task.await?);
                let response = proto::descriptor(BUFFER_TASK_RESPONSE);
                proto::dynamic(response, &BufferTaskResponse { task })
            }
        };
        Ok(write::json(&answer, query.style)?)
    }

    fn refused(&self, not_served: &NotServed) -> Status {
        let status = not_served.status();
        self.refusals.note(&not_served.name, &status);
        status
    }
}

/// A path of gRPC's that no method here has: `/google.pubsub.v1.Publisher/Nothing`.
fn no_grpc_method(path: &str) -> NotServed {
    let name = path.trim_start_matches('/').replace('/', ".");
    let refused = interface::refused_methods().into_iter();
    let mut refused = refused.map(|(_, not_served)| not_served);
    refused.find(|it| it.name == name).unwrap_or(NotServed {
        name,
        why: "no method of this name is known".into(),
    })
}

/// A version of Cloud Tasks that no method here is of.
fn pull_queues() -> NotServed {
    NotServed {
        name: "google.cloud.tasks.v2beta2.CloudTasks".into(),
        why: "pull queues have no successor; v2 does the rest".into(),
    }
}

async fn whole(body: Body) -> Result<Bytes, ErrorResponse> {
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            ErrorResponse::invalid(format!(
                "Request payload size exceeds the limit: {BODY_BYTES_MAX} bytes."
            ))
        } else {
            ErrorResponse::invalid("The request's body did not arrive whole.")
        }
    })?;
    Ok(body.to_bytes())
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
mod tests;
