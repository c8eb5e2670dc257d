//! The attacks, each a short story: new deliveries, one fault, and a sender that goes on as its broker would.

pub(crate) mod attack;
mod need;
pub(crate) mod session;
pub(crate) mod baseline;
pub(crate) mod trial;
pub(crate) mod tally;
mod late;
mod repeat;
mod at_once;
mod overlap;
mod others_between;
mod republish;
mod lost_answer;
mod dependency_fails;
mod kill_random;
mod kill_after_answer;
mod crash_sweep;
mod pause;
mod reorder;
mod other_payload;
mod bad_key;
mod two_processes;
mod repeat_late;

use crate::error::Error;
use attack::{Attack, Definition};
use session::Session;
use tally::Tally;
use trial::Trial;

/// Makes all trials of one attack.
pub(crate) async fn run(attack: Attack, session: &mut Session<'_>) -> Result<Tally, Error> {
    session.start_attack(attack);
    let Definition { needs, run, .. } = attack.definition();
    let missing = needs.iter().find_map(|need| need.missing(session));
    if let Some(why) = missing {
        return Ok(Tally::not_run(why));
    }
    match run(session).await {
        Err(why @ Error::SecondProcess(_)) => return Ok(Tally::not_run(why.brief())),
        ran => ran?,
    }
    let mut tally = std::mem::take(&mut session.round.tally);
    if tally.broken.is_none() {
        // What held when it was judged may have come undone since.
        tally.broken = session.look_back(attack).await?;
    }
    Ok(tally)
}
