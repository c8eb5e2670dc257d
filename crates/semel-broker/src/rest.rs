//! The same interfaces as JSON over HTTP: a path, a query and a body become a message, the service answers, and the
//! answer becomes JSON. What is accepted, and the words of a refusal, are those of Google's front end.

mod tasks;
mod pubsub;
mod route;
mod template;
mod query;
mod read;
mod scalar;
mod write;
mod error;

pub(crate) use tasks::Buffer;

use crate::proto::pubsub::{publisher_server::Publisher, subscriber_server::Subscriber};
use crate::proto::tasks::cloud_tasks_server::CloudTasks;
use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use error::ErrorResponse;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use prost::Message;
use prost_reflect::DynamicMessage;
use query::Query;
use read::MessageReader;
use route::{Action, Buffered, Route};
use std::sync::Arc;
use template::Path;

/// The largest body of a request.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=UTF-8");

/// All routes of both services.
#[derive(Debug)]
struct Rest {
    routes: Vec<Route>,
}

/// A router whose fallback serves both services as JSON.
pub(crate) fn router<T, P>(tasks: &Arc<T>, pubsub: &Arc<P>) -> Router
where
    T: CloudTasks + Buffer,
    P: Publisher + Subscriber,
{
    let mut routes = tasks::routes(tasks);
    routes.extend(pubsub::routes(pubsub));
    let rest = Arc::new(Rest { routes });
    Router::new().fallback(move |request: Request<Body>| {
        let rest = Arc::clone(&rest);
        async move { rest.answer(request).await }
    })
}

// === impl Rest ===

impl Rest {
    async fn answer(&self, request: Request<Body>) -> Response {
        if is_grpc(request.headers()) {
            let unknown = tonic::Status::unimplemented("there is no such method here");
            return unknown.into_http();
        }
        let (parts, body) = request.into_parts();
        let path = Path::new(parts.uri.path());
        let mut routes = self.routes.iter();
        let Some(route) = routes.find(|route| route.is_for(&parts.method, &path)) else {
            return error::unmapped(parts.uri.path());
        };
        let values = route.values(&path);
        match serve(route, values, &parts, body).await {
            Ok(json) => ([(CONTENT_TYPE, JSON)], json).into_response(),
            Err(refusal) => refusal.response(),
        }
    }
}

async fn serve(
    route: &Route,
    values: Vec<String>,
    parts: &Parts,
    body: Body,
) -> Result<Vec<u8>, ErrorResponse> {
    let query = Query::parse(parts.uri.query().unwrap_or_default())?;
    let body = whole(body).await?;
    let (answer, encoded) = match &route.action {
        Action::Call {
            request,
            answer,
            binding,
            call,
        } => {
            let mut reader = MessageReader::new(request.clone());
            reader.body(binding, &body)?;
            for (name, value) in &query.fields {
                reader.parameter(name, value);
            }
            // What comes last wins: a name in the body cannot lead elsewhere than the path.
            for (fields, value) in route.variables().zip(&values) {
                reader.variable(fields, value);
            }
            let request = reader.finish()?.encode_to_vec();
            (answer, call(request.into()).await?)
        }
        Action::Buffer { answer, call } => {
            let buffered = Buffered {
                values,
                method: parts.method.clone(),
                headers: parts.headers.clone(),
                body,
            };
            (answer, call(buffered).await?)
        }
    };
    let message = DynamicMessage::decode(answer.clone(), encoded.as_slice());
    let message = message.expect("it reads as it was written");
    Ok(write::json(&message, query.style)?)
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
