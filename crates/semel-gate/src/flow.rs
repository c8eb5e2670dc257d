//! The flow of one delivery: all that is known of it on its way through the gate.

use crate::arrival::Arrival;
use crate::delivery::Transport;
use crate::delivery_log;
use crate::disposition::Disposition;
use crate::effect::{Effect, StreamedAnswer};
use crate::failpoint::{Point, pass};
use crate::gate::{Gate, RouteState};
use crate::label::{Description, LabelOf};
use crate::letters::quota::Count;
use crate::naming::{self, Identity, NamedRequest, NamingError};
use crate::recent::RecentDelivery;
use crate::reply::{self, ReplyBody};
use crate::settings::{RecordKeeping, Source};
use crate::trace::DeliveryTrace;
use crate::upstream::{Reply, chained, full};
use crate::waiting_sender::WaitingSender;
use bytes::Bytes;
use http::{Request, StatusCode};
use semel::letter::LetterId;
use semel::protocol::Lease;
use semel::store::StoreExt;
use semel::work::{Completes, Duplicates, Work};
use semel::{Ended, Error, Key};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A run as far as it says something of its handler, for operators.
#[derive(Debug)]
struct RunHealth {
    gate: Arc<Gate>,
    route: Arc<RouteState>,
    key: Key,
}

/// A delivery on its way through the gate.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) gate: Arc<Gate>,
    pub(crate) route: Arc<RouteState>,
    pub(crate) request: Arc<Request<Bytes>>,
    /// Who sent it.
    pub(crate) source: Source,
    /// The sender's own names for it.
    pub(crate) transport: Transport,
    /// What tells it from every other arrival.
    pub(crate) arrival: Arc<Arrival>,
    /// How long its payload is.
    pub(crate) payload_bytes: usize,
    /// Its payload, where it lands.
    pub(crate) payload: Option<Bytes>,
    /// The context attributes of a CloudEvent.
    pub(crate) event: BTreeMap<String, String>,
    /// Its key and fingerprint, or why it has none.
    pub(crate) identity: Result<Identity, NamingError>,
    /// What it says of its work, for people.
    pub(crate) description: Option<Description>,
    /// What it does while the same work runs elsewhere, if not what its route says.
    pub(crate) duplicates: Option<Duplicates>,
    /// The trace that it belongs to, and its spans.
    pub(crate) trace: Arc<DeliveryTrace>,
    /// The right under which it ran.
    pub(crate) lease: Option<Lease>,
    /// What it heard from its handler beside the record.
    pub(crate) answer: StreamedAnswer,
    /// How long the handler took.
    pub(crate) handler_took: Option<Duration>,
    /// How long it waited for a slot, if it had to.
    pub(crate) slot_waited: Option<Duration>,
    /// The letter that keeps it.
    pub(crate) letter: Option<LetterId>,
    /// What that letter takes of the route's quota, if it was put for this very delivery.
    pub(crate) letter_load: Option<Count>,
    /// Whether an operator redrives a letter: no sender delivered it again.
    pub(crate) is_redrive: bool,
    begun: Instant,
}

// === impl Flow ===

impl Flow {
    /// Reads a request: who sent it, what it means, which work it is.
    pub(crate) async fn read(
        gate: Arc<Gate>,
        route: Arc<RouteState>,
        request: Arc<Request<Bytes>>,
    ) -> Self {
        let begun = Instant::now();
        let read = {
            let (gate, route, request) = (gate.clone(), route.clone(), request.clone());
            move || {
                let room = &mut gate.bodies.room_for_reading();
                NamedRequest::read(&gate.settings.namespace, &route.settings, &request, room)
            }
        };
        let named = gate.blocking_pool.run(request.body().len(), read).await;
        Self {
            begun,
            ..Self::new(gate, route, request, named)
        }
    }

    pub(crate) fn new(
        gate: Arc<Gate>,
        route: Arc<RouteState>,
        request: Arc<Request<Bytes>>,
        named: NamedRequest,
    ) -> Self {
        let trace = DeliveryTrace::new(gate.tracer.as_ref(), &named.transport);
        Self {
            gate,
            route,
            request,
            source: named.source,
            arrival: Arc::new(Arrival::now(named.source, &named.transport)),
            transport: named.transport,
            payload_bytes: named.payload_bytes,
            payload: named.payload,
            event: named.event,
            identity: named.identity,
            description: named.description,
            duplicates: None,
            trace: Arc::new(trace),
            lease: None,
            answer: StreamedAnswer::default(),
            handler_took: None,
            slot_waited: None,
            letter: None,
            letter_load: None,
            is_redrive: false,
            begun: Instant::now(),
        }
    }

    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref().ok()
    }

    /// What the sender orders by, often a customer or an account: not told of a private route.
    pub(crate) fn ordering_key(&self) -> Option<&String> {
        let is_private = self.route.settings.private.is_some();
        self.transport.ordering_key.as_ref().filter(|_| !is_private)
    }

    /// Runs the work under the delivery's key, as its route says.
    pub(crate) async fn run(
        &mut self,
        identity: Identity,
        sender: Option<&mut WaitingSender>,
    ) -> Disposition {
        match self.route.settings.record {
            RecordKeeping::Store => self.run_once(identity, sender).await,
            RecordKeeping::None => self.run_stateless(identity, sender).await,
        }
    }

    /// Claims, runs and records.
    async fn run_once(
        &mut self,
        identity: Identity,
        sender: Option<&mut WaitingSender>,
    ) -> Disposition {
        let begun = Instant::now();
        let (effect, mut report) = Effect::of(self, begun, sender.is_some());
        let (to, mut uncompleted) = mpsc::unbounded_channel();
        let work = self.work(identity).reports_uncompleted(to);
        let slot_wait = work.slot_wait();
        if let Some(index) = &self.gate.index {
            index.note(self, &identity);
        }
        pass(Point::BeforeClaim);
        let semel = self.gate.semel.clone();
        let run = semel.run(work, move |run| effect.run(run));
        let ended = match sender {
            Some(sender) => self.outlast(run, &mut report, sender).await,
            None => run.await,
        };
        pass(Point::Recorded);
        if self.lease.is_none() {
            self.lease = report.lease.try_recv().ok();
        }
        let mut handled = None;
        if let Ok(report) = report.answer.try_recv() {
            self.handler_took = Some(report.took);
            self.answer = report.answer;
            handled = Some(report.ended);
        }
        // Where the handler's own transaction recorded the answer, that one is told, to the first sender too.
        if self.route.settings.completes == Completes::Handler && matches!(ended, Ok(Ended::Ran(_)))
        {
            self.answer = StreamedAnswer::default();
        }
        self.slot_waited = slot_wait.waited();
        if let Err(error) = &ended {
            tracing::warn!(route = self.route.settings.name, %error, "the store did not take a claim");
        }
        let health = RunHealth::of(self, identity.key);
        if uncompleted.try_recv().is_ok() {
            health.note_uncompleted();
        } else if matches!(ended, Ok(Ended::Unread)) {
            // The store says later whether the handler's transaction committed.
            tokio::spawn(async move {
                if uncompleted.recv().await.is_some() {
                    health.note_uncompleted();
                }
            });
        }
        self.retain_unstarted(&ended).await;
        let disposition = Disposition::of_run(self.source, ended);
        if matches!(disposition, Disposition::Ran(_)) && disposition.has_succeeded() {
            self.route.succeeded();
        }
        match handled {
            Some(handled) => self.trace.recorded(handled, &disposition),
            None if self.lease.is_none() => self.trace.claimed(begun, disposition.word()),
            None => {}
        }
        disposition
    }

    /// The terms on which it runs.
    fn work(&self, identity: Identity) -> Work {
        let route = &self.route;
        let work = naming::work(&route.settings, self.source, identity)
            .slots(&route.slots)
            .label(self.label())
            .by(self.gate.by.clone());
        let work = match self.duplicates {
            Some(duplicates) => work.duplicates(duplicates),
            None => work,
        };
        let work = match route.doubt_limit(self.source) {
            Some(limit) => work.doubt_age(limit.age),
            None => work.max_in_doubt(0),
        };
        // What is given up must be kept as a letter: while there is no room for one, nothing is given up.
        let bytes = self.request.body().len() as u64;
        if self.source.is_broker() && !route.letters.has_room(bytes, self.attempt()) {
            return work.max_attempts(0).max_in_doubt(0).park_after(None);
        }
        work
    }

    /// Keeps the age of work that a sender without a limit delivers: a record of a run that began nothing is remembered no longer
    /// than its claim said. Later runs keep what it has.
    async fn retain_unstarted(&self, ended: &Result<Ended, Error>) {
        let terms = self.route.settings.terms(self.source);
        let (Some(lease), Ok(Ended::Failed(failed))) = (&self.lease, ended) else {
            return;
        };
        let retention = terms.unfinished_retention(self.source);
        let is_first = lease.born == lease.fence;
        if !is_first || !failed.failure.kind.began_nothing() || retention <= terms.retention {
            return;
        }
        let retained = self.gate.semel.store().retain(&lease.key, retention);
        if let Err(error) = retained.await {
            let route = &self.route.name;
            tracing::warn!(%route, %error, "record of unfinished work not retained: its age is counted anew once it has expired");
        }
    }

    /// What its record is about, for whoever looks at it later, duplicates among them. A span that nobody receives is not
    /// named.
    fn label(&self) -> Bytes {
        let span = self.trace.span().or(self.trace.sender.as_ref());
        let traceparent = span.map(ToString::to_string);
        let label = LabelOf {
            route: &self.route.name,
            source: self.source.word(),
            gate: &self.gate.settings.name,
            id: self.transport.id(),
            from: self.transport.from(),
            description: self.description.as_ref(),
            traceparent: traceparent.as_deref(),
        };
        label.encode()
    }

    /// Tells the sender what became of its delivery, and writes it down.
    pub(crate) fn reply(&mut self, disposition: &Disposition) -> Reply {
        let answer = std::mem::take(&mut self.answer);
        let mut reply = reply::reply(self.source, disposition, answer);
        if let Some(identity) = self.identity() {
            reply::show_key(&mut reply, &identity.key);
        }
        self.log(disposition, reply.status());
        reply.map(|body| match body {
            ReplyBody::Whole(bytes) => full(bytes),
            ReplyBody::Streamed(begun, rest) => chained(begun, rest),
        })
    }

    /// Writes down how a run ended whose sender heard before that it goes on.
    pub(crate) fn log_end(&self, disposition: &Disposition) {
        let (route, took) = (&self.route.settings.name, self.handler_took);
        self.gate.metrics.outlasted(route, disposition, took);
        let elapsed = self.begun.elapsed();
        self.gate.rates.note_end(self);
        self.gate.recent.note(RecentDelivery {
            is_end: true,
            ..RecentDelivery::of(self, disposition, None, elapsed)
        });
        delivery_log::write_end(self, disposition.word(), elapsed);
    }

    /// Writes the delivery's log line and counts it.
    pub(crate) fn log(&self, disposition: &Disposition, status: StatusCode) {
        let (elapsed, metrics) = (self.begun.elapsed(), &self.gate.metrics);
        let route = &self.route.settings.name;
        metrics.delivery(route, disposition, elapsed, self.handler_took);
        if let Some(waited) = self.slot_waited {
            metrics.slot_waited(route, waited);
        }
        self.gate.rates.note(self, disposition);
        let recent = RecentDelivery::of(self, disposition, Some(status), elapsed);
        self.gate.recent.note(recent);
        delivery_log::write(self, disposition, status, elapsed);
        self.trace.ended(self, self.begun, disposition, status);
    }
}

// === impl RunHealth ===

impl RunHealth {
    fn of(flow: &Flow, key: Key) -> Self {
        Self {
            gate: Arc::clone(&flow.gate),
            route: Arc::clone(&flow.route),
            key,
        }
    }

    /// Notes that the handler answered with success, and did not complete the run as its route says.
    fn note_uncompleted(&self) {
        let name = &self.route.settings.name;
        self.gate.metrics.doubt.not_completed(name);
        if self.route.not_completed_log.is_due() {
            tracing::warn!(
                route = name,
                key = %self.key,
                "the handler answered with success and did not complete the run in its transaction (`semel.complete`): whether \
                 it took effect elsewhere is unknown; others are counted in semel_runs_not_completed_total for an hour"
            );
        }
    }
}
