//! The same delivery many times at once.

use super::trial::StartedTrial;
use super::{Error, Session, Trial};
use crate::options::Profile;
use crate::world::recorder::Release;
use std::time::Duration;

/// Few first: what breaks with two needs no shrinking.
const NUMBERS: [usize; 3] = [2, 16, 64];
/// What is tried again after more have broken it: a conviction with fewer deliveries is easier to read.
const FEWER: [usize; 6] = [2, 2, 3, 4, 8, 12];
/// A handler that does one thing at a time is not waited for.
const HEAD_START: Duration = Duration::from_millis(500);

/// How the deliveries run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// All are past the first check before one has written.
    Together,
    /// One is held before it has asked anything, until another one has done all its work.
    InTurn,
    /// As they please.
    Free,
}

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    for number in NUMBERS {
        for start in starts(session.options.profile, number) {
            if one(session, number, *start).await? {
                return fewer(session, number).await;
            }
        }
    }
    Ok(())
}

/// Each number is tried once in each of these ways.
fn starts(profile: Profile, number: usize) -> &'static [Start] {
    match (profile, number) {
        (Profile::Quick, 2) => &[Start::Together, Start::InTurn],
        (Profile::Quick, _) => &[Start::Together],
        (Profile::Full, 2) => &[Start::Together, Start::InTurn, Start::Free, Start::Free],
        (Profile::Full, _) => &[Start::Together, Start::Free, Start::Free],
    }
}

/// The smallest number that still breaks: few first, then by halves.
async fn fewer(session: &mut Session<'_>, mut breaks: usize) -> Result<(), Error> {
    let mut holds = 1;
    for number in FEWER.into_iter().filter(|number| *number < breaks) {
        if one(session, number, Start::Together).await? {
            breaks = number;
            break;
        }
        holds = number;
    }
    while breaks - holds > 1 {
        let number = holds.midpoint(breaks);
        if one(session, number, Start::Together).await? {
            breaks = number;
        } else {
            holds = number;
        }
    }
    Ok(())
}

async fn one(session: &mut Session<'_>, number: usize, start: Start) -> Result<bool, Error> {
    if start == Start::InTurn {
        return in_turn(session).await;
    }
    let trial = Trial::begin(session).await?;
    if start == Start::Together {
        trial.session.world.recorder.race(number);
    }
    let results = trial.send_at_once(&vec![trial.target(); number]).await;
    trial.conclude(&results, true).await
}

async fn in_turn(session: &mut Session<'_>) -> Result<bool, Error> {
    let Some(first_request) = session.baseline.requests().next().cloned() else {
        return Ok(false);
    };
    let started = Trial::begin_held(session, &first_request).await?;
    let StartedTrial {
        mut trial,
        first,
        held,
    } = started;
    let let_go = |session: &mut Session<'_>| session.world.recorder.release(Release::Forward);
    let to = trial.target();
    let results = trial.send_beside(first, to, HEAD_START, let_go).await;
    trial.conclude(&results, held.is_some()).await
}
