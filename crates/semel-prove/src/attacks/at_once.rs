//! The same delivery many times at once.

use super::session::Session;
use super::tally::Tally;
use super::trial::Trial;
use crate::error::Error;
use crate::options::Profile;

/// Few first: what breaks with two needs no shrinking.
const NUMBERS: [usize; 3] = [2, 16, 64];
/// What is tried again after more have broken it.
const FEWER: [usize; 6] = [2, 2, 3, 4, 8, 12];
const FULL_ROUNDS: usize = 3;

/// How the deliveries run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// All are past the first check before one has written.
    Together,
    /// As they please.
    Free,
}

pub(super) async fn run(session: &mut Session<'_>) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    let rounds = match session.options.profile {
        Profile::Quick => 1,
        Profile::Full => FULL_ROUNDS,
    };
    for number in NUMBERS {
        for round in 0..rounds {
            let start = if round == 0 {
                Start::Together
            } else {
                Start::Free
            };
            if one(session, &mut tally, number, start).await? {
                fewer(session, &mut tally, number).await?;
                return Ok(tally);
            }
        }
    }
    Ok(tally)
}

/// Looks for a conviction with fewer deliveries: it is easier to read.
async fn fewer(session: &mut Session<'_>, tally: &mut Tally, broken: usize) -> Result<(), Error> {
    for number in FEWER.into_iter().filter(|number| *number < broken) {
        if one(session, tally, number, Start::Together).await? {
            break;
        }
    }
    Ok(())
}

async fn one(
    session: &mut Session<'_>,
    tally: &mut Tally,
    number: usize,
    start: Start,
) -> Result<bool, Error> {
    let trial = Trial::begin(session).await?;
    match start {
        Start::Together => trial.session.world.recorder.race(number),
        Start::Free => {}
    }
    let results = trial.send_at_once(&vec![trial.target(); number]).await;
    trial.conclude(&results, true, tally).await
}
