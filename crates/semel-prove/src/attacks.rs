//! The attacks, each a short story: new deliveries, one fault, and a sender that goes on as its broker would.

pub(crate) mod attack;
pub(crate) mod session;
pub(crate) mod baseline;
pub(crate) mod trial;
pub(crate) mod tally;
mod late;
mod repeat;
mod at_once;
mod overlap;
mod lost_answer;
mod kill_random;
mod crash_sweep;
mod pause;
mod reorder;
mod payload;
mod two_processes;

use crate::error::Error;
use crate::world::sender::AnswerFate;
use attack::Attack;
use overlap::First;
use session::Session;
use tally::Tally;

/// Makes all trials of one attack.
pub(crate) async fn run(attack: Attack, session: &mut Session<'_>) -> Result<Tally, Error> {
    session.start_attack(attack);
    let tally = match Box::pin(trials(attack, session)).await {
        Err(why @ Error::SecondProcess(_)) => Tally::not_run(why.brief()),
        other => other?,
    };
    if tally.broken.is_some() {
        return Ok(tally);
    }
    // What held when it was judged may have come undone since.
    let broken = session.look_back(attack).await?;
    Ok(Tally { broken, ..tally })
}

async fn trials(attack: Attack, session: &mut Session<'_>) -> Result<Tally, Error> {
    if attack.needs_process() && session.world.attackable().is_empty() {
        return Ok(Tally::not_run(
            "no [[process]] may be attacked: say how the handler is started",
        ));
    }
    match attack {
        Attack::Repeat => repeat::run(session).await,
        Attack::AtOnce => at_once::run(session).await,
        Attack::WhileRunning => overlap::run(session, First::Stays).await,
        Attack::AnswerLost => lost_answer::run(session, AnswerFate::Lost).await,
        Attack::AnswerCut => lost_answer::run(session, AnswerFate::Cut).await,
        Attack::DeadlinePassed => overlap::run(session, First::GivenUp).await,
        Attack::KillRandom => kill_random::run(session).await,
        Attack::CrashSweep => crash_sweep::run(session).await,
        Attack::Pause => pause::run(session).await,
        Attack::Reorder => reorder::run(session).await,
        Attack::OtherPayload => payload::other(session).await,
        Attack::BadKey => payload::bad(session).await,
        Attack::TwoProcesses => two_processes::run(session).await,
    }
}
