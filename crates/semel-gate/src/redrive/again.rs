//! Reading a letter back: its delivery, and the key and fingerprint it was kept under.

use super::Again;
use crate::delivery::{Arrived, Delivery, Transport};
use crate::gate::{Gate, Lane};
use crate::letters::Kept;
use crate::naming::{Named, name};
use crate::operate::Refused;
use crate::source;
use semel::key::{Field, Scope};
use semel::letter::{Letter, LetterId, Reason};
use semel::record::Record;
use semel::{Error, Fingerprint, Key};
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
    let source = source::who(lane.route.source, &arrived);
    let delivery = source::read(Some(source), &arrived).unwrap_or_else(|_| Delivery {
        source,
        transport: Transport::default(),
        payload: arrived.body.clone(),
        attributes: BTreeMap::new(),
        ce: BTreeMap::new(),
    });
    let key = own_key(gate, lane, &letter)?;
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

/// The key that a letter was kept under, whatever the route's rule says today; a key of its own when
/// it had none, or when that key stands for another payload.
fn own_key(gate: &Gate, lane: &Lane, letter: &Letter) -> Result<Key, Refused> {
    match (letter.reason, letter.key) {
        (Reason::Parked | Reason::Failed, Some(key)) => return Ok(key),
        (Reason::Parked | Reason::Failed, None) | (Reason::Mismatched | Reason::Invalid, _) => {}
    }
    let scope = Scope::new(&gate.settings.namespace, &lane.route.name);
    let field = |kind, bytes: &[u8]| Field {
        kind,
        bytes: bytes.to_vec(),
    };
    let fields = [field('s', b"redrive"), field('h', &letter.id.0)];
    Key::of(&scope, &fields).map_err(|error| {
        Error::Bug(format!("a letter has no key to be redriven under: {error}")).into()
    })
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
