//! The effect of a run: forward the delivery to its handler, and say what its answer means.

pub(crate) mod doubt;
mod land;
mod probe;

use crate::active_runs::ActiveRun;
use crate::arrival::Arrival;
use crate::failpoint::{Point, pass};
use crate::flow::Flow;
use crate::forwarded_request::{ForwardedRequest, RunContext};
use crate::gate::{Gate, RouteState};
use crate::headers::toward_client;
use crate::letters::unfinished::Moment;
use crate::pace;
use crate::reply::HandlerAnswer;
use crate::reply::meaning::{GATE_BROKEN, Meaning, failed, meaning, timed_out, unreachable};
use crate::reply::problem::STORE_UNAVAILABLE;
use crate::settings::Source;
use crate::trace::DeliveryTrace;
use crate::upstream::{AnswerBody, Connection, SendError, SharedBody, full, read};
use bytes::Bytes;
use doubt::Doubt;
use http::Request;
use http::header::ACCEPT_ENCODING;
use http::response::Parts;
use http_body_util::BodyExt;
use jiff::Timestamp;
use probe::Probed;
use semel::outcome::{Body, HEADERS_KEPT};
use semel::protocol::{InDoubt, Lease};
use semel::work::{Failure, FailureKind};
use semel::{Outcome, Run};
use semel_landing::Row;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// What a handler says, of which the last part may still be on its way.
pub(crate) type StreamedAnswer = HandlerAnswer<SharedBody>;

/// The effect of a delivery's run. It has a task of its own, and reports to the delivery.
#[derive(Debug)]
pub(crate) struct Effect {
    call: HandlerCall,
    /// When the delivery began to ask for the right to run.
    claim_begun: Instant,
    /// Says when it may begin, where its letter must be durable before; it does not begin if that is dropped.
    begin: Option<oneshot::Receiver<()>>,
    lease: oneshot::Sender<Lease>,
    answer: oneshot::Sender<HandlerReport>,
}

/// What a delivery hears of its effect: nothing when another delivery runs the work, and no answer when
/// the effect was cancelled or panicked.
#[derive(Debug)]
pub(crate) struct EffectReport {
    /// The right under which it ran.
    pub(crate) lease: oneshot::Receiver<Lease>,
    /// Lets the effect begin, once the letter of its work is durable; `None`: it begins by itself.
    pub(crate) begin: Option<oneshot::Sender<()>>,
    /// What the handler said beside the record, and how long it took.
    pub(crate) answer: oneshot::Receiver<HandlerReport>,
}

/// What a delivery hears of its handler.
#[derive(Debug)]
pub(crate) struct HandlerReport {
    /// What it said beside the record.
    pub(crate) answer: StreamedAnswer,
    pub(crate) took: Duration,
    pub(crate) ended: Instant,
}

/// A call of the handler.
#[derive(Debug)]
pub(crate) struct HandlerCall {
    gate: Arc<Gate>,
    route: Arc<RouteState>,
    request: Arc<Request<Bytes>>,
    source: Source,
    trace: Arc<DeliveryTrace>,
    arrival: Arc<Arrival>,
    /// What lands of the delivery, if it does.
    row: Option<Row>,
}

/// An answer from the handler, with what it means.
struct Answered {
    outcome: Outcome,
    meaning: Meaning,
    answer: StreamedAnswer,
}

// === impl Effect ===

impl Effect {
    pub(crate) fn of(flow: &Flow, claim_begun: Instant, has_sender: bool) -> (Self, EffectReport) {
        let waits = has_sender && flow.needs_letter(Moment::BeforeRun);
        let (begin_sender, begin) = waits.then(oneshot::channel).unzip();
        let (lease_sender, lease) = oneshot::channel();
        let (answer_sender, answer) = oneshot::channel();
        let effect = Self {
            call: HandlerCall::of(flow),
            claim_begun,
            begin,
            lease: lease_sender,
            answer: answer_sender,
        };
        let report = EffectReport {
            lease,
            begin: begin_sender,
            answer,
        };
        (effect, report)
    }

    /// Runs the handler once. What a panic says is for the log, never for a client.
    pub(crate) async fn run(self, run: Run) -> Result<Outcome, Failure> {
        let mut running = std::pin::pin!(self.call_handler(run));
        poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx)));
            polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())))
        })
        .await
    }

    /// A delivery that no longer waits needs no report.
    async fn call_handler(self, run: Run) -> Result<Outcome, Failure> {
        pass(Point::ClaimAnswered);
        let (call, lease) = (self.call, run.lease());
        drop(self.lease.send(lease.clone()));
        if let Some(begin) = self.begin
            && begin.await.is_err()
        {
            return Err(failed(FailureKind::Withdrawn, STORE_UNAVAILABLE.outcome()));
        }
        call.trace.claimed(self.claim_begun, "granted");
        let route = &call.route.settings;
        let limit = route.terms(call.source).timeout;
        let _listed = call.gate.runs.list(ActiveRun {
            lease: lease.clone(),
            in_doubt: route.in_doubt,
            route: route.name.clone(),
            span: call.trace.span().cloned(),
        });
        if call.gate.is_over() {
            // The handler is not to blame: old work is not parked for that.
            let says = "the handler was not reached (the gate is going down); nothing was run";
            let outcome = unreachable(says).outcome();
            return Err(failed(FailureKind::Withdrawn, outcome));
        }
        let sent = Instant::now();
        match call.before(&run).await {
            Ok(Probed::DidNotHappen) => {}
            Ok(Probed::Happened(outcome)) => return call.trace.named_in(Ok(outcome)),
            Err(failure) => return Err(failure),
        }
        if lease.in_doubt && route.probe.is_none() {
            call.tell_repeat(lease).await;
        }
        // By its timeout a run acts no more, however long it had to ask first.
        let left = limit.saturating_sub(sent.elapsed());
        let (said, answer) = call.perform(RunContext::Leased(lease), left).await;
        let ended = Instant::now();
        drop(self.answer.send(HandlerReport {
            answer,
            took: ended - sent,
            ended,
        }));
        call.trace.named_in(said)
    }
}

// === impl HandlerCall ===

impl HandlerCall {
    pub(crate) fn of(flow: &Flow) -> Self {
        Self {
            gate: Arc::clone(&flow.gate),
            route: Arc::clone(&flow.route),
            request: Arc::clone(&flow.request),
            source: flow.source,
            trace: Arc::clone(&flow.trace),
            arrival: Arc::clone(&flow.arrival),
            row: flow.row(),
        }
    }

    /// Calls the handler, which has so long, and says what its answer means for the run.
    async fn answer(
        &self,
        run: RunContext<'_>,
        limit: Duration,
    ) -> (Result<Outcome, Failure>, StreamedAnswer) {
        let route = &self.route.settings;
        let span = self.trace.call(&self.request, &route.upstream, run);
        let (said, answer) = match timeout(limit, self.forward(run, limit)).await {
            Ok(Ok(answered)) => {
                span.end(Some(answered.outcome.status), None);
                (answered.meaning.of(answered.outcome), answered.answer)
            }
            Ok(Err(why)) => {
                span.end(None, Some(why.word()));
                (Err(unanswered(&why)), StreamedAnswer::default())
            }
            Err(_) => {
                span.end(None, Some("timeout"));
                let limit = self.told_limit(run, limit);
                self.tell_timeout(run, limit);
                (Err(late(limit)), StreamedAnswer::default())
            }
        };
        if let Err(failure) = &said
            && failure.kind == FailureKind::InDoubt
        {
            self.gate.metrics.doubt.ended(&route.name);
        }
        (said, answer)
    }

    /// What became of the run before this one, where that is in doubt and the route asks.
    async fn before(&self, run: &Run) -> Result<Probed, Failure> {
        match &self.route.settings.probe {
            Some(probe) if run.in_doubt() => self.probe(run.lease(), probe).await,
            Some(_) | None => Ok(Probed::DidNotHappen),
        }
    }

    /// How long the handler had, as people are told: with a record as its route says, whatever was asked before; without
    /// one as long as its sender still waited.
    fn told_limit(&self, run: RunContext<'_>, left: Duration) -> Duration {
        match run {
            RunContext::Leased(_) => self.route.settings.terms(self.source).timeout,
            RunContext::Stateless(..) => {
                Duration::from_secs_f64((left.as_secs_f64() * 1e3).round() / 1e3)
            }
        }
    }

    /// Nobody knows whether the handler still runs.
    fn tell_timeout(&self, run: RunContext<'_>, limit: Duration) {
        let route = &self.route.settings.name;
        self.gate.metrics.doubt.timed_out(route);
        tracing::warn!(
            route,
            key = %run.key(),
            fence = run.fence(),
            attempt = run.attempt(),
            timeout_ms = limit.as_secs_f64() * 1e3,
            "timeout: the handler did not answer in time, and whether it took effect is unknown"
        );
    }

    /// The names that cross to the handler with a request that it has so long to answer.
    #[allow(
        clippy::disallowed_methods,
        reason = "the handler is told a deadline by the wall clock"
    )]
    fn forwarded<'a>(&'a self, run: RunContext<'a>, limit: Duration) -> ForwardedRequest<'a> {
        ForwardedRequest {
            run,
            source: self.source,
            deadline: Timestamp::now() + limit,
            trace: &self.trace.handler,
            steps_url: self.route.steps_url.as_deref(),
            header_rules: &self.gate.header_rules,
        }
    }

    async fn forward(&self, run: RunContext<'_>, limit: Duration) -> Result<Answered, SendError> {
        let (gate, route) = (&self.gate, &self.route.settings);
        let forwarded = self.forwarded(run, limit);
        let mut request = forwarded.request(&self.request, full(self.request.body().clone()));
        if route.land.is_some() {
            // What lands is read as it is.
            request.headers_mut().remove(ACCEPT_ENCODING);
        }
        // Where doubt is parked, a connection that closes under a request must not be the cause.
        let connection = match route.in_doubt {
            InDoubt::Park | InDoubt::Probe => Connection::Fresh,
            InDoubt::Retry => Connection::Kept,
        };
        pass(Point::BeforeConnect);
        let sent = gate.client.send(&route.upstream, connection, request);
        let response = sent.await?;
        pass(Point::AnswerBegun);
        let (parts, body) = response.into_parts();
        let (body, rest) = match read(body, route.answer_bytes_max).await? {
            AnswerBody::Whole(bytes) => (Body::Kept(bytes), None),
            // The run's own timeout ends here.
            AnswerBody::Beyond(begun, rest) => {
                let rest = pace::answered(rest, &gate.settings.limits);
                let rest = SharedBody::new(rest.map_err(Into::into));
                (Body::NotKept, Some((begun, rest)))
            }
        };
        pass(Point::AnswerRead);
        Ok(Answered {
            outcome: outcome(&parts, body),
            meaning: meaning(route, self.source, parts.status),
            answer: StreamedAnswer {
                headers: Some(toward_client(&parts.headers)),
                rest,
            },
        })
    }
}

/// The request may have been sent before.
fn panicked() -> Failure {
    let outcome = Doubt::GateBroken.named_in(GATE_BROKEN.outcome());
    failed(FailureKind::InDoubt, outcome)
}

/// What a run without an answer came to.
fn unanswered(why: &SendError) -> Failure {
    let not_started = |says| failed(FailureKind::NotStarted, unreachable(says).outcome());
    match why {
        SendError::NotSent(why) => not_started(format!(
            "the handler was not reached ({why}); nothing was run"
        )),
        SendError::NotProcessed(why) => not_started(format!(
            "the handler refused the request before it looked at it ({why}); nothing was run"
        )),
        SendError::Cut(why) => {
            let says = format!(
                "the connection to the handler broke ({why}); whether it took effect is unknown"
            );
            let outcome = Doubt::Cut.named_in(unreachable(says).outcome());
            failed(FailureKind::InDoubt, outcome)
        }
    }
}

/// What a run came to whose handler took longer than it may.
fn late(limit: Duration) -> Failure {
    let says =
        format!("the handler did not answer within {limit:?}; whether it took effect is unknown");
    let outcome = Doubt::TimedOut.named_in(timed_out(says).outcome());
    failed(FailureKind::InDoubt, outcome)
}

/// The answer as it is kept: without cookies, credentials and what belongs to one connection.
fn outcome(parts: &Parts, body: Body) -> Outcome {
    let mut outcome = Outcome::new(parts.status.as_u16(), Bytes::new());
    outcome.body = body;
    for name in HEADERS_KEPT {
        for value in parts.headers.get_all(name) {
            outcome = outcome.with_header_bytes(name, value.as_bytes());
        }
    }
    outcome
}
