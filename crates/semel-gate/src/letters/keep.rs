//! Keeping a letter: the whole delivery, durable in the store before its sender may forget it.

use super::id::letter_id;
use super::stored::StoredDelivery;
use super::unfinished::Moment;
use super::{reconcile, status};
use crate::disposition::{Disposition, NotKept, Undelivered};
use crate::flow::Flow;
use crate::letters::quota::Count;
use crate::settings::OnExhausted;
use semel::Error;
use semel::letter::{Attempt, KeepDecision, Letter, Mark, Marked, Put, Reason, Standing};
use semel::protocol::Fence;
use semel::store::StoreExt;
use std::sync::Arc;

/// The outcome of keeping a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetterPut {
    Kept,
    /// Kept, because this may be the last attempt; the sender must deliver again while it does, because the key's own work is
    /// not decided.
    KeptUnsettled,
    /// Nothing is kept, and nothing is lost: its work has succeeded, or an operator discarded it.
    Closed,
    NotKept(NotKept),
}

/// A decision to keep a letter.
struct Keep {
    reason: Reason,
    fence: Fence,
    unsettled: bool,
}

/// The reason for which work is not kept that could not be named for want of memory.
pub(crate) const MEMORY: &str = "Memory";

/// Keeps the whole delivery when its sender is about to forget it without success, or may not deliver it again; closes the
/// letter of work that has succeeded.
pub(crate) async fn keep_letter(flow: &mut Flow, disposition: Disposition) -> Disposition {
    if disposition.has_succeeded() {
        close(flow).await;
        return disposition;
    }
    if let Disposition::Letter(why) = disposition {
        return give_up(flow, why).await;
    }
    // Its work is not known: a letter could not tell it from work that has run.
    if matches!(disposition, Disposition::NoRoom) {
        unkept(flow, disposition.word(), MEMORY);
    }
    match disposition.moment() {
        Some(moment) if flow.needs_letter(moment) => {
            keep_unfinished(flow, disposition, moment).await
        }
        Some(_) | None => disposition,
    }
}

/// Keeps a delivery that is acknowledged without success.
async fn give_up(flow: &mut Flow, why: Undelivered) -> Disposition {
    if flow.letter.is_some() {
        alarm(flow).await;
        return Disposition::Letter(why);
    }
    let is_last = flow.is_last_attempt();
    if why == Undelivered::Mismatched && !is_last {
        recall(flow, Reason::Mismatched);
        if flow.letter.is_some() {
            return Disposition::NotKept(why, NotKept::Unsettled);
        }
    }
    let put = put(flow, why.reason(), why.why()).await;
    if why.reason().is_of_own_key() && flow.letter == Some(letter_id(flow, Reason::Unfinished)) {
        alarm(flow).await;
    }
    match told(flow, put) {
        LetterPut::Kept | LetterPut::Closed => Disposition::Letter(why),
        LetterPut::KeptUnsettled => match flow.route.settings.on_exhausted {
            OnExhausted::Letter if is_last => Disposition::Letter(why),
            OnExhausted::Letter | OnExhausted::Nack => {
                Disposition::NotKept(why, NotKept::Unsettled)
            }
        },
        LetterPut::NotKept(not_kept) => {
            unkept(flow, why.word(), not_kept.word());
            Disposition::NotKept(why, not_kept)
        }
    }
}

/// Keeps a delivery whose sender may give up before its work has succeeded. The sender receives the truth, unless this is known
/// to be its last attempt.
async fn keep_unfinished(flow: &mut Flow, unfinished: Disposition, moment: Moment) -> Disposition {
    let exhausts = flow.is_last_attempt() && unfinished.is_retried();
    let (reason, why) = match &flow.identity {
        Ok(_) => (Reason::Unfinished, moment.why().to_owned()),
        Err(error) => (Reason::Invalid, error.to_string()),
    };
    // An operator may have discarded a letter that is known here, so the last attempt asks the store. So does one that ran:
    // the letter gets the fence of its run, and is never taken for work that did not run.
    if flow.lease.is_none() && !flow.is_last_attempt() {
        recall(flow, Reason::Unfinished);
    }
    let put = if flow.letter.is_some() {
        LetterPut::Kept
    } else {
        let put = put(flow, reason, why).await;
        told(flow, put)
    };
    if let LetterPut::NotKept(not_kept) = put {
        unkept(flow, unfinished.word(), not_kept.word());
        return if exhausts && !flow.source.shows_status() {
            Disposition::NotKept(Undelivered::Exhausted(Box::new(unfinished)), not_kept)
        } else {
            unfinished
        };
    }
    if moment == Moment::Ended {
        retain(flow).await;
    }
    // A live run may yet succeed; the keeper alerts if it does not.
    let runs = moment == Moment::StillRunning || matches!(unfinished, Disposition::Busy { .. });
    if flow.is_last_attempt() && !runs {
        alarm(flow).await;
    }
    match flow.route.settings.on_exhausted {
        OnExhausted::Letter if exhausts => {
            Disposition::Letter(Undelivered::Exhausted(Box::new(unfinished)))
        }
        OnExhausted::Letter | OnExhausted::Nack => unfinished,
    }
}

/// Keeps the delivery of a run that is about to be sent, under the run's own fence.
pub(crate) async fn keep_before_run(flow: &mut Flow, fence: Fence) -> Result<LetterPut, Error> {
    let keep = Keep {
        reason: Reason::Unfinished,
        fence,
        unsettled: false,
    };
    store(flow, keep, Moment::BeforeRun.why().into()).await
}

/// Keeps the record of a run that ended without success from expiring before the keeper sees its letter.
async fn retain(flow: &Flow) {
    let Some(lease) = &flow.lease else {
        return;
    };
    let (route, retention) = (&flow.route.settings, reconcile::retention(&flow.route));
    if route.terms(flow.source).retention >= retention {
        return;
    }
    if let Err(error) = flow.gate.letters.retain(&lease.key, retention).await {
        tracing::warn!(route = route.name, %error, "record of a letter's work not retained; the keeper tries again");
    }
}

/// Finds the letter of its work among those that are known to be open.
fn recall(flow: &mut Flow, reason: Reason) {
    let open = &flow.route.open_letters;
    if flow.letter.is_none() && flow.identity.is_ok() && !open.is_empty() {
        let id = letter_id(flow, reason);
        flow.letter = open.has(&id).then_some(id);
    }
}

/// A store that does not answer keeps nothing.
fn told(flow: &Flow, put: Result<LetterPut, Error>) -> LetterPut {
    put.unwrap_or_else(|error| {
        let route = &flow.route.settings.name;
        tracing::warn!(route, %error, "letter not kept; the sender is asked to deliver again");
        LetterPut::NotKept(NotKept::Store)
    })
}

/// Counts work that may be lost: no letter holds it, and its sender may not deliver it again.
fn unkept(flow: &Flow, outcome: &'static str, not_kept: &'static str) {
    if flow.attempt() == Attempt::MayBeLast && flow.source.is_broker() {
        flow.route.unkept(&flow.gate.metrics, outcome, not_kept);
    }
}

/// Alerts an operator, once per letter: no further delivery of its work is expected.
async fn alarm(flow: &Flow) {
    let Some(id) = flow.letter else {
        return;
    };
    let (route, letters) = (&flow.route, &flow.gate.letters);
    let noted = async {
        match letters.get(&id).await? {
            Some(letter) if !letter.alarmed => letters.mark(&id, Mark::Alarmed).await,
            Some(_) | None => Ok(Marked::Gone),
        }
    };
    match noted.await {
        Ok(Marked::Applied) => {
            let key = flow.identity().map(|identity| identity.key);
            route.alarmed(&flow.gate.metrics, &id, key);
        }
        Ok(Marked::Gone) => {}
        Err(error) => {
            tracing::warn!(route = route.settings.name, letter = %id, %error, "alarm not noted on a letter; it is raised later");
        }
    }
}

/// Closes the letter of a delivery whose work has succeeded. Reconciliation would do so, too, a little later.
async fn close(flow: &mut Flow) {
    recall(flow, Reason::Unfinished);
    let Some(id) = flow.letter.take() else {
        return;
    };
    match flow.gate.letters.mark(&id, Mark::Closed).await {
        Ok(Marked::Applied | Marked::Gone) => {
            flow.route.open_letters.drop(&id);
            if let Some(load) = flow.letter_load.take() {
                flow.route.letters.closed(load);
            }
        }
        Err(error) => {
            tracing::warn!(letter = %id, %error, "letter of work that has succeeded not closed; it is closed later");
        }
    }
}

/// Keeps the delivery as a letter, if the record of its key allows.
pub(crate) async fn put(flow: &mut Flow, reason: Reason, why: String) -> Result<LetterPut, Error> {
    match decide(flow, reason).await? {
        Ok(keep) => store(flow, keep, why).await,
        Err(put) => Ok(put),
    }
}

async fn store(flow: &mut Flow, keep: Keep, why: String) -> Result<LetterPut, Error> {
    let gate = Arc::clone(&flow.gate);
    let (letters, route) = (gate.letters.as_ref(), Arc::clone(&flow.route));
    let reason = kept_before(flow, keep.reason).await?;
    let name = &route.settings.name;
    let letter = Letter {
        id: letter_id(flow, reason),
        key: flow.identity().map(|identity| identity.key),
        route: name.clone(),
        reason,
        fence: keep.fence,
        retention: route.settings.terms(flow.source).retention,
        redriven: false,
        alarmed: false,
        delivery: StoredDelivery::of(name, &flow.request, why).encode(),
    };
    let load = Count::of(reason, letter.delivery.len() as u64);
    let room = route.letters.take(load, flow.attempt());
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
            gate.metrics.letters.kept(name, reason);
        }
        Put::Already => {}
        // Without a fence it cannot be told from a duplicate of what was closed.
        Put::Closed if reason == Reason::Unfinished && keep.fence == Fence(0) => {
            return Ok(LetterPut::NotKept(NotKept::Unsettled));
        }
        Put::Closed => {
            route.open_letters.drop(&letter.id);
            return Ok(LetterPut::Closed);
        }
    }
    if succeeded_meanwhile(flow, &letter).await {
        return Ok(LetterPut::Closed);
    }
    flow.letter = Some(letter.id);
    if reason == Reason::Unfinished || keep.unsettled {
        route.open_letters.note(letter.id);
    }
    if keep.unsettled {
        return Ok(LetterPut::KeptUnsettled);
    }
    Ok(LetterPut::Kept)
}

/// Its work may have succeeded between the look and the put; later, reconciliation sees it. While its own run has not ended, no
/// other can have.
async fn succeeded_meanwhile(flow: &Flow, letter: &Letter) -> bool {
    let runs = flow
        .lease
        .as_ref()
        .is_some_and(|lease| lease.fence == letter.fence);
    if runs && letter.reason == Reason::Unfinished {
        return false;
    }
    let status = status::look_at(flow.gate.letters.as_ref(), letter).await;
    matches!(status, Ok(status) if status.standing == Standing::Succeeded)
}

/// The reason under which its work is kept already, if it is; otherwise this one.
async fn kept_before(flow: &Flow, reason: Reason) -> Result<Reason, Error> {
    if !reason.is_of_own_key() || reason == Reason::Unfinished {
        return Ok(reason);
    }
    let unfinished = letter_id(flow, Reason::Unfinished);
    let kept = flow.gate.letters.get(&unfinished).await?.is_some();
    Ok(if kept { Reason::Unfinished } else { reason })
}

/// Looks at the record: for its fence, and because it may have changed since the delivery was decided.
async fn decide(flow: &Flow, reason: Reason) -> Result<Result<Keep, LetterPut>, Error> {
    let keep = |reason, fence, unsettled| {
        Ok(Ok(Keep {
            reason,
            fence,
            unsettled,
        }))
    };
    let Some(identity) = flow.identity() else {
        return keep(reason, Fence(0), false);
    };
    let record = flow.gate.semel.store().look(&identity.key).await?;
    let ran = flow.lease.as_ref().map(|lease| lease.fence);
    let of =
        |attempt| KeepDecision::of(reason, record.as_ref(), &identity.fingerprint, ran, attempt);
    // Unsettled work is refused, and its sender keeps it: from some attempt or age on, a letter does, too.
    let decided = match of(Attempt::OneOfMany) {
        KeepDecision::Unsettled if flow.needs_letter(Moment::Refused) => {
            (of(Attempt::MayBeLast), true)
        }
        decision @ (KeepDecision::Keep(..) | KeepDecision::Succeeded | KeepDecision::Unsettled) => {
            (decision, false)
        }
    };
    match decided {
        (KeepDecision::Keep(reason, fence), unsettled) => keep(reason, fence, unsettled),
        (KeepDecision::Succeeded, _) => Ok(Err(LetterPut::Closed)),
        (KeepDecision::Unsettled, _) => Ok(Err(LetterPut::NotKept(NotKept::Unsettled))),
    }
}

fn refused(flow: &Flow, reason: Reason) {
    let (route, letters) = (&flow.route.settings.name, &flow.route.letters);
    let limits = letters.limits();
    flow.gate.metrics.letters.refused(route, reason);
    if letters.alarms() {
        tracing::error!(
            route,
            reason = reason.word(),
            letters_max = limits.count_max,
            letters_bytes_max = limits.bytes_max,
            "the route's letters are full: work is not kept, and is lost if its sender does not deliver it again \
             (semel_work_unkept_total); redrive or discard \
             letters (`semel letters list`), or raise `letters_max` and `letters_bytes_max`"
        );
    }
}
