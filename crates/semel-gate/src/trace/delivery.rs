//! The trace of one delivery: where it comes from, how it goes on in the handler, and its spans.

use super::RUN_TRACE;
use super::attributes;
use super::context::TraceContext;
use super::record_link;
use super::span::{Attributes, Parent, Span, SpanKind};
use super::tracer::Tracer;
use crate::delivery::Transport;
use crate::disposition::Disposition;
use crate::flow::Flow;
use crate::forwarded_request::RunContext;
use crate::settings::Upstream;
use bytes::Bytes;
use http::{Request, StatusCode};
use jiff::{SignedDuration, Timestamp};
use semel::Outcome;
use semel::work::Failure;
use semel_landing::{GroupWrite, Landed, NotLanded};
use std::borrow::Cow;
use std::sync::Arc;
use tokio::time::Instant;

/// How many deliveries the span of a group links to: receivers need not take more by default.
const GROUP_LINKS_MAX: usize = 128;

/// The trace of one delivery.
#[derive(Debug)]
pub(crate) struct DeliveryTrace {
    /// The sender's.
    pub(crate) sender: Option<TraceContext>,
    /// Another one that it came with: that of the proxies before the gate.
    other: Option<TraceContext>,
    /// The span of the delivery itself.
    own: TraceContext,
    /// The span that the handler's spans are within.
    pub(crate) handler: TraceContext,
    /// How its spans are made; `None` when nobody wants them.
    recording: Option<Recording>,
}

#[derive(Debug)]
struct Recording {
    tracer: Tracer,
    /// One moment by both clocks.
    instant: Instant,
    wall: Timestamp,
}

/// The span of a handler's call. When it is dropped before its end, the run was cancelled.
#[derive(Debug)]
pub(crate) struct HandlerSpan {
    trace: Arc<DeliveryTrace>,
    begun: Instant,
    attributes: Option<Attributes>,
}

// === impl DeliveryTrace ===

impl DeliveryTrace {
    /// Without a tracer, the handler gets the sender's trace as it is, or a new one.
    pub(crate) fn new(tracer: Option<&Tracer>, transport: &Transport) -> Self {
        let read = |text: &Option<String>, state: &Option<String>| {
            TraceContext::read(text.as_deref()?, state.as_deref())
        };
        let sender = read(&transport.traceparent, &transport.tracestate);
        let other = read(&transport.proxy_traceparent, &None);
        let Some(tracer) = tracer else {
            let own = sender.clone().unwrap_or_else(TraceContext::root);
            return Self {
                handler: own.clone(),
                own,
                sender,
                other,
                recording: None,
            };
        };
        let own = tracer.begin(sender.as_ref());
        Self {
            handler: own.child(),
            recording: own.is_sampled().then(|| Recording::begin(tracer.clone())),
            own,
            sender,
            other,
        }
    }

    /// The span of the delivery, if it is recorded.
    pub(crate) fn span(&self) -> Option<&TraceContext> {
        self.recording.as_ref().map(|_| &self.own)
    }

    /// What log lines say of it.
    pub(crate) fn trace_id(&self) -> String {
        format!("{:032x}", self.own.trace_id)
    }

    /// The same as a number.
    pub(crate) const fn trace_number(&self) -> u128 {
        self.own.trace_id
    }

    /// The same; `None` when its span is not recorded.
    pub(crate) fn span_id(&self) -> Option<String> {
        let span = self.span();
        span.map(|span| format!("{:016x}", span.span_id))
    }

    /// What the run came to, with the name of its span, so that duplicates can link to it.
    pub(crate) fn named_in(&self, said: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
        if self.recording.is_none() {
            return said;
        }
        let named = |outcome: Outcome| outcome.with_header(RUN_TRACE, self.own.to_string());
        said.map(named).map_err(|failure| Failure {
            outcome: named(failure.outcome),
            ..failure
        })
    }

    /// The claim has been answered in this word.
    pub(crate) fn claimed(&self, begun: Instant, answer: &'static str) {
        let attributes = Attributes::default().with(attributes::CLAIM, answer);
        self.child("claim", begun, attributes, None);
    }

    /// What the run came to has been told to the store, or not.
    pub(crate) fn recorded(&self, begun: Instant, disposition: &Disposition) {
        let is_untold = matches!(
            disposition,
            Disposition::Unrecorded(_) | Disposition::Unread | Disposition::Stale
        );
        let error = is_untold.then(|| Cow::Borrowed(disposition.word()));
        self.child("record", begun, Attributes::default(), error);
    }

    /// The delivery has landed, or has not.
    pub(crate) fn landed(&self, begun: Instant, landed: &Result<Landed, NotLanded>) {
        let rows = landed.as_ref().ok().map(|landed| landed.group_rows);
        let described = Attributes::default().with_known(attributes::LANDED_ROWS, rows);
        let error = landed.is_err().then_some(Cow::Borrowed("not_landed"));
        self.send(
            begun,
            Span {
                parent: Some(self.within()),
                attributes: attributes::with_error(described, error.as_ref()),
                error,
                ..Span::new(self.own.child(), SpanKind::Client, "land")
            },
        );
        if let Ok(Landed {
            group_rows,
            write: Some(write),
        }) = landed
        {
            self.group_written(*group_rows, write);
        }
    }

    /// The span of a whole group belongs to no delivery alone: it begins a trace, and links to each of them.
    fn group_written(&self, rows: usize, write: &GroupWrite) {
        let spans = write.spans.iter().take(GROUP_LINKS_MAX);
        let links = spans.filter_map(|span| TraceContext::read(span, None));
        self.send(
            write.begun,
            Span {
                attributes: Attributes::default().with(attributes::LANDED_ROWS, rows),
                links: links.collect(),
                ..Span::new(TraceContext::root(), SpanKind::Client, "land group")
            },
        );
    }

    fn child(
        &self,
        name: &'static str,
        begun: Instant,
        attributes: Attributes,
        error: Option<Cow<'static, str>>,
    ) {
        self.send(
            begun,
            Span {
                parent: Some(self.within()),
                attributes: attributes::with_error(attributes, error.as_ref()),
                error,
                ..Span::new(self.own.child(), SpanKind::Internal, name)
            },
        );
    }

    /// The handler is about to be called.
    pub(crate) fn call(
        self: &Arc<Self>,
        request: &Request<Bytes>,
        upstream: &Upstream,
        run: RunContext<'_>,
    ) -> HandlerSpan {
        let described = |_| attributes::of_call(request, upstream, run);
        HandlerSpan {
            trace: Arc::clone(self),
            begun: Instant::now(),
            attributes: self.recording.as_ref().map(described),
        }
    }

    /// The delivery has its reply. It waits for nothing: what the span links to may be known later.
    pub(crate) fn ended(
        self: &Arc<Self>,
        flow: &Flow,
        begun: Instant,
        disposition: &Disposition,
        status: StatusCode,
    ) {
        let Some(recording) = &self.recording else {
            return;
        };
        let span = recording.timed(begun, self.of_delivery(flow, disposition, status));
        let is_repeat = disposition.is_duplicate() || disposition.is_mismatched();
        let run = match flow.lease {
            Some(_) => None,
            None if is_repeat => run_of(disposition).or_else(|| active_run(flow)),
            None => run_of(disposition),
        };
        match run {
            Some(run) => recording.tracer.send(span.linked_to(run)),
            None if is_repeat => self.link_by_record(flow, span),
            None => recording.tracer.send(span),
        }
    }

    fn of_delivery(&self, flow: &Flow, disposition: &Disposition, status: StatusCode) -> Span {
        let sender = self.sender.as_ref();
        let error = attributes::is_error(disposition).then(|| Cow::Borrowed(disposition.word()));
        let described = attributes::of_delivery(flow, disposition, status);
        Span {
            parent: sender.map(|sender| Parent {
                span_id: sender.span_id,
                is_remote: true,
            }),
            attributes: attributes::with_error(described, error.as_ref()),
            links: self.other.clone().into_iter().collect(),
            error,
            ..Span::new(
                self.own.clone(),
                attributes::kind(flow),
                attributes::name(flow),
            )
        }
    }

    fn is_within(&self, span: &TraceContext) -> bool {
        let ids = |span: &TraceContext| (span.trace_id, span.span_id);
        self.sender.as_ref().map(ids) == Some(ids(span))
    }

    /// Sends the span once the record has said which span began its work. The gate's end waits for that as for a
    /// delivery.
    fn link_by_record(self: &Arc<Self>, flow: &Flow, span: Span) {
        let (trace, gate) = (Arc::clone(self), Arc::clone(&flow.gate));
        let key = flow.identity().map(|identity| identity.key);
        drop(flow.gate.deliveries.spawn(async move {
            let begun = match key {
                Some(key) => record_link::look(&gate, &key).await,
                None => None,
            };
            // A redelivery may be within the very span that it would link to.
            let begun = begun.filter(|begun| !trace.is_within(begun));
            if let Some(recording) = &trace.recording {
                recording
                    .tracer
                    .send(begun.into_iter().fold(span, Span::linked_to));
            }
        }));
    }

    const fn within(&self) -> Parent {
        Parent {
            span_id: self.own.span_id,
            is_remote: false,
        }
    }

    /// Sends a span that ends now.
    fn send(&self, begun: Instant, span: Span) {
        if let Some(recording) = &self.recording {
            recording.tracer.send(recording.timed(begun, span));
        }
    }
}

/// The span of the run whose outcome a duplicate hears.
fn run_of(disposition: &Disposition) -> Option<TraceContext> {
    let values = disposition.outcome()?.headers.get(RUN_TRACE)?;
    TraceContext::read(values.first()?, None)
}

/// The span of the run of the same work, while this gate has it in hand.
fn active_run(flow: &Flow) -> Option<TraceContext> {
    flow.gate.runs.span_of(&flow.identity()?.key)
}

// === impl Recording ===

impl Recording {
    #[expect(
        clippy::disallowed_methods,
        reason = "others put our spans beside theirs by the wall clock"
    )]
    fn begin(tracer: Tracer) -> Self {
        Self {
            tracer,
            instant: Instant::now(),
            wall: Timestamp::now(),
        }
    }

    /// A span that ends now.
    fn timed(&self, begun: Instant, span: Span) -> Span {
        Span {
            begun: self.wall(begun),
            ended: self.wall(Instant::now()),
            ..span
        }
    }

    fn wall(&self, at: Instant) -> Timestamp {
        let since = |later: Instant, earlier: Instant| {
            let elapsed = later.saturating_duration_since(earlier);
            SignedDuration::try_from(elapsed).unwrap_or_default()
        };
        self.wall + since(at, self.instant) - since(self.instant, at)
    }
}

// === impl HandlerSpan ===

impl HandlerSpan {
    /// The handler answered with this status, or did not: in a word, why.
    pub(crate) fn end(mut self, status: Option<u16>, error: Option<&'static str>) {
        let failed = status.filter(|status| *status >= 400);
        let error = error
            .map(Cow::Borrowed)
            .or_else(|| failed.map(|status| Cow::Owned(status.to_string())));
        self.send(status, error);
    }

    fn send(&mut self, status: Option<u16>, error: Option<Cow<'static, str>>) {
        let Some(described) = self.attributes.take() else {
            return;
        };
        let described = described.with_known(attributes::STATUS, status);
        let name = attributes::call_name(&described);
        self.trace.send(
            self.begun,
            Span {
                parent: Some(self.trace.within()),
                attributes: attributes::with_error(described, error.as_ref()),
                error,
                ..Span::new(self.trace.handler.clone(), SpanKind::Client, name)
            },
        );
    }
}

impl Drop for HandlerSpan {
    fn drop(&mut self) {
        self.send(None, Some(Cow::Borrowed("cancelled")));
    }
}
