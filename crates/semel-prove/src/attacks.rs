//! The attacks, each a short story: new deliveries, one fault, and a sender that goes on as its broker would.

mod repeat;
mod at_once;
mod overlap;
mod answer;
mod kill;
mod pause;
mod order;
mod payload;
mod two;

use crate::cannot::CannotJudge;
use crate::field::{Field, Finding};
use crate::sweep;
use crate::verdict::Attack;

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
pub(crate) async fn make(attack: Attack, field: &mut Field<'_>) -> Result<Tally, CannotJudge> {
    match attack {
        Attack::Repeat => repeat::make(field).await,
        Attack::AtOnce => at_once::make(field).await,
        Attack::WhileRunning => overlap::make(field, overlap::First::Stays).await,
        Attack::AnswerLost => answer::lost(field).await,
        Attack::AnswerCut => answer::cut(field).await,
        Attack::DeadlinePassed => overlap::make(field, overlap::First::GivenUp).await,
        Attack::KillRandom => kill::make(field).await,
        Attack::CrashSweep => sweep::make(field).await,
        Attack::Pause => pause::make(field).await,
        Attack::Reorder => order::make(field).await,
        Attack::OtherPayload => payload::other(field).await,
        Attack::BadKey => payload::bad(field).await,
        Attack::TwoProcesses => two::make(field).await,
    }
}

/// Why processes cannot be attacked, if they cannot.
pub(crate) fn no_process(field: &Field<'_>) -> Option<String> {
    if field.world.attackable().is_empty() {
        return Some("no [[process]] may be attacked: say how the handler is started".to_owned());
    }
    None
}
