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

use crate::attacks::session::{Field, Finding};
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
pub(crate) async fn make(attack: Attack, field: &mut Field<'_>) -> Result<Tally, Error> {
    match attack {
        Attack::Repeat => repeat::make(field).await,
        Attack::AtOnce => at_once::make(field).await,
        Attack::WhileRunning => overlap::make(field, overlap::First::Stays).await,
        Attack::AnswerLost => lost_answer::lost(field).await,
        Attack::AnswerCut => lost_answer::cut(field).await,
        Attack::DeadlinePassed => overlap::make(field, overlap::First::GivenUp).await,
        Attack::KillRandom => kill_random::make(field).await,
        Attack::CrashSweep => crash_sweep::make(field).await,
        Attack::Pause => pause::make(field).await,
        Attack::Reorder => reorder::make(field).await,
        Attack::OtherPayload => payload::other(field).await,
        Attack::BadKey => payload::bad(field).await,
        Attack::TwoProcesses => two_processes::make(field).await,
    }
}

/// Why processes cannot be attacked, if they cannot.
pub(crate) fn no_process(field: &Field<'_>) -> Option<String> {
    if field.world.attackable().is_empty() {
        return Some("no [[process]] may be attacked: say how the handler is started".to_owned());
    }
    None
}
