//! A process stands still past its lease, another one takes the delivery, and the first goes on as if nothing had been.

use super::trial::StartedTrial;
use super::{Error, Session, Trial};
use crate::scenario::SenderKind;
use crate::world::exchange::Exchange;
use crate::world::recorder::Release;
use std::net::SocketAddr;
use std::time::Duration;

/// How long the other one gets before the first goes on.
const HEAD_START: Duration = Duration::from_millis(300);
/// Longer than the lease by this much, in leases.
const PAST_LEASE: f64 = 1.1;

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let points = session.baseline.hold_points(session.options.profile);
    if points.is_empty() {
        session.explain("nothing was seen on the wire: nobody knows when to pause");
        return Ok(());
    }
    let mut nobody_else = false;
    for at in points {
        let victim = at.process();
        if !session.world.may_attack(victim) {
            continue;
        }
        let Some(other) = other(session, victim).await? else {
            nobody_else = true;
            continue;
        };
        if one(session, &at, other).await? {
            break;
        }
    }
    session.unless_hit(if session.round.tally.trials == 0 && nobody_else {
        "the receiver has no second process that could take the delivery while it stands still"
    } else {
        "no process was at work when it should have been paused"
    });
    Ok(())
}

/// Who takes the delivery while the victim stands still. None: only the victim could.
async fn other(session: &mut Session<'_>, victim: usize) -> Result<Option<SocketAddr>, Error> {
    let deliver = &session.scenario.deliver;
    // A command delivers where it will.
    let second = if deliver.sender == SenderKind::Command {
        None
    } else {
        session.world.second().await?
    };
    let receives = deliver.target.is_none() && victim == session.world.receiver;
    Ok(second.or((!receives).then_some(session.sender.target())))
}

async fn one(session: &mut Session<'_>, at: &Exchange, other: SocketAddr) -> Result<bool, Error> {
    let lease = session.scenario.deliver.lease();
    let started = Trial::begin_held(session, at).await?;
    let StartedTrial {
        mut trial,
        first,
        held,
    } = started;
    let victim = held.as_ref().unwrap_or(at).process();
    if held.is_some() {
        trial.session.world.pause(victim);
        trial.session.world.recorder.release(Release::Forward);
        tokio::time::sleep(lease.mul_f64(PAST_LEASE)).await;
    }
    let let_go = |session: &mut Session<'_>| session.world.resume(victim);
    let results = trial.send_beside(first, other, HEAD_START, let_go).await;
    trial.conclude(&results, held.is_some()).await
}
