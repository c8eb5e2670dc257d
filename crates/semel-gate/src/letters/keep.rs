//! Keeping a letter: the whole delivery, durable in the store before its sender hears that it may forget it.

use crate::delivery::Arrived;
use crate::delivery_log::Line;
use crate::gate::{Gate, RouteState};
use crate::letters::status;
use crate::letters::stored::StoredDelivery;
use crate::reply::{self, NotKept, Told};
use crate::settings::Source;
use semel::letter::{Letter, LetterId, Put, Reason, Standing};
use semel::record::{Fence, State};
use semel::{Error, Fingerprint};

/// What the record of a delivery's key says, just before the delivery is acknowledged.
enum Ground {
    /// It is to be kept, under this fence.
    Keep(Fence),
    /// Its work has succeeded meanwhile: there is nothing to keep.
    Succeeded,
    /// What it was told of is not decided yet, or no longer so: its sender must keep it.
    Unsettled,
}

/// What became of a letter.
enum Ended {
    Kept(LetterId),
    /// Nothing is kept, and nothing is lost: its work has succeeded, or an operator discarded it.
    Closed,
    NotKept(NotKept),
}

/// Keeps the whole delivery when its sender is about to forget it without success.
pub(crate) async fn keep_letter(
    gate: &Gate,
    route_state: &RouteState,
    source: Source,
    arrived: &Arrived,
    told: Told,
    line: &mut Line,
) -> Told {
    let Some(reason) = reply::letter(source, route_state.route.on_invalid, &told) else {
        return told;
    };
    let ended = match ground(gate, reason, line).await {
        Ok(Ground::Keep(fence)) => {
            let letter = Letter {
                id: letter_id(gate, reason, line, arrived),
                key: line.named.map(|named| named.key),
                route: route_state.route.name.clone(),
                reason,
                fence,
                retention: route_state.route.terms(source).retention,
                redriven: false,
                delivery: StoredDelivery::of(&route_state.route.name, arrived, why(&told)).encode(),
            };
            keep(gate, route_state, &letter).await
        }
        Ok(Ground::Succeeded) => Ok(Ended::Closed),
        Ok(Ground::Unsettled) => Ok(Ended::NotKept(NotKept::Unsettled)),
        Err(error) => Err(error),
    };
    match ended {
        Ok(Ended::Kept(id)) => {
            line.letter = Some(id);
            told
        }
        Ok(Ended::Closed) => told,
        Ok(Ended::NotKept(why)) => {
            let told = Told::NotKept(why);
            if why == NotKept::Full {
                line.tell(&told);
            }
            told
        }
        // Nothing is lost: the sender keeps it.
        Err(error) => {
            tracing::warn!(route = route_state.route.name, %error, "a letter was not kept; the sender is asked to deliver again");
            Told::Store(Error::Unavailable("a letter was not kept".into()))
        }
    }
}

/// Looks at the record: for its fence, and because it may have changed since the delivery was told.
async fn ground(gate: &Gate, reason: Reason, line: &Line) -> Result<Ground, Error> {
    let Some(named) = line.named else {
        return Ok(Ground::Keep(Fence(0)));
    };
    let Some(record) = gate.semel.store().look(&named.key).await? else {
        // Without a fence nobody could tell it from a duplicate of what was closed.
        return Ok(line.fence().map_or(Ground::Unsettled, Ground::Keep));
    };
    let same = record.fingerprint == named.fingerprint;
    Ok(match (reason, record.state) {
        (Reason::Parked | Reason::Failed, State::Succeeded) if same => Ground::Succeeded,
        (Reason::Parked | Reason::Failed | Reason::Invalid, _) => Ground::Keep(record.fence),
        // The living carrier of unfinished work is never swallowed.
        (Reason::Mismatched, State::Running | State::Waiting) => Ground::Unsettled,
        (Reason::Mismatched, State::Succeeded | State::Failed | State::Parked) if same => {
            Ground::Unsettled
        }
        (Reason::Mismatched, State::Succeeded | State::Failed | State::Parked) => {
            Ground::Keep(record.fence)
        }
    })
}

async fn keep(gate: &Gate, route_state: &RouteState, letter: &Letter) -> Result<Ended, Error> {
    let store = gate.semel.store();
    let room = route_state
        .letters
        .take(letter.reason, letter.delivery.len() as u64);
    // A duplicate of what is kept already needs no room.
    if room.is_none() && store.letter_get(&letter.id).await?.is_none() {
        refused(gate, route_state, letter.reason);
        return Ok(Ended::NotKept(NotKept::Full));
    }
    match store.letter_put(letter).await? {
        Put::Applied => {
            if let Some(room) = room {
                room.used();
            }
            gate.metrics
                .letter_kept(&route_state.route.name, letter.reason);
        }
        // Whoever put it has looked again, and reconciliation does.
        Put::Already => return Ok(Ended::Kept(letter.id)),
        Put::Closed => return Ok(Ended::Closed),
    }
    // Its work may have succeeded between the look and the put; later, reconciliation sees it.
    match status::look_at(store, letter)
        .await
        .map(|stands| stands.standing)
    {
        Ok(Standing::Succeeded) => Ok(Ended::Closed),
        Ok(Standing::Unfinished(_) | Standing::NotRun | Standing::Unknown) | Err(_) => {
            Ok(Ended::Kept(letter.id))
        }
    }
}

fn refused(gate: &Gate, route_state: &RouteState, reason: Reason) {
    let (route, limits) = (&route_state.route.name, route_state.letters.limits());
    gate.metrics.letter_refused(route, reason);
    if route_state.letters.alarms() {
        tracing::error!(
            route,
            reason = reason.word(),
            letters_max = limits.count_max,
            letters_bytes_max = limits.bytes_max,
            "the route's letters are full: its senders keep what they deliver and hear 409; redrive or discard \
             letters (`semel letters list`), or raise `letters_max` and `letters_bytes_max`"
        );
    }
}

/// One letter per key and reason; without a key, one per arrival. An arrival that nothing names is never
/// taken for another: its id is random, so that it meets neither an open letter nor a tombstone. The quota
/// bounds how many there are.
#[allow(
    clippy::disallowed_methods,
    reason = "a letter that nothing names gets a random id"
)]
fn letter_id(gate: &Gate, reason: Reason, line: &Line, arrived: &Arrived) -> LetterId {
    match line.named {
        Some(named) => LetterId::of_key(reason, &named.key, &named.fingerprint),
        None => {
            let body = Fingerprint::of(&arrived.body);
            let mut arrival = format!("{} {}", gate.settings.namespace, line.arrival(arrived));
            if !line.is_identified(arrived) {
                arrival.push_str(&format!("\n{:032x}", rand::random::<u128>()));
            }
            LetterId::of_delivery(reason, &arrival, &body)
        }
    }
}

fn why(told: &Told) -> String {
    match told {
        Told::Invalid(invalid) => invalid.detail.clone(),
        Told::Store(error) => error.to_string(),
        Told::Ended(ended, _) => reply::why(ended),
        Told::NoRoom | Told::NotKept(_) => "it was not kept".into(),
    }
}
