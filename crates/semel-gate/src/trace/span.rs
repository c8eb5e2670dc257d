//! A span: what happened from one moment to another, and within which other span.

use super::context::TraceContext;
use jiff::Timestamp;
use std::borrow::Cow;

/// A span that has ended.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) context: TraceContext,
    pub(crate) parent: Option<Parent>,
    pub(crate) kind: SpanKind,
    pub(crate) name: Cow<'static, str>,
    pub(crate) begun: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) attributes: Attributes,
    /// Other spans that it has to do with.
    pub(crate) links: Vec<TraceContext>,
    /// What went wrong, in a word.
    pub(crate) error: Option<Cow<'static, str>>,
}

/// The span around a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parent {
    pub(crate) span_id: u64,
    /// Whether it is another process's.
    pub(crate) is_remote: bool,
}

/// What the other side of a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal,
    /// It answers a client that waits.
    Server,
    /// It asks a server.
    Client,
    /// It processes a message.
    Consumer,
}

/// Facts about a span, by their names.
#[derive(Debug, Default)]
pub(crate) struct Attributes(pub(crate) Vec<(&'static str, Value)>);

/// One fact.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(Cow<'static, str>),
    Count(i64),
}

// === impl Span ===

impl Span {
    /// With nothing known of it but this; its times are set when it is sent.
    pub(crate) fn new(
        context: TraceContext,
        kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            context,
            parent: None,
            kind,
            name: name.into(),
            begun: Timestamp::UNIX_EPOCH,
            ended: Timestamp::UNIX_EPOCH,
            attributes: Attributes::default(),
            links: Vec::new(),
            error: None,
        }
    }

    /// The same, which has to do with another one, too; that comes first.
    pub(crate) fn linked_to(mut self, other: TraceContext) -> Self {
        self.links.insert(0, other);
        self
    }
}

// === impl Attributes ===

impl Attributes {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// The same; a fact that is not known is left out.
    pub(crate) fn with_known(self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

// === impl Value ===

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u16> for Value {
    fn from(count: u16) -> Self {
        Self::Count(count.into())
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count.try_into().unwrap_or(i64::MAX))
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Count(count.try_into().unwrap_or(i64::MAX))
    }
}
