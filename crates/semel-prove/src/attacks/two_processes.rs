//! Two processes of the handler: one after the other, and both at once.

use super::{Tally, no_process};
use crate::attacks::session::Session;
use crate::error::Error;
use crate::scenario::SenderKind;
use std::net::SocketAddr;

/// As many for each process at once.
const AT_ONCE: [usize; 2] = [1, 4];

pub(super) async fn make(session: &mut Session<'_>) -> Result<Tally, Error> {
    if let Some(why) = no_process(session) {
        return Ok(Tally::not_run(why));
    }
    let scenario = session.scenario;
    if scenario.deliver.sender == SenderKind::Command {
        return Ok(Tally::not_run(
            "a command delivers where it will: it cannot be told to deliver to a second process",
        ));
    }
    if scenario.deliver.target.is_some() {
        return Ok(Tally::not_run(
            "the handler runs elsewhere: a second process of it cannot be started",
        ));
    }
    let other = session
        .world
        .second()
        .await?
        .and_then(|at| session.world.address(at));
    let Some(other) = other else {
        return Ok(Tally::not_run(
            "the receiver keeps things in a directory of its own, or has no port: two of it would be two handlers",
        ));
    };
    let mut tally = Tally::default();
    if in_turn(session, &mut tally, other).await? {
        return Ok(tally);
    }
    for number in AT_ONCE {
        if together(session, &mut tally, other, number).await? {
            break;
        }
    }
    Ok(tally)
}

async fn in_turn(
    session: &mut Session<'_>,
    tally: &mut Tally,
    other: SocketAddr,
) -> Result<bool, Error> {
    let delivery = session.begin().await?;
    session.until_accepted(&delivery).await?;
    session.again(&delivery, other).await?;
    let finding = session.finish(&[&delivery]).await?;
    Ok(tally.add(finding, true))
}

async fn together(
    session: &mut Session<'_>,
    tally: &mut Tally,
    other: SocketAddr,
    number: usize,
) -> Result<bool, Error> {
    let delivery = session.begin().await?;
    session.recorder().race(2 * number);
    let sent: Vec<_> = (0..number)
        .flat_map(|_| [session.target(), other])
        .map(|to| session.sender.spawn(&delivery, to))
        .collect();
    let mut known = Vec::new();
    for one in sent {
        known.extend(one.await);
    }
    session.until_settled(&delivery, &known).await?;
    let finding = session.finish(&[&delivery]).await?;
    Ok(tally.add(finding, true))
}
