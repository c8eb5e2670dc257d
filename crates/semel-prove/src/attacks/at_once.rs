//! The same delivery many times at once.

use super::{Error, Session, Trial};

/// Few first: what breaks with two needs no shrinking.
const NUMBERS: [usize; 3] = [2, 16, 64];
/// What is tried again after more have broken it: a conviction with fewer deliveries is easier to read.
const FEWER: [usize; 6] = [2, 2, 3, 4, 8, 12];
/// Each number is tried once in each of these ways.
const QUICK: &[Start] = &[Start::Together];
const FULL: &[Start] = &[Start::Together, Start::Free, Start::Free];

/// How the deliveries run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// All are past the first check before one has written.
    Together,
    /// As they please.
    Free,
}

pub(super) async fn run(session: &mut Session<'_>) -> Result<(), Error> {
    let starts = session.options.profile.pick(QUICK, FULL);
    for number in NUMBERS {
        for start in starts {
            if one(session, number, *start).await? {
                return fewer(session, number).await;
            }
        }
    }
    Ok(())
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
    let trial = Trial::begin(session).await?;
    if start == Start::Together {
        trial.session.world.recorder.race(number);
    }
    let results = trial.send_at_once(&vec![trial.target(); number]).await;
    trial.conclude(&results, true).await
}
