//! Reading a letter back: its delivery, and the key and fingerprint it was kept under.

use super::Redrive;
use crate::delivery::Delivery;
use crate::flow::Flow;
use crate::gate::Gate;
use crate::letters::StoredDelivery;
use crate::naming::{self, Identity, NamedRequest};
use crate::operate::{Operator, Refused};
use crate::settings::Source;
use crate::source;
use semel::Fingerprint;
use semel::letter::{Letter, LetterId, Reason};
use semel::protocol::{Fence, Record};
use semel::store::StoreExt;
use std::sync::Arc;

/// Reads a letter back into a delivery with its names, and looks at the record of its work.
pub(super) async fn prepare(
    gate: &Arc<Gate>,
    operator: &Operator,
    letter: Letter,
) -> Result<(Redrive, Option<Record>), Refused> {
    let (bytes, own) = (letter.delivery.len(), Arc::clone(gate));
    let read = gate
        .blocking_pool
        .run(bytes, move || read_back(&own, letter));
    let mut read = read.await?;
    let record = gate.semel.store().look(&read.redrive.identity.key).await?;
    read.redrive.identity.fingerprint = read.fingerprint(record.as_ref());
    if record.is_none() {
        read.redrive.is_unrun = is_unrun(operator, &read.redrive.letter).await?;
    }
    Ok((read.redrive, record))
}

/// Returns whether no run of a letter's work has begun, where there is no record of it: it was refused when there was none, and a run
/// since would have left one that is still there.
async fn is_unrun(operator: &Operator, letter: &Letter) -> Result<bool, Refused> {
    let is_refused = letter.reason == Reason::Unfinished && letter.fence == Fence(0);
    if !is_refused || letter.redriven {
        return Ok(false);
    }
    let head = operator.head_of(&letter.id).await?;
    let age = head.map(|head| operator.audit().now().since(head.created_at));
    Ok(age.is_some_and(|age| age < letter.retention))
}

/// A letter as it is read today.
struct ReadBack {
    redrive: Redrive,
    /// The fingerprint that its delivery would have today.
    today: Option<Fingerprint>,
}

fn read_back(gate: &Arc<Gate>, letter: Letter) -> Result<ReadBack, Refused> {
    let kept = StoredDelivery::decode(&letter.delivery)?;
    let Some(route) = gate.route_state(&kept.head.route) else {
        return Err(Refused::conflict(
            format!("this gate has no route {:?} any more", kept.head.route),
            "add the route again, ask a gate that has it, or discard the letter; nothing was run",
        ));
    };
    let request = kept.request()?;
    let source = source::sender(&brokers(&route.settings.sources), &request);
    let delivery = source::read(source, &request)
        .unwrap_or_else(|_| Delivery::new(source, request.body().clone()));
    let today = || {
        let (namespace, room) = (
            &gate.settings.namespace,
            &mut gate.bodies.room_for_reading(),
        );
        naming::name(namespace, &route.settings, &request, &delivery, room).ok()
    };
    let (today, description) = today().unzip();
    let today = today.filter(|_| letter.reason.is_of_own_key());
    let identity = Identity {
        key: letter.work_key(),
        fingerprint: Fingerprint::of(request.body()),
        version: today.map_or(0, |identity| identity.version),
    };
    let named = NamedRequest {
        description,
        ..NamedRequest::of(&route.settings, delivery, Ok(identity))
    };
    let (gate, route, request) = (Arc::clone(gate), Arc::clone(route), Arc::new(request));
    let mut flow = Flow::new(gate, route, request, named);
    flow.letter = Some(letter.id);
    flow.is_redrive = true;
    Ok(ReadBack {
        redrive: Redrive {
            letter,
            identity,
            flow,
            is_unrun: false,
        },
        today: today.map(|identity| identity.fingerprint),
    })
}

/// Who may have sent a letter: never an API client. A route that takes no broker's deliveries any more
/// still has the letters of before.
fn brokers(sources: &[Source]) -> Vec<Source> {
    let broker = |source: &Source| source.is_broker();
    let named: Vec<_> = sources.iter().copied().filter(broker).collect();
    if named.is_empty() {
        Source::ALL.into_iter().filter(broker).collect()
    } else {
        named
    }
}

// === impl ReadBack ===

impl ReadBack {
    /// The fingerprint that a letter was kept under: its id tells which one. The route's rule may have
    /// changed since.
    fn fingerprint(&self, record: Option<&Record>) -> Fingerprint {
        let (letter, of_body) = (&self.redrive.letter, self.redrive.identity.fingerprint);
        let Some(key) = letter.key.filter(|_| letter.reason.is_of_own_key()) else {
            return of_body;
        };
        let recorded = record.map(|record| record.fingerprint);
        let was = |it: &Fingerprint| LetterId::of_key(letter.reason, &key, it) == letter.id;
        let known = [recorded, self.today].into_iter().flatten().find(was);
        known.or(self.today).unwrap_or(of_body)
    }
}
