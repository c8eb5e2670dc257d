//! The effect of a run: forward the delivery to its handler, and say what its answer means.

use crate::active_runs::ActiveRun;
use crate::delivery::{Arrived, Delivery};
use crate::failpoint::{Point, pass};
use crate::forwarded_request::ForwardedRequest;
use crate::gate::{Gate, RouteState};
use crate::headers::end_to_end;
use crate::pace::Paced;
use crate::reply::REPLAYED;
use crate::reply::meaning::{Meaning, gate_broken, meaning, no_answer};
use crate::upstream::{AnswerBody, Connection, SendError, full, read};
use bytes::Bytes;
use http::HeaderMap;
use http::response::Parts;
use hyper::body::Incoming;
use jiff::Timestamp;
use semel::outcome::Body;
use semel::record::{InDoubt, Lease};
use semel::tower::HEADERS_KEPT;
use semel::work::{Failure, FailureKind};
use semel::{Outcome, Run};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// All that an effect needs.
#[derive(Debug)]
pub(crate) struct Forward {
    pub(crate) gate: Arc<Gate>,
    pub(crate) route_state: Arc<RouteState>,
    pub(crate) arrived: Arc<Arrived>,
    pub(crate) delivery: Arc<Delivery>,
    pub(crate) traceparent: String,
    pub(crate) first_hand: FirstHand,
}

/// What the delivery that ran knows beside the record. Duplicates hear what was recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstHand(Arc<Mutex<Heard>>);

/// See [`FirstHand`].
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The right under which it ran.
    pub(crate) lease: Option<Lease>,
    /// All headers of the answer, cookies among them.
    pub(crate) headers: Option<HeaderMap>,
    /// The part of an answer that is not kept: what was read, and what is still to come.
    pub(crate) rest: Option<(Bytes, Paced<Incoming>)>,
    /// How long the handler took.
    pub(crate) upstream: Option<Duration>,
}

// === impl Forward ===

impl Forward {
    /// Runs the handler once. What a panic says is for the log, never for a client.
    pub(crate) async fn effect(self, run: Run) -> Result<Outcome, Failure> {
        let mut running = std::pin::pin!(self.run(run));
        poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx)));
            polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())))
        })
        .await
    }

    async fn run(self, run: Run) -> Result<Outcome, Failure> {
        pass(Point::ClaimAnswered);
        let lease = run.lease();
        let (route, source) = (&self.route_state.route, self.delivery.source);
        let limit = route.terms(source).timeout;
        self.first_hand
            .note(|heard| heard.lease = Some(lease.clone()));
        let _listed = self.gate.runs.list(ActiveRun {
            lease: lease.clone(),
            in_doubt: route.in_doubt,
            route: route.name.clone(),
        });
        if self.gate.is_over() {
            let why = "the gate is going down".into();
            return Err(Failed::NotAnswered(SendError::NotSent(why)).failure());
        }
        let sent = Instant::now();
        let ended = timeout(limit, self.forward(lease, limit)).await;
        let ended = ended.unwrap_or(Err(Failed::TimedOut(limit)));
        self.first_hand
            .note(|heard| heard.upstream = Some(sent.elapsed()));
        match ended {
            Ok((outcome, meaning)) => said(outcome, meaning),
            Err(failed) => Err(failed.failure()),
        }
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the handler is told a deadline by the wall clock"
    )]
    async fn forward(&self, lease: &Lease, limit: Duration) -> Result<(Outcome, Meaning), Failed> {
        let route = &self.route_state.route;
        let forwarded = ForwardedRequest {
            lease,
            delivery: &self.delivery,
            deadline: Timestamp::now() + limit,
            traceparent: &self.traceparent,
            steps_url: self.route_state.steps_url.as_deref(),
            header_rules: &self.gate.header_rules,
        };
        let request = forwarded.request(&self.arrived, full(self.arrived.body.clone()));
        // Where doubt is parked, a connection that closes under a request must not be the cause.
        let connection = match route.in_doubt {
            InDoubt::Park => Connection::Fresh,
            InDoubt::Retry => Connection::Kept,
        };
        pass(Point::BeforeConnect);
        let response = self
            .gate
            .client
            .send(&route.upstream, connection, request)
            .await?;
        pass(Point::AnswerBegun);
        let (parts, body) = response.into_parts();
        let meaning = meaning(route, self.delivery.source, parts.status);
        let body = match read(body, route.answer_bytes_max).await? {
            AnswerBody::Whole(bytes) => Body::Kept(bytes),
            AnswerBody::Beyond(begun, rest) => {
                // The run's own timeout ends here.
                let rest = Paced::answered(rest, &self.gate.settings.limits);
                self.first_hand
                    .note(|heard| heard.rest = Some((begun, rest)));
                Body::NotKept
            }
        };
        pass(Point::AnswerRead);
        let outcome = outcome(&parts, body);
        let mut headers = end_to_end(&parts.headers);
        // Whether it is a replay is for the gate to say.
        headers.remove(REPLAYED);
        self.first_hand.note(|heard| heard.headers = Some(headers));
        Ok((outcome, meaning))
    }
}

/// The request may have been sent before.
fn panicked() -> Failure {
    Failure {
        kind: FailureKind::InDoubt,
        outcome: gate_broken(),
        after: None,
    }
}

/// Why there is no answer to judge.
enum Failed {
    NotAnswered(SendError),
    TimedOut(Duration),
}

impl From<SendError> for Failed {
    fn from(broken: SendError) -> Self {
        Self::NotAnswered(broken)
    }
}

impl Failed {
    fn failure(&self) -> Failure {
        let (kind, why, timed_out) = match self {
            Self::NotAnswered(SendError::NotSent(why)) => (
                FailureKind::NotStarted,
                format!("the handler was not reached ({why}); nothing was run"),
                false,
            ),
            Self::NotAnswered(SendError::NotProcessed(why)) => (
                FailureKind::NotStarted,
                format!(
                    "the handler refused the request before it looked at it ({why}); nothing was run"
                ),
                false,
            ),
            Self::NotAnswered(SendError::Cut(why)) => (
                FailureKind::InDoubt,
                format!(
                    "the connection to the handler broke ({why}); whether it took effect is unknown"
                ),
                false,
            ),
            Self::TimedOut(limit) => (
                FailureKind::InDoubt,
                format!(
                    "the handler did not answer within {limit:?}; whether it took effect is unknown"
                ),
                true,
            ),
        };
        Failure {
            kind,
            outcome: no_answer(timed_out, &why),
            after: None,
        }
    }
}

fn said(outcome: Outcome, meaning: Meaning) -> Result<Outcome, Failure> {
    let kind = match meaning {
        Meaning::Success => return Ok(outcome),
        Meaning::Final => FailureKind::Final,
        Meaning::Retryable => FailureKind::Retryable,
        Meaning::InDoubt => FailureKind::InDoubt,
        Meaning::RetryableAtOnce => {
            return Err(Failure {
                kind: FailureKind::Retryable,
                outcome,
                after: Some(Duration::ZERO),
            });
        }
    };
    Err(Failure {
        kind,
        outcome,
        after: None,
    })
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

// === impl FirstHand ===

impl FirstHand {
    fn note(&self, change: impl FnOnce(&mut Heard)) {
        change(&mut self.0.lock().expect("no holder of this lock panics"));
    }

    /// Takes what was heard.
    pub(crate) fn take(&self) -> Heard {
        std::mem::take(&mut *self.0.lock().expect("no holder of this lock panics"))
    }
}

// === impl Heard ===

impl Heard {
    /// Where the handler's own transaction recorded the answer, that one is told, to the first sender
    /// too.
    pub(crate) fn forget_answer(&mut self) {
        self.headers = None;
        self.rest = None;
    }
}
