//! One delivery, from its arrival to its reply: delivery → key → claim → run → record → reply.

use crate::crossing::traceparent;
use crate::delivery::{Arrived, Delivery, Invalid};
use crate::effect::{FirstHand, Forward};
use crate::failpoint::{Point, pass};
use crate::gate::{Gate, Lane};
use crate::letters::Kept;
use crate::line::Line;
use crate::naming::{Named, Unnamed, name, work};
use crate::reply::{self, Reply, Told};
use crate::settings::Source;
use crate::source;
use semel::letter::{Letter, LetterId, Put, Reason};
use semel::work::Completes;
use semel::{Ended, Error, Fingerprint};
use std::sync::Arc;
use std::time::Duration;

/// When to ask again that found no room for reading a payload: the next delivery to end makes some.
const NO_ROOM_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Takes one delivery through the gate. It is never cancelled: a sender that hangs up leaves the
/// run, its record and its log line as they would have been.
pub(crate) async fn handle(gate: Arc<Gate>, lane: Arc<Lane>, arrived: Arrived) -> Reply {
    let source = source::who(lane.route.source, &arrived);
    let mut line = Line::begin(&lane.route, source);
    let arrived = Arc::new(arrived);
    let told = match deliver(&gate, &lane, source, &arrived, &mut line).await {
        Ok(told) => told,
        Err(invalid) => Told::Invalid(invalid),
    };
    line.tell(&told);
    let told = keep_letter(&gate, &lane, source, &arrived, told, &mut line).await;
    let reply = reply::reply(source, lane.route.on_invalid, told);
    line.end(&gate.metrics, reply.status());
    pass(Point::BeforeReply);
    reply
}

/// Reads, names and runs a delivery.
async fn deliver(
    gate: &Arc<Gate>,
    lane: &Arc<Lane>,
    source: Source,
    arrived: &Arc<Arrived>,
    line: &mut Line,
) -> Result<Told, Invalid> {
    let delivery = source::read(Some(source), arrived)?;
    line.transport = delivery.transport.clone();
    match name(gate, &lane.route, arrived, &delivery) {
        Ok(named) => Ok(run(gate, lane, arrived, delivery, named, line).await),
        Err(Unnamed::Invalid(invalid)) => Err(invalid),
        Err(Unnamed::NoRoom) => {
            let retry_after = NO_ROOM_RETRY_AFTER;
            Ok(Told::Ended(Ended::Full { retry_after }, Box::default()))
        }
    }
}

/// Claims, runs and records a delivery under its names.
pub(crate) async fn run(
    gate: &Arc<Gate>,
    lane: &Arc<Lane>,
    arrived: &Arc<Arrived>,
    delivery: Delivery,
    named: Named,
    line: &mut Line,
) -> Told {
    line.named = Some(named);
    let first_hand = FirstHand::default();
    let forward = Forward {
        gate: Arc::clone(gate),
        lane: Arc::clone(lane),
        arrived: Arc::clone(arrived),
        traceparent: traceparent(&delivery.transport),
        first_hand: first_hand.clone(),
        delivery: Arc::new(delivery),
    };
    line.trace(&forward.traceparent);
    let work = work(lane, forward.delivery.source, named);
    pass(Point::BeforeClaim);
    let ended = gate.semel.run(work, move |run| forward.effect(run)).await;
    pass(Point::Recorded);
    let mut heard = first_hand.take();
    if lane.route.completes == Completes::Handler && matches!(ended, Ok(Ended::Ran(_))) {
        heard.forget_answer();
    }
    line.heard(&heard);
    match ended {
        Ok(ended) => Told::Ended(ended, Box::new(heard)),
        Err(error) => Told::Store(error),
    }
}

/// Keeps the whole delivery when its sender is about to forget it without success.
async fn keep_letter(
    gate: &Gate,
    lane: &Lane,
    source: Source,
    arrived: &Arrived,
    told: Told,
    line: &mut Line,
) -> Told {
    let Some(reason) = reply::letter(source, lane.route.on_invalid, &told) else {
        return told;
    };
    let letter = Letter {
        id: letter_id(reason, line, arrived),
        key: line.named.map(|named| named.key),
        reason,
        delivery: Kept::of(&lane.route.name, arrived, why(&told)).encode(),
    };
    match gate.semel.store().letter_put(&letter).await {
        Ok(Put::Applied) => {
            gate.metrics.letter_kept(&lane.route.name, reason);
            line.letter = Some(letter.id);
            told
        }
        Ok(Put::Already) => {
            line.letter = Some(letter.id);
            told
        }
        // Nothing is lost: the sender keeps it.
        Err(error) => {
            tracing::warn!(route = lane.route.name, %error, "a letter was not kept; the sender is asked to deliver again");
            Told::Store(Error::Unavailable("a letter was not kept".into()))
        }
    }
}

/// One letter per key and reason; without a key, one per arrival.
fn letter_id(reason: Reason, line: &Line, arrived: &Arrived) -> LetterId {
    match line.named {
        Some(named) => LetterId::of_key(reason, &named.key, &named.fingerprint),
        None => {
            let body = Fingerprint::of(&arrived.body);
            LetterId::of_delivery(reason, &line.arrival(arrived), &body)
        }
    }
}

fn why(told: &Told) -> String {
    match told {
        Told::Invalid(invalid) => invalid.detail.clone(),
        Told::Store(error) => error.to_string(),
        Told::Ended(ended, _) => reply::why(ended),
    }
}
