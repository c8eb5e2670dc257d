//! The same interfaces as JSON over HTTP: a path, a query and a body become a message, the service answers, and the
//! answer becomes JSON. What is accepted, and the words of a refusal, are those of Google's front end.

mod route;
mod template;
mod query;
mod read;
mod scalar;
mod write;
mod error;

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

/// What only REST offers: requests that become tasks, with the version and without it.
const BUFFER_PATHS: [&str; 4] = [
    "/v2/{queue=projects/*/locations/*/queues/*}/tasks:buffer",
    "/v2/{queue=projects/*/locations/*/queues/*}/tasks/{task_id}:buffer",
    "/{queue=projects/*/locations/*/queues/*}/tasks:buffer",
    "/{queue=projects/*/locations/*/queues/*}/tasks/{task_id}:buffer",
];

/// All routes of both services.
struct Rest {
    routes: Vec<Route>,
    buffer: BufferCall,
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
pub(crate) fn router(methods: impl IntoIterator<Item = Method>, buffer: BufferCall) -> Router {
    let mut routes: Vec<_> = methods.into_iter().flat_map(Route::of).collect();
    routes.extend(BUFFER_PATHS.map(Route::buffer));
    let rest = Arc::new(Rest { routes, buffer });
    Router::new().fallback(move |request: Request<Body>| {
        let rest = Arc::clone(&rest);
        async move { rest.answer(request).await }
    })
}

// === impl Rest ===

impl Rest {
    async fn answer(&self, request: Request<Body>) -> Response {
        if is_grpc(request.headers()) {
            return Status::unimplemented("there is no such method here").into_http();
        }
        let (parts, body) = request.into_parts();
        let path = Path::new(parts.uri.path());
        let mut routes = self.routes.iter();
        let Some(route) = routes.find(|route| route.is_for(&parts.method, &path)) else {
            return error::unmapped(parts.uri.path());
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
                (method.call)(reader.finish()?).await?
            }
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
