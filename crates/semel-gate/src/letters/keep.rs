//! Keeping a letter: the whole delivery, durable in the store before its sender hears that it may forget it.

use super::id::letter_id;
use super::status;
use super::stored::StoredDelivery;
use crate::disposition::{Disposition, NotKept, Undelivered};
use crate::flow::Flow;
use semel::Error;
use semel::letter::{KeepDecision, Letter, LetterId, Put, Reason, Standing};
use semel::protocol::Fence;
use semel::store::StoreExt;

/// What became of a letter.
enum LetterPut {
    Kept(LetterId),
    /// Nothing is kept, and nothing is lost: its work has succeeded, or an operator discarded it.
    Closed,
    NotKept(NotKept),
}

/// Keeps the whole delivery when its sender is about to forget it without success.
pub(crate) async fn keep_letter(flow: &mut Flow, disposition: Disposition) -> Disposition {
    let Disposition::Letter(why) = disposition else {
        return disposition;
    };
    match put(flow, &why).await {
        Ok(LetterPut::Kept(id)) => {
            flow.letter = Some(id);
            Disposition::Letter(why)
        }
        Ok(LetterPut::Closed) => Disposition::Letter(why),
        Ok(LetterPut::NotKept(not_kept)) => Disposition::NotKept(why, not_kept),
        // Nothing is lost: the sender keeps it.
        Err(error) => {
            let route = &flow.route.settings.name;
            tracing::warn!(route, %error, "a letter was not kept; the sender is asked to deliver again");
            Disposition::NotKept(why, NotKept::Store)
        }
    }
}

async fn put(flow: &Flow, why: &Undelivered) -> Result<LetterPut, Error> {
    let (letters, route, reason) = (flow.gate.letters.as_ref(), &flow.route, why.reason());
    let fence = match decide(flow, reason).await? {
        KeepDecision::Keep(fence) => fence,
        KeepDecision::Succeeded => return Ok(LetterPut::Closed),
        KeepDecision::Unsettled => return Ok(LetterPut::NotKept(NotKept::Unsettled)),
    };
    let name = &route.settings.name;
    let letter = Letter {
        id: letter_id(flow, reason),
        key: flow.identity().map(|identity| identity.key),
        route: name.clone(),
        reason,
        fence,
        retention: route.settings.terms(flow.source).retention,
        redriven: false,
        delivery: StoredDelivery::of(name, &flow.request, why.why()).encode(),
    };
    let room = route.letters.take(reason, letter.delivery.len() as u64);
    // A duplicate of what is kept already needs no room.
    if room.is_none() && letters.get(&letter.id).await?.is_none() {
        refused(flow, reason);
        return Ok(LetterPut::NotKept(NotKept::Full));
    }
    match letters.put(&letter).await? {
        Put::Applied => {
            if let Some(room) = room {
                room.used();
            }
            flow.gate.metrics.letter_kept(name, reason);
        }
        // Whoever put it has looked again, and reconciliation does.
        Put::Already => return Ok(LetterPut::Kept(letter.id)),
        Put::Closed => return Ok(LetterPut::Closed),
    }
    // Its work may have succeeded between the look and the put; later, reconciliation sees it.
    match status::look_at(letters, &letter)
        .await
        .map(|it| it.standing)
    {
        Ok(Standing::Succeeded) => Ok(LetterPut::Closed),
        Ok(Standing::Unfinished(_) | Standing::NotRun | Standing::Unknown) | Err(_) => {
            Ok(LetterPut::Kept(letter.id))
        }
    }
}

/// Looks at the record: for its fence, and because it may have changed since the delivery was told.
async fn decide(flow: &Flow, reason: Reason) -> Result<KeepDecision, Error> {
    let Some(identity) = flow.identity() else {
        return Ok(KeepDecision::Keep(Fence(0)));
    };
    let record = flow.gate.semel.store().look(&identity.key).await?;
    let ran = flow.lease.as_ref().map(|lease| lease.fence);
    Ok(KeepDecision::of(
        reason,
        record.as_ref(),
        &identity.fingerprint,
        ran,
    ))
}

fn refused(flow: &Flow, reason: Reason) {
    let (route, letters) = (&flow.route.settings.name, &flow.route.letters);
    let limits = letters.limits();
    flow.gate.metrics.letter_refused(route, reason);
    if letters.alarms() {
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
