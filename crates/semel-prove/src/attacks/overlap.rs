//! The same delivery again while the first is still at work, kept there by an answer that a proxy holds back.

use super::session::QUIET;
use super::trial::{StartedTrial, exactly};
use super::{Error, Session, Trial};
use crate::world::exchange::Exchange;
use crate::world::recorder::Release;
use std::time::Duration;

/// How long the first is kept waiting unless the second has ended before.
const OVERLAP: Duration = Duration::from_millis(150);
const _: () = assert!(
    OVERLAP.as_millis() < QUIET.as_millis(),
    "what the first still does is not to be missed"
);

/// How often to try by the clock alone, and after how many of them to begin anew.
const BLIND_TRIALS: u32 = 12;
const BLIND_MOMENTS: u32 = 6;

/// What becomes of the first attempt when the second is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Its sender still waits.
    Stays,
    /// Its sender has hung up: the deadline passed.
    GivenUp,
}

pub(super) async fn run(session: &mut Session<'_>, first: First) -> Result<(), Error> {
    for at in session.baseline.hold_points(session.options.profile) {
        if one(session, Some(&at), first).await? {
            return Ok(());
        }
    }
    while session.round.tally.hits == 0 && session.round.tally.trials < BLIND_TRIALS {
        if one(session, None, first).await? {
            return Ok(());
        }
    }
    session.unless_hit("the first attempt was always answered before it could be disturbed");
    Ok(())
}

async fn one(session: &mut Session<'_>, at: Option<&Exchange>, then: First) -> Result<bool, Error> {
    let (started, hit) = match at {
        Some(at) => {
            let started = Trial::begin_held(session, at).await?;
            let hit = started.held.is_some();
            (started, hit)
        }
        None => early(session).await?,
    };
    let StartedTrial {
        mut trial, first, ..
    } = started;
    if then == First::GivenUp {
        first.abort();
    }
    let let_go = |session: &mut Session<'_>| session.world.recorder.release(Release::Forward);
    let to = trial.target();
    let results = trial.send_beside(first, to, OVERLAP, let_go).await;
    trial.conclude(&results, hit).await
}

/// Where nothing is seen on the wire, the clock must do; earlier each time. Whether the first attempt is still at work.
async fn early<'s, 'a>(
    session: &'s mut Session<'a>,
) -> Result<(StartedTrial<'s, 'a>, bool), Error> {
    let moment = session.baseline.answered / (2 << (session.round.tally.trials % BLIND_MOMENTS));
    let trial = Trial::begin(session).await?;
    let first = trial.spawn(trial.target());
    exactly(moment).await;
    let hit = !first.is_finished();
    Ok((trial.started(first, None), hit))
}
