//! A process stands still past its lease, another one takes the delivery, and the first goes on as if nothing had been.

use super::{Tally, no_process};
use crate::attacks::crash_sweep::waits;
use crate::attacks::session::{Begun, Session};
use crate::error::Error;
use crate::scenario::SenderKind;
use crate::world::exchange::Exchange;
use crate::world::recorder::Release;
use std::net::SocketAddr;
use std::time::Duration;

/// How long the other one gets before the first goes on.
const HEAD_START: Duration = Duration::from_millis(300);

pub(super) async fn make(session: &mut Session<'_>) -> Result<Tally, Error> {
    if let Some(why) = no_process(session) {
        return Ok(Tally::not_run(why));
    }
    let mut tally = Tally::default();
    let waits = waits(&session.baseline, session.profile);
    if waits.is_empty() {
        return Ok(Tally::not_run(
            "nothing was seen on the wire: nobody knows when to pause",
        ));
    }
    let mut nobody_else = false;
    for at in waits {
        let victim = at.boundary.signature.process;
        if !session.world.may_attack(victim) {
            continue;
        }
        let Some(other) = other(session, victim).await? else {
            nobody_else = true;
            continue;
        };
        if one(session, &mut tally, &at, other).await? {
            break;
        }
    }
    if tally.trials == 0 && nobody_else {
        return Ok(Tally::not_run(
            "the receiver has no second process that could take the delivery while it stands still",
        ));
    }
    if tally.hits == 0 {
        tally.why = Some("no process was at work when it should have been paused".to_owned());
    }
    Ok(tally)
}

/// Who takes the delivery while the victim stands still. None: only the victim could.
async fn other(session: &mut Session<'_>, victim: usize) -> Result<Option<SocketAddr>, Error> {
    let scenario = session.scenario;
    let deliver = &scenario.deliver;
    let second = match deliver.sender {
        SenderKind::CloudTasks
        | SenderKind::Pubsub
        | SenderKind::Cloudevents
        | SenderKind::Http => session.world.second().await?,
        // It delivers where it will.
        SenderKind::Command => None,
    };
    let receives = deliver.target.is_none() && victim == session.world.receiver;
    let first = (!receives).then_some(session.target());
    Ok(second.and_then(|at| session.world.address(at)).or(first))
}

async fn one(
    session: &mut Session<'_>,
    tally: &mut Tally,
    at: &Exchange,
    other: SocketAddr,
) -> Result<bool, Error> {
    let scenario = session.scenario;
    let Begun {
        delivery,
        first,
        held,
    } = session.begin_held(at).await?;
    let hit = held.is_some();
    let victim = held.as_ref().unwrap_or(at).boundary.signature.process;
    if hit {
        session.world.pause(victim);
        session.recorder().release(Release::Forward);
        tokio::time::sleep(Duration::from_millis(scenario.deliver.lease_ms).mul_f64(1.1)).await;
    }
    let mut second = session.sender.spawn(&delivery, other);
    let early = tokio::time::timeout(HEAD_START, &mut second).await;
    session.world.resume(victim);
    let mut known: Vec<_> = match early {
        Ok(ended) => ended.into_iter().collect(),
        Err(_) => second.await.into_iter().collect(),
    };
    known.extend(first.await);
    session.until_settled(&delivery, &known).await?;
    let finding = session.finish(&[&delivery]).await?;
    Ok(tally.add(finding, hit))
}
