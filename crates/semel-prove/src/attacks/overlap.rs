//! The same delivery again while the first is still at work, kept there by an answer that a proxy holds back.

use super::Tally;
use crate::attacks::crash_sweep::waits;
use crate::attacks::session::{QUIET, Session};
use crate::error::Error;
use crate::world::exchange::Exchange;
use crate::world::recorder::Release;
use crate::world::sender::{AttemptResult, Delivery};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long the first is kept waiting unless the second has ended before.
const OVERLAP: Duration = Duration::from_millis(150);
const _: () = assert!(
    OVERLAP.as_millis() < QUIET.as_millis(),
    "what the first still does is not to be missed"
);

/// How often to try by the clock alone.
const BLIND_TRIALS: u32 = 4;

/// What becomes of the first attempt when the second is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Its sender still waits.
    Stays,
    /// Its sender has hung up: the deadline passed.
    GivenUp,
}

pub(super) async fn make(session: &mut Session<'_>, first: First) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    for at in waits(&session.baseline, session.profile) {
        if one(session, &mut tally, Some(&at), first).await? {
            return Ok(tally);
        }
    }
    while tally.hits == 0 && tally.trials < BLIND_TRIALS {
        if one(session, &mut tally, None, first).await? {
            return Ok(tally);
        }
    }
    if tally.hits == 0 {
        tally.why =
            Some("the first attempt was always answered before it could be disturbed".to_owned());
    }
    Ok(tally)
}

async fn one(
    session: &mut Session<'_>,
    tally: &mut Tally,
    at: Option<&Exchange>,
    then: First,
) -> Result<bool, Error> {
    let (delivery, first, hit) = match at {
        Some(at) => {
            let begun = session.begin_held(at).await?;
            (begun.delivery, begun.first, begun.held.is_some())
        }
        None => early(session, tally.trials).await?,
    };
    if then == First::GivenUp {
        first.abort();
    }
    let mut second = session.sender.spawn(&delivery, session.target());
    let soon = tokio::time::timeout(OVERLAP, &mut second).await;
    session.recorder().release(Release::Forward);
    let mut known: Vec<_> = match soon {
        Ok(ended) => ended.into_iter().collect(),
        Err(_) => second.await.into_iter().collect(),
    };
    known.extend(first.await);
    session.until_settled(&delivery, &known).await?;
    let finding = session.finish(&[&delivery]).await?;
    Ok(tally.add(finding, hit))
}

/// Where nothing is seen on the wire, the clock must do; earlier each time.
async fn early(
    session: &mut Session<'_>,
    misses: u32,
) -> Result<(Delivery, JoinHandle<AttemptResult>, bool), Error> {
    let delivery = session.begin().await?;
    let first = session.sender.spawn(&delivery, session.target());
    tokio::time::sleep(session.baseline.answered / (2 << misses)).await;
    let hit = !first.is_finished();
    Ok((delivery, first, hit))
}
