//! The attacks, each a short story: new deliveries, one fault, and a sender that goes on as its broker would.

pub(crate) mod attack;
pub(crate) mod session;
pub(crate) mod baseline;
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

use crate::attacks::session::{Finding, Session};
use crate::error::Error;
use crate::judge::verdict::Attack;

/// All attacks, in the order they are made: the cheapest first.
pub(crate) const ALL: [Attack; 13] = [
    Attack::Repeat,
    Attack::AtOnce,
    Attack::WhileRunning,
    Attack::AnswerLost,
    Attack::AnswerCut,
    Attack::DeadlinePassed,
    Attack::KillRandom,
    Attack::CrashSweep,
    Attack::Pause,
    Attack::Reorder,
    Attack::OtherPayload,
    Attack::BadKey,
    Attack::TwoProcesses,
];

/// What came of an attack.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) trials: u32,
    pub(crate) hits: u32,
    pub(crate) broken: Option<Finding>,
    /// Why the attack cannot be made, or never hit.
    pub(crate) why: Option<String>,
}

// === impl Tally ===

impl Tally {
    /// It cannot be made.
    pub(crate) fn not_run(why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..Self::default()
        }
    }

    /// One more trial. Whether the attack is over: one conviction is enough.
    pub(crate) fn add(&mut self, finding: Finding, hit: bool) -> bool {
        self.trials += 1;
        self.hits += u32::from(hit);
        if finding.breach.is_some() {
            self.broken = Some(finding);
        }
        self.broken.is_some()
    }
}

/// Makes one attack.
pub(crate) async fn make(attack: Attack, session: &mut Session<'_>) -> Result<Tally, Error> {
    match attack {
        Attack::Repeat => repeat::make(session).await,
        Attack::AtOnce => at_once::make(session).await,
        Attack::WhileRunning => overlap::make(session, overlap::First::Stays).await,
        Attack::AnswerLost => lost_answer::lost(session).await,
        Attack::AnswerCut => lost_answer::cut(session).await,
        Attack::DeadlinePassed => overlap::make(session, overlap::First::GivenUp).await,
        Attack::KillRandom => kill_random::make(session).await,
        Attack::CrashSweep => crash_sweep::make(session).await,
        Attack::Pause => pause::make(session).await,
        Attack::Reorder => reorder::make(session).await,
        Attack::OtherPayload => payload::other(session).await,
        Attack::BadKey => payload::bad(session).await,
        Attack::TwoProcesses => two_processes::make(session).await,
    }
}

/// Why processes cannot be attacked, if they cannot.
pub(crate) fn no_process(session: &Session<'_>) -> Option<String> {
    if session.world.attackable().is_empty() {
        return Some("no [[process]] may be attacked: say how the handler is started".to_owned());
    }
    None
}
