//! One row of the table of routes.

use super::template::{Path, Template};
use crate::interface::NotServed;
use crate::methods::Method;
use crate::proto::{self, POOL};
use http::Method as Verb;
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor, MethodDescriptor, Value};
use std::sync::Arc;

/// A verb and a form of path, and what is done there.
pub(crate) struct Route {
    /// Nothing: any verb.
    verb: Option<Verb>,
    template: Template,
    pub(crate) action: Action,
}

/// What is done.
pub(crate) enum Action {
    /// A method is called.
    Call {
        method: Arc<Method>,
        binding: Binding,
        /// For each variable of the path, the fields that lead to where its value belongs.
        variables: Vec<Vec<FieldDescriptor>>,
    },
    /// The request itself becomes a task.
    Buffer,
    /// The caller is told that there is no such method.
    Refuse(NotServed),
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

// === impl Route ===

impl Route {
    /// The routes of a method, as its `google.api.http` option says; none if it has none.
    pub(crate) fn of(method: Method) -> Vec<Self> {
        let method = Arc::new(method);
        let rule = rule(&method.descriptor);
        let paths = rule.iter().flat_map(paths);
        paths
            .map(|(verb, path, body)| Self::call(&method, verb, &path, &body))
            .collect()
    }

    /// The routes of a method that is not served.
    pub(crate) fn refused(method: &MethodDescriptor, not_served: &NotServed) -> Vec<Self> {
        let rule = rule(method);
        let paths = rule.iter().flat_map(paths);
        let route = |(verb, path, _): (_, String, _)| Self {
            verb: Some(verb),
            template: Template::new(&path),
            action: Action::Refuse(not_served.clone()),
        };
        paths.map(route).collect()
    }

    /// Requests that become tasks, whatever their verb.
    pub(crate) fn buffer(path: &str) -> Self {
        Self {
            verb: None,
            template: Template::new(path),
            action: Action::Buffer,
        }
    }

    fn call(method: &Arc<Method>, verb: Verb, path: &str, body: &str) -> Self {
        let request = method.descriptor.input();
        let template = Template::new(path);
        let variables = template.fields().map(|path| variable(&request, path));
        let action = Action::Call {
            method: Arc::clone(method),
            binding: Binding::new(body, &request),
            variables: variables.collect(),
        };
        Self {
            verb: Some(verb),
            template,
            action,
        }
    }

    /// Whether this is the route that is meant.
    pub(crate) fn is_for(&self, verb: &Verb, path: &Path<'_>) -> bool {
        self.verb.as_ref().is_none_or(|it| it == verb) && self.template.matches(path)
    }

    /// The values of the path's variables.
    pub(crate) fn values(&self, path: &Path<'_>) -> Vec<String> {
        self.template.values(path)
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
                Self::Field(field.expect("the rules name fields of their requests"))
            }
        }
    }
}

/// How a method is called over HTTP, if it can be.
fn rule(method: &MethodDescriptor) -> Option<DynamicMessage> {
    let extension = POOL.get_extension_by_name("google.api.http");
    let extension = extension.expect("it is in the .proto files");
    let options = method.options();
    let rule = options
        .has_extension(&extension)
        .then(|| options.get_extension(&extension))?;
    rule.as_message().cloned()
}

/// The verb, the path and the body of each way to call a method.
fn paths(rule: &DynamicMessage) -> Vec<(Verb, String, String)> {
    let more = rule.get_field_by_name("additional_bindings");
    let more = more.as_deref().and_then(Value::as_list).unwrap_or_default();
    let more = more.iter().filter_map(Value::as_message).flat_map(paths);
    let (verb, path) = pattern(rule);
    let body = text(rule, "body");
    // firebase-admin leaves the version of Cloud Tasks out.
    let unversioned = path
        .strip_prefix("/v2")
        .filter(|rest| rest.starts_with('/'));
    let unversioned = unversioned.map(|path| (verb.clone(), path.to_owned(), body.clone()));
    let versioned = (verb, path.clone(), body);
    let these = [versioned].into_iter().chain(unversioned);
    these.chain(more).collect()
}

/// The verb and the path of a rule.
fn pattern(rule: &DynamicMessage) -> (Verb, String) {
    let verbs = [Verb::GET, Verb::PUT, Verb::POST, Verb::DELETE, Verb::PATCH];
    let mut patterns = verbs
        .map(|verb| {
            let path = text(rule, &verb.as_str().to_ascii_lowercase());
            (verb, path)
        })
        .into_iter();
    let pattern = patterns.find(|(_, path)| !path.is_empty());
    pattern.expect("a rule has a path")
}

fn text(rule: &DynamicMessage, field: &str) -> String {
    let value = rule.get_field_by_name(field);
    let text = value.as_deref().and_then(Value::as_str);
    text.expect("the option has such a field").to_owned()
}

/// The fields that lead to where a variable's value belongs.
fn variable(request: &MessageDescriptor, path: &str) -> Vec<FieldDescriptor> {
    let fields = proto::fields(request, path, MessageDescriptor::get_field_by_name);
    fields.expect("the rules name fields of their requests")
}
