//! Reading a letter back: its delivery, and the key and fingerprint it was kept under.

use super::Again;
use crate::delivery::{Arrived, Delivery, Transport};
use crate::gate::{Gate, Lane};
use crate::letters::Kept;
use crate::naming::{Named, name};
use crate::operate::Refused;
use crate::settings::Source;
use crate::source;
use semel::Fingerprint;
use semel::letter::{Letter, LetterId, Reason};
use semel::record::Record;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads a letter back into a delivery with its names, and looks at the record of its work.
pub(super) async fn prepare(
    gate: &Gate,
    letter: Letter,
) -> Result<(Again, Option<Record>), Refused> {
    let kept = Kept::decode(&letter.delivery)?;
    let Some(lane) = gate.lane(&kept.head.route) else {
        return Err(Refused::conflict(
            format!("this gate has no route {:?} any more", kept.head.route),
            "add the route again, ask a gate that has it, or discard the letter; nothing was run",
        ));
    };
    let arrived = kept.arrived()?;
    let source = source::sender(&brokers(&lane.route.sources), &arrived);
    let delivery = source::read(Some(source), &arrived).unwrap_or_else(|_| Delivery {
        source,
        transport: Transport::default(),
        payload: arrived.body.clone(),
        attributes: BTreeMap::new(),
        ce: BTreeMap::new(),
    });
    let key = letter.work_key();
    let record = gate.semel.store().look(&key).await?;
    let named = Named {
        key,
        fingerprint: fingerprint(gate, lane, &letter, &arrived, &delivery, record.as_ref()),
    };
    let again = Again {
        letter,
        lane: Arc::clone(lane),
        arrived: Arc::new(arrived),
        delivery,
        named,
    };
    Ok((again, record))
}

/// Who may have sent a letter: never an API client. A route that takes no broker's deliveries any more
/// still has the letters of before.
fn brokers(sources: &[Source]) -> Vec<Source> {
    let broker = |source: &Source| *source != Source::Api;
    let named: Vec<_> = sources.iter().copied().filter(broker).collect();
    if named.is_empty() {
        Source::ALL.into_iter().filter(broker).collect()
    } else {
        named
    }
}

/// The fingerprint that a letter was kept under: its id tells which one. The route's rule may have
/// changed since.
fn fingerprint(
    gate: &Gate,
    lane: &Lane,
    letter: &Letter,
    arrived: &Arrived,
    delivery: &Delivery,
    record: Option<&Record>,
) -> Fingerprint {
    let of_body = Fingerprint::of(&arrived.body);
    let Some(key) = letter.key.filter(|_| is_by_key(letter.reason)) else {
        return of_body;
    };
    let today = name(gate, &lane.route, arrived, delivery).ok();
    let today = today.map(|named| named.fingerprint);
    let recorded = record.map(|record| record.fingerprint);
    let was = |it: &Fingerprint| LetterId::of_key(letter.reason, &key, it) == letter.id;
    let known = [recorded, today].into_iter().flatten().find(was);
    known.or(today).unwrap_or(of_body)
}

const fn is_by_key(reason: Reason) -> bool {
    match reason {
        Reason::Parked | Reason::Failed => true,
        Reason::Mismatched | Reason::Invalid => false,
    }
}
