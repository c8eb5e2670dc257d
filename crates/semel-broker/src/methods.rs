//! The methods of the services: one table, which gRPC and REST both call.

use crate::interface::{CheckedCodec, Refusals, RequestCheck};
use crate::proto::{self, POOL};
use crate::rest;
use crate::status::told;
use axum::Router;
use axum::routing::any;
use prost::Message;
use prost_reflect::{DynamicMessage, MethodDescriptor, ServiceDescriptor};
#[cfg(test)]
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;
use tokio_stream::{Stream, StreamExt};
use tonic::server::Grpc;
use tonic::{Request, Response, Status, Streaming};
use tower::service_fn;

/// The largest message by gRPC: as large as REST's, and room for what is around it.
const MESSAGE_BYTES_MAX: usize = rest::BODY_BYTES_MAX + 1024 * 1024;

/// The methods of one service.
pub(crate) struct Methods<T> {
    service: Arc<T>,
    descriptor: ServiceDescriptor,
    refusals: Arc<Refusals>,
    /// All of them, by gRPC's paths.
    pub(crate) grpc: Router,
    /// Those with one request and one answer.
    pub(crate) unary: Vec<Method>,
}

/// A method with one request and one answer.
pub(crate) struct Method {
    pub(crate) descriptor: MethodDescriptor,
    pub(crate) check: RequestCheck,
    pub(crate) call: Call,
}

/// Calls a method, whatever its messages are.
pub(crate) type Call = Box<dyn Fn(DynamicMessage) -> CallFuture + Send + Sync>;

pub(crate) type CallFuture = Pin<Box<dyn Future<Output = Result<DynamicMessage, Status>> + Send>>;

// === impl Methods ===

impl<T: Send + Sync + 'static> Methods<T> {
    /// The methods of the service of this name in the .proto files, none of them yet.
    pub(crate) fn new(name: &str, service: &Arc<T>, refusals: &Arc<Refusals>) -> Self {
        let descriptor = POOL.get_service_by_name(name);
        Self {
            service: Arc::clone(service),
            descriptor: descriptor.expect("the tables name services of the .proto files"),
            refusals: Arc::clone(refusals),
            grpc: Router::new(),
            unary: Vec::new(),
        }
    }

    /// A method that answers without waiting for anything.
    pub(crate) fn immediate<Q, A>(self, name: &str, call: fn(&T, &Q) -> Result<A, Status>) -> Self
    where
        Q: Message + Default + 'static,
        A: Message + 'static,
    {
        self.wait(name, move |service, request| {
            std::future::ready(call(&service, &request))
        })
    }

    /// A method that changes something: it goes on when its caller hangs up.
    pub(crate) fn change<Q, A, F>(self, name: &str, call: fn(Arc<T>, Q) -> F) -> Self
    where
        Q: Message + Default + 'static,
        A: Message + 'static,
        F: Future<Output = Result<A, Status>> + Send + 'static,
    {
        self.wait(name, move |service, request| finish(call(service, request)))
    }

    /// A method that may wait for something: it ends when its caller hangs up.
    pub(crate) fn wait<Q, A, F>(
        mut self,
        name: &str,
        call: impl Fn(Arc<T>, Q) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        Q: Message + Default + 'static,
        A: Message + 'static,
        F: Future<Output = Result<A, Status>> + Send + 'static,
    {
        let service = Arc::clone(&self.service);
        let (method, check) = self.method(name);
        let refusing = check.clone();
        let call = move |request: Q| {
            let (done, check) = (call(Arc::clone(&service), request), refusing.clone());
            async move { done.await.map_err(|status| check.refused(status)) }
        };
        let unary = Method::new(method, check.clone(), call.clone());
        self.unary.push(unary);
        self.route(name, move |request| {
            let (call, check) = (call.clone(), check.clone());
            let unary = service_fn(move |request: Request<Q>| {
                let done = call(request.into_inner());
                async move { done.await.map(Response::new) }
            });
            async move { grpc::<A, Q>(check).unary(unary, request).await }
        })
    }

    /// A method whose requests and answers are streams; only gRPC has such.
    pub(crate) fn stream<Q, A, S, F>(self, name: &str, call: fn(Arc<T>, Streaming<Q>) -> F) -> Self
    where
        Q: Message + Default + 'static,
        A: Message + 'static,
        S: Stream<Item = Result<A, Status>> + Send + 'static,
        F: Future<Output = Result<S, Status>> + Send + 'static,
    {
        let service = Arc::clone(&self.service);
        let (_, check) = self.method(name);
        self.route(name, move |request| {
            let (service, check) = (Arc::clone(&service), check.clone());
            let streaming = service_fn(move |request: Request<Streaming<Q>>| {
                let opened = call(Arc::clone(&service), request.into_inner());
                async move {
                    let answers = opened.await.map_err(told)?;
                    Ok(Response::new(answers.map(|it| it.map_err(told))))
                }
            });
            async move { grpc::<A, Q>(check).streaming(streaming, request).await }
        })
    }

    /// Serves a method by its path.
    fn route<F>(
        mut self,
        name: &str,
        serve: impl Fn(http::Request<axum::body::Body>) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = http::Response<tonic::body::Body>> + Send + 'static,
    {
        let path = format!("/{}/{name}", self.descriptor.full_name());
        self.grpc = self.grpc.route(&path, any(serve));
        self
    }

    /// For tests: calls a method as a client does, in JSON.
    #[cfg(test)]
    pub(crate) async fn call(&self, name: &str, request: Value) -> Result<Value, Status> {
        let mut methods = self.unary.iter();
        let method = methods.find(|it| it.descriptor.name() == name).unwrap();
        let request = DynamicMessage::deserialize(method.descriptor.input(), request).unwrap();
        let answer = (method.call)(request).await?;
        Ok(serde_json::to_value(answer).unwrap())
    }

    /// A method of the service.
    pub(crate) fn descriptor(&self, name: &str) -> MethodDescriptor {
        let mut methods = self.descriptor.methods();
        let method = methods.find(|method| method.name() == name);
        method.expect("the tables name methods of the .proto files")
    }

    fn method(&self, name: &str) -> (MethodDescriptor, RequestCheck) {
        let method = self.descriptor(name);
        let check = RequestCheck::new(&method, &self.refusals);
        (method, check)
    }
}

// === impl Method ===

impl Method {
    fn new<Q, A, F>(
        descriptor: MethodDescriptor,
        check: RequestCheck,
        call: impl Fn(Q) -> F + Send + Sync + 'static,
    ) -> Self
    where
        Q: Message + Default,
        A: Message,
        F: Future<Output = Result<A, Status>> + Send + 'static,
    {
        let (output, checking) = (descriptor.output(), check.clone());
        let call = move |request: DynamicMessage| {
            let done = checking.decoded(request.encode_to_vec().into()).map(&call);
            let output = output.clone();
            Box::pin(async move { Ok(proto::dynamic(output, &done?.await?)) }) as CallFuture
        };
        Self {
            call: Box::new(call),
            check,
            descriptor,
        }
    }
}

fn grpc<A, Q>(check: RequestCheck) -> Grpc<CheckedCodec<A, Q>>
where
    A: Message + 'static,
    Q: Message + Default + 'static,
{
    Grpc::new(CheckedCodec::new(check)).max_decoding_message_size(MESSAGE_BYTES_MAX)
}

/// Does something to the end, even if nobody waits for it any more.
pub(crate) async fn finish<A: Send + 'static>(
    work: impl Future<Output = Result<A, Status>> + Send + 'static,
) -> Result<A, Status> {
    let broken = |_| {
        Err(Status::internal(
            "The call did not finish; what it did is unknown.",
        ))
    };
    tokio::spawn(work).await.unwrap_or_else(broken)
}
