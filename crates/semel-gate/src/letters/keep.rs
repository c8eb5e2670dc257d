//! Keeping a letter: the whole delivery, durable in the store before its sender hears that it may forget it.

use super::id::letter_id;
use super::status;
use super::stored::StoredDelivery;
use crate::disposition::{Disposition, NotKept, Undelivered};
use crate::flow::Flow;
use crate::letters::quota::Count;
use semel::Error;
use semel::letter::{KeepDecision, Letter, Mark, Marked, Put, Reason, Standing};
use semel::protocol::Fence;
use semel::store::StoreExt;
use std::sync::Arc;

/// What became of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetterPut {
    Kept,
    /// Nothing is kept, and nothing is lost: its work has succeeded, or an operator discarded it.
    Closed,
    NotKept(NotKept),
}

/// Letters that are put while a delivery's work is unfinished. What becomes of that work later needs no second one.
const OF_UNFINISHED: [Reason; 2] = [Reason::Running, Reason::Exhausted];

/// Keeps the whole delivery when its sender is about to forget it without success; closes what was kept of one that has
/// succeeded after all.
pub(crate) async fn keep_letter(flow: &mut Flow, disposition: Disposition) -> Disposition {
    let disposition = if flow.is_last_attempt() {
        disposition.exhausted()
    } else {
        disposition
    };
    let Disposition::Letter(why) = disposition else {
        if disposition.has_succeeded() {
            close(flow).await;
        }
        return disposition;
    };
    if flow.letter.is_some() {
        return Disposition::Letter(why);
    }
    match put(flow, why.reason(), why.why()).await {
        Ok(LetterPut::Kept | LetterPut::Closed) => Disposition::Letter(why),
        Ok(LetterPut::NotKept(not_kept)) => unkept(flow, why, not_kept),
        Err(error) => {
            let route = &flow.route.settings.name;
            tracing::warn!(route, %error, "a letter was not kept; the sender is asked to deliver again");
            unkept(flow, why, NotKept::Store)
        }
    }
}

/// Nothing is lost as long as the sender delivers it again.
fn unkept(flow: &Flow, why: Undelivered, not_kept: NotKept) -> Disposition {
    match why {
        Undelivered::Exhausted(it) => {
            let route = &flow.route.settings.name;
            tracing::error!(
                route,
                outcome = it.word(),
                ?not_kept,
                "the last attempt of a sender has not succeeded, and could not be kept as a letter: it is lost unless \
                 the sender delivers it again or keeps it itself"
            );
            *it
        }
        why @ (Undelivered::Failed(_)
        | Undelivered::FailedBefore(_)
        | Undelivered::Parked(_)
        | Undelivered::ParkedBefore
        | Undelivered::Mismatched
        | Undelivered::Invalid(_)) => Disposition::NotKept(why, not_kept),
    }
}

/// Closes the letter of a delivery whose work has succeeded. Reconciliation would do so, too, a little later.
async fn close(flow: &mut Flow) {
    let Some(id) = flow.letter.take() else {
        return;
    };
    match flow.gate.letters.mark(&id, Mark::Closed).await {
        Ok(Marked::Applied | Marked::Gone) => {
            if let Some(load) = flow.letter_load.take() {
                flow.route.letters.closed(load);
            }
        }
        Err(error) => {
            tracing::warn!(letter = %id, %error, "the letter of work that has succeeded is closed later");
        }
    }
}

/// Keeps the delivery as a letter.
pub(crate) async fn put(flow: &mut Flow, reason: Reason, why: String) -> Result<LetterPut, Error> {
    let gate = Arc::clone(&flow.gate);
    let (letters, route) = (gate.letters.as_ref(), Arc::clone(&flow.route));
    let fence = match decide(flow, reason).await? {
        KeepDecision::Keep(fence) => fence,
        KeepDecision::Succeeded => return Ok(LetterPut::Closed),
        KeepDecision::Unsettled => return Ok(LetterPut::NotKept(NotKept::Unsettled)),
    };
    let reason = kept_before(flow, reason).await?;
    let name = &route.settings.name;
    let letter = Letter {
        id: letter_id(flow, reason),
        key: flow.identity().map(|identity| identity.key),
        route: name.clone(),
        reason,
        fence,
        retention: route.settings.terms(flow.source).retention,
        redriven: false,
        delivery: StoredDelivery::of(name, &flow.request, why).encode(),
    };
    let load = Count::of(reason, letter.delivery.len() as u64);
    let room = route.letters.take(load);
    // A duplicate of what is kept already needs no room.
    if room.is_none() && letters.get(&letter.id).await?.is_none() {
        refused(flow, reason);
        return Ok(LetterPut::NotKept(NotKept::Full));
    }
    match letters.put(&letter).await? {
        Put::Applied => {
            if let Some(room) = room {
                room.used();
                flow.letter_load = Some(load);
            }
            gate.metrics.letter_kept(name, reason);
        }
        // Whoever put it has looked again, and reconciliation does.
        Put::Already => {
            flow.letter = Some(letter.id);
            return Ok(LetterPut::Kept);
        }
        // Without a fence it cannot be told from a duplicate of what was closed.
        Put::Closed if reason == Reason::Exhausted && fence == Fence(0) => {
            return Ok(LetterPut::NotKept(NotKept::Unsettled));
        }
        Put::Closed => return Ok(LetterPut::Closed),
    }
    // Its work may have succeeded between the look and the put; later, reconciliation sees it.
    match status::look_at(letters, &letter)
        .await
        .map(|it| it.standing)
    {
        Ok(Standing::Succeeded) => Ok(LetterPut::Closed),
        Ok(Standing::Unfinished(_) | Standing::NotRun | Standing::Unknown) | Err(_) => {
            flow.letter = Some(letter.id);
            Ok(LetterPut::Kept)
        }
    }
}

/// The reason under which it is kept already, while its work is unfinished; otherwise this one.
async fn kept_before(flow: &Flow, reason: Reason) -> Result<Reason, Error> {
    if !reason.is_of_own_key() {
        return Ok(reason);
    }
    for before in OF_UNFINISHED {
        let kept = before != reason
            && flow
                .gate
                .letters
                .get(&letter_id(flow, before))
                .await?
                .is_some();
        if kept {
            return Ok(before);
        }
    }
    Ok(reason)
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
