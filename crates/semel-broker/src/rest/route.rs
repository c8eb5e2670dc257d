//! One row of a table of routes, and how it is made.

use super::template::{Path, Template};
use crate::proto::{self, POOL};
use bytes::Bytes;
use http::{HeaderMap, Method};
use prost::Message;
use prost_reflect::{FieldDescriptor, MessageDescriptor, ServiceDescriptor};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// A method and a form of path, and what is done there.
#[derive(Debug)]
pub(crate) struct Route {
    /// Nothing: any method.
    method: Option<Method>,
    template: Template,
    /// For each variable of the path, the fields that lead to where its value belongs.
    variables: Vec<Vec<FieldDescriptor>>,
    pub(crate) action: Action,
}

/// What is done.
pub(crate) enum Action {
    /// A method of a service is called.
    Call {
        request: MessageDescriptor,
        answer: MessageDescriptor,
        binding: Binding,
        call: RpcCall,
    },
    /// The request itself becomes a task.
    Buffer {
        answer: MessageDescriptor,
        call: BufferCall,
    },
}

/// Where the body belongs in the request's message.
#[derive(Debug)]
pub(crate) enum Binding {
    /// Nowhere: there is none.
    None,
    /// It is the message.
    Whole,
    /// It is one field of it.
    Field(FieldDescriptor),
}

/// Takes and gives messages as they travel.
pub(crate) type RpcCall = Box<dyn Fn(Bytes) -> RpcFuture + Send + Sync>;

/// Takes a request that becomes a task.
pub(crate) type BufferCall = Box<dyn Fn(Buffered) -> RpcFuture + Send + Sync>;

/// A request that becomes a task.
#[derive(Debug)]
pub(crate) struct Buffered {
    /// The values of the path's variables.
    pub(crate) values: Vec<String>,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Gives a message as it travels.
pub(crate) type RpcFuture = Pin<Box<dyn Future<Output = Result<Vec<u8>, Status>> + Send>>;

/// What a service's method gives.
pub(crate) type RpcResponse<'a, A> =
    Pin<Box<dyn Future<Output = Result<Response<A>, Status>> + Send + 'a>>;

/// A table of one service's routes in the making.
#[derive(Debug)]
pub(crate) struct RouteTable<S> {
    service: Arc<S>,
    descriptor: ServiceDescriptor,
    /// What may stand before each path.
    prefixes: &'static [&'static str],
    pub(crate) routes: Vec<Route>,
}

// === impl Route ===

impl Route {
    /// Whether this is the route that is meant.
    pub(crate) fn is_for(&self, method: &Method, path: &Path<'_>) -> bool {
        let is_method = self.method.as_ref().is_none_or(|it| it == method);
        is_method && self.template.matches(path)
    }

    /// The values of the path's variables.
    pub(crate) fn values(&self, path: &Path<'_>) -> Vec<String> {
        self.template.values(path)
    }

    /// For each of these values, the fields that lead to where it belongs.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &[FieldDescriptor]> {
        self.variables.iter().map(Vec::as_slice)
    }
}

// === impl RouteTable ===

impl<S: Send + Sync + 'static> RouteTable<S> {
    pub(crate) fn new(service: &Arc<S>, name: &str, prefixes: &'static [&'static str]) -> Self {
        let descriptor = POOL.get_service_by_name(name);
        Self {
            service: Arc::clone(service),
            descriptor: descriptor.expect("the tables name services of the .proto files"),
            prefixes,
            routes: Vec::new(),
        }
    }

    /// Adds a row. The body is `"*"`, `""` or a field; `rpc` is the method's name in its service.
    pub(crate) fn add<Q, A>(
        &mut self,
        (method, path): (&Method, &str),
        body: &str,
        rpc: &str,
        call: for<'a> fn(&'a S, Request<Q>) -> RpcResponse<'a, A>,
    ) where
        Q: Message + Default + 'static,
        A: Message + 'static,
    {
        let mut methods = self.descriptor.methods();
        let rpc = methods.find(|method| method.name() == rpc);
        let rpc = rpc.expect("the tables name methods of the .proto files");
        for prefix in self.prefixes {
            let template = Template::new(&format!("{prefix}{path}"));
            let request = rpc.input();
            self.routes.push(Route {
                method: Some(method.clone()),
                variables: template.fields().map(|it| variable(&request, it)).collect(),
                template,
                action: Action::Call {
                    binding: Binding::new(body, &request),
                    request,
                    answer: rpc.output(),
                    call: calling(Arc::clone(&self.service), call),
                },
            });
        }
    }

    /// Adds a row for requests that become tasks, whatever their method.
    pub(crate) fn add_buffer(&mut self, path: &str, call: fn(Arc<S>, Buffered) -> RpcFuture) {
        let answer = POOL.get_message_by_name("google.cloud.tasks.v2.BufferTaskResponse");
        for prefix in self.prefixes {
            let service = Arc::clone(&self.service);
            self.routes.push(Route {
                method: None,
                template: Template::new(&format!("{prefix}{path}")),
                variables: Vec::new(),
                action: Action::Buffer {
                    answer: answer.clone().expect("it is in the .proto files"),
                    call: Box::new(move |buffered| call(Arc::clone(&service), buffered)),
                },
            });
        }
    }
}

// === impl Binding ===

impl Binding {
    fn new(body: &str, request: &MessageDescriptor) -> Self {
        match body {
            "" => Self::None,
            "*" => Self::Whole,
            name => {
                let field = request.get_field_by_name(name);
                Self::Field(field.expect("the tables name fields of the .proto files"))
            }
        }
    }
}

// === impl Action ===

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { request, .. } => write!(f, "Call({})", request.name()),
            Self::Buffer { .. } => f.write_str("Buffer"),
        }
    }
}

/// The fields that lead to where a variable's value belongs.
fn variable(request: &MessageDescriptor, path: &str) -> Vec<FieldDescriptor> {
    let fields = proto::fields(request, path, MessageDescriptor::get_field_by_name);
    fields.expect("the tables name fields of the .proto files")
}

fn calling<S, Q, A>(
    service: Arc<S>,
    call: for<'a> fn(&'a S, Request<Q>) -> RpcResponse<'a, A>,
) -> RpcCall
where
    S: Send + Sync + 'static,
    Q: Message + Default + 'static,
    A: Message + 'static,
{
    Box::new(move |wire| {
        let service = Arc::clone(&service);
        Box::pin(async move {
            let request = Q::decode(wire).map_err(|error| Status::internal(error.to_string()))?;
            let answer = call(&service, Request::new(request)).await?;
            Ok(answer.get_ref().encode_to_vec())
        })
    })
}
