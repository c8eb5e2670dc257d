//! Wrong protocols, each with one decision of the real one spoilt. The checker must convict them all:
//! a checker who lets one pass proves nothing.

mod record;
mod step;

use super::Settings;
use super::invariant::Invariant;
use super::protocol::Protocol;

/// A wrong protocol, and what it must be convicted of.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// What is wrong with it.
    pub name: &'static str,
    /// A world in which it shows.
    pub settings: Settings,
    /// The rule that convicts it.
    pub invariant: Invariant,
    /// Its decisions.
    pub protocol: Protocol,
}

const RETRY: Settings = Settings::RETRY.with_grants(2);
const PARK: Settings = Settings::PARK.with_grants(2);

/// All mutants, by the rule that convicts them.
pub const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "claim ignores the lease",
        settings: RETRY,
        invariant: Invariant::OneLiveLease,
        protocol: Protocol {
            decide: record::claim_ignores_the_lease,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "forget takes a live lease",
        settings: RETRY,
        invariant: Invariant::OneLiveLease,
        protocol: Protocol {
            decide: record::forget_takes_a_live_lease,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "fence from the clock alone",
        settings: RETRY,
        invariant: Invariant::FencesRise,
        protocol: Protocol {
            decide: record::fence_from_the_clock_alone,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "sweep without grace",
        settings: Settings::UNSTEADY_CLOCK,
        invariant: Invariant::FencesRise,
        protocol: Protocol {
            sweepable: record::sweep_without_grace,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "complete without fence",
        settings: RETRY,
        invariant: Invariant::StaleChangesNothing,
        protocol: Protocol {
            decide: record::complete_without_fence,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "renew without fence",
        settings: RETRY,
        invariant: Invariant::StaleChangesNothing,
        protocol: Protocol {
            decide: record::renew_without_fence,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "parking takes the fence",
        settings: PARK,
        invariant: Invariant::StaleChangesNothing,
        protocol: Protocol {
            decide: record::parking_takes_the_fence,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "lapse revokes",
        settings: RETRY,
        invariant: Invariant::StaleChangesNothing,
        protocol: Protocol {
            decide: record::lapse_revokes,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "success does not absorb",
        settings: RETRY,
        invariant: Invariant::OneCompletion,
        protocol: Protocol {
            decide: record::success_does_not_absorb,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "completion is overwritten",
        settings: RETRY,
        invariant: Invariant::OneCompletion,
        protocol: Protocol {
            decide: record::completion_is_overwritten,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "replay loses the result",
        settings: RETRY,
        invariant: Invariant::SameReplay,
        protocol: Protocol {
            decide: record::replay_loses_the_result,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "mismatch is ignored",
        settings: RETRY,
        invariant: Invariant::MismatchDisturbsNothing,
        protocol: Protocol {
            decide: record::mismatch_is_ignored,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "expires_at goes back",
        settings: RETRY,
        invariant: Invariant::RetentionOutlivesLease,
        protocol: Protocol {
            decide: record::expires_at_goes_back,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "sweep takes running",
        settings: RETRY,
        invariant: Invariant::RetentionOutlivesLease,
        protocol: Protocol {
            sweepable: record::sweep_takes_running,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "parked expires",
        settings: PARK,
        invariant: Invariant::ParkedStays,
        protocol: Protocol {
            decide: record::parked_expires,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "sweep takes parked",
        settings: PARK,
        invariant: Invariant::ParkedStays,
        protocol: Protocol {
            sweepable: record::sweep_takes_parked,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "completion is answered, not written",
        settings: RETRY,
        invariant: Invariant::GuardedOnce,
        protocol: Protocol {
            decide: record::completion_is_not_written,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "take-over gives a new born",
        settings: RETRY,
        invariant: Invariant::StepsRemembered,
        protocol: Protocol {
            decide: step::take_over_gives_a_new_born,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "take-over ends the incarnation",
        settings: RETRY,
        invariant: Invariant::StepsRemembered,
        protocol: Protocol {
            decide: step::take_over_ends_the_incarnation,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "step without born",
        settings: RETRY,
        invariant: Invariant::StepsRemembered,
        protocol: Protocol {
            step_found: step::step_of_any_incarnation,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "step done runs again",
        settings: RETRY,
        invariant: Invariant::StepsRemembered,
        protocol: Protocol {
            decide: step::step_done_runs_again,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "step in doubt runs under park",
        settings: PARK,
        invariant: Invariant::OneUnknownStart,
        protocol: Protocol {
            decide: step::step_in_doubt_runs,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "in doubt retries under park",
        settings: PARK,
        invariant: Invariant::OneUnknownStart,
        protocol: Protocol {
            decide: record::in_doubt_retries_under_park,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "lapse retries under park",
        settings: PARK,
        invariant: Invariant::OneUnknownStart,
        protocol: Protocol {
            decide: record::lapse_retries_under_park,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "attempts are not counted",
        settings: Settings::TWO_ATTEMPTS,
        invariant: Invariant::AttemptsBounded,
        protocol: Protocol {
            decide: record::attempts_are_not_counted,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "release counts as success",
        settings: RETRY,
        invariant: Invariant::SuccessHasEffect,
        protocol: Protocol {
            decide: record::release_counts_as_success,
            ..Protocol::REAL
        },
    },
    Mutant {
        name: "lapse stays busy",
        settings: RETRY,
        invariant: Invariant::NeverStuck,
        protocol: Protocol {
            decide: record::lapse_stays_busy,
            ..Protocol::REAL
        },
    },
];
