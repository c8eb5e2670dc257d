//! One delivery, from its arrival to its reply: delivery → key → claim → run → record → reply.

use crate::delivery::{Arrived, Delivery, Invalid};
use crate::delivery_log::Line;
use crate::effect::{FirstHand, Forward};
use crate::failpoint::{Point, pass};
use crate::forwarded_request::traceparent;
use crate::gate::{Gate, RouteState};
use crate::letters::keep::keep_letter;
use crate::naming::{Identity, NamingError, name, work};
use crate::reply::{self, Reply, Told};
use crate::settings::Source;
use crate::source;
use semel::Ended;
use semel::work::Completes;
use std::sync::Arc;

/// Takes one delivery through the gate. It is never cancelled: a sender that hangs up leaves the
/// run, its record and its log line as they would have been.
pub(crate) async fn handle(
    gate: Arc<Gate>,
    route_state: Arc<RouteState>,
    arrived: Arrived,
) -> Reply {
    let arrived = Arc::new(arrived);
    let source = sender(&gate, &route_state, &arrived).await;
    let mut line = Line::begin(&route_state.route, source);
    let told = match deliver(&gate, &route_state, source, &arrived, &mut line).await {
        Ok(told) => told,
        Err(invalid) => Told::Invalid(invalid),
    };
    line.tell(&told);
    let told = keep_letter(&gate, &route_state, source, &arrived, told, &mut line).await;
    let reply = reply::reply(source, route_state.route.on_invalid, told);
    line.end(&gate.metrics, reply.status());
    pass(Point::BeforeReply);
    reply
}

async fn sender(gate: &Gate, route_state: &Arc<RouteState>, arrived: &Arc<Arrived>) -> Source {
    let (bytes, route_state, arrived) = (
        arrived.body.len(),
        Arc::clone(route_state),
        Arc::clone(arrived),
    );
    let sender = move || source::sender(&route_state.route.sources, &arrived);
    gate.blocking_pool.run(bytes, sender).await
}

/// Reads, names and runs a delivery.
async fn deliver(
    gate: &Arc<Gate>,
    route_state: &Arc<RouteState>,
    source: Source,
    arrived: &Arc<Arrived>,
    line: &mut Line,
) -> Result<Told, Invalid> {
    if !route_state.route.sources.contains(&source) {
        return Err(source::unknown(&route_state.route.sources));
    }
    let (delivery, named) = read(gate, route_state, source, arrived).await?;
    line.transport = delivery.transport.clone();
    match named {
        Ok(named) => Ok(run(gate, route_state, arrived, delivery, named, line).await),
        Err(NamingError::Invalid(invalid)) => Err(invalid),
        Err(NamingError::NoRoom) => Ok(Told::NoRoom),
    }
}

/// A delivery, and its names if it can have any.
type Read = (Delivery, Result<Identity, NamingError>);

async fn read(
    gate: &Arc<Gate>,
    route_state: &Arc<RouteState>,
    source: Source,
    arrived: &Arc<Arrived>,
) -> Result<Read, Invalid> {
    let bytes = arrived.body.len();
    let (own, route_state, arrived) = (
        Arc::clone(gate),
        Arc::clone(route_state),
        Arc::clone(arrived),
    );
    let read = move || {
        let delivery = source::read(Some(source), &arrived)?;
        let named = name(&own, &route_state.route, &arrived, &delivery);
        Ok((delivery, named))
    };
    gate.blocking_pool.run(bytes, read).await
}

/// Claims, runs and records a delivery under its names.
pub(crate) async fn run(
    gate: &Arc<Gate>,
    route_state: &Arc<RouteState>,
    arrived: &Arc<Arrived>,
    delivery: Delivery,
    named: Identity,
    line: &mut Line,
) -> Told {
    line.named = Some(named);
    let first_hand = FirstHand::default();
    let forward = Forward {
        gate: Arc::clone(gate),
        route_state: Arc::clone(route_state),
        arrived: Arc::clone(arrived),
        traceparent: traceparent(&delivery.transport),
        first_hand: first_hand.clone(),
        delivery: Arc::new(delivery),
    };
    line.trace(&forward.traceparent);
    let work = work(route_state, forward.delivery.source, named);
    // What is given up must be kept as a letter: while there is no room for one, nothing is given up.
    let work = match forward.delivery.source {
        Source::Api => work,
        Source::CloudTasks | Source::PubSub | Source::CloudEvents
            if route_state.letters.has_room(arrived.body.len() as u64) =>
        {
            work
        }
        Source::CloudTasks | Source::PubSub | Source::CloudEvents => work.max_attempts(0),
    };
    let slot_wait = work.slot_wait();
    pass(Point::BeforeClaim);
    let ended = gate.semel.run(work, move |run| forward.effect(run)).await;
    pass(Point::Recorded);
    let mut heard = first_hand.take();
    if route_state.route.completes == Completes::Handler && matches!(ended, Ok(Ended::Ran(_))) {
        heard.forget_answer();
    }
    line.heard(&heard);
    line.slot = slot_wait.waited();
    match ended {
        Ok(ended) => Told::Ended(ended, Box::new(heard)),
        Err(error) => Told::Store(error),
    }
}
