//! Everything that can be wrong with a store, one thing at a time.
//!
//! A fault changes what a decision is shown, what is written after it, or whose word it is; the
//! store around it is sound.

use semel::Fingerprint;
use semel::clock::Time;
use semel::record::{
    Claim, Claimed, Fence, Held, InDoubt, Lease, Record, Resolution, State, StepBegun,
};

/// Names each fault once, so that none is left out of the trial.
macro_rules! faults {
    ($($fault:ident),+ $(,)?) => {
        /// What is wrong with a store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Fault {
            /// It is sound.
            Nothing,
            $($fault),+
        }

        pub(crate) const ALL: &[Fault] = &[$(Fault::$fault),+];
    };
}

faults![
    NoFenceCheck,
    NoOwnerCheck,
    StepsOfAnyRun,
    IgnoresTheLease,
    LapseRevokes,
    RenewalShortens,
    RetentionShorterThanTheLease,
    ExpiryMovesBack,
    NeverExpires,
    SweepsRunning,
    SweepsParked,
    CompletesInAnyState,
    SuccessDoesNotAbsorb,
    FailureDoesNotAbsorb,
    LostAnswerRunsAgain,
    LostAnswerIsBusy,
    RepeatedWordIsStale,
    SettledIsStale,
    DelayIgnored,
    ReleaseCountsTheAttempt,
    PayloadIgnored,
    MismatchEndsTheLease,
    ParkedLapses,
    ParkedExpires,
    ParkedForgetsItsRun,
    LapseRunsAgainUnderPark,
    AttemptsWithoutLimit,
    TakeOverIsBornAnew,
    FencesStartAnew,
    ForgetRemovesTheRecord,
    ForgetsLiveLeases,
    RedriveKeepsTheFence,
    OperatorsReleaseKeepsTheFence,
    ResolveKeepsTheFence,
    ResolveTakesAnyFence,
    ResolvesLiveRuns,
    ActsKeepTheOldRetention,
    OperatorsSeeExpired,
    StepsOutliveTheIncarnation,
    StepsAreForgottenByTheNextRun,
    StepInDoubtRuns,
    ResultsAreText,
    NothingIsValidated,
    ClaimIsTwoSteps,
    CompleteIsTwoSteps,
    LetterIsPutTwice,
    LettersNewestFirst,
    ClosedLettersComeBack,
    ClosedLettersStayClosed,
    LettersKeepTheirFirstFence,
    TombstonesStayForEver,
    RedrivesAreNotNoted,
    ListRepeats,
    ListSkips,
    ListShowsResults,
];

/// Which method of the store is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Claim,
    Renew,
    Complete,
    Fail,
    Release,
    Look,
    Step,
    Resolve,
    Redrive,
    ReleaseByOperator,
    Forget,
}

const LONG_AGO: Time = Time(0);
const NEVER: Time = Time(u64::MAX);

impl Fault {
    /// Whether single operations, one after the other, can show this fault: `compare` makes no
    /// others, lists nothing, puts no letters, and its calls are valid.
    pub(crate) fn shows_in_sequence(self) -> bool {
        ![
            Self::ResultsAreText,
            Self::NothingIsValidated,
            Self::ClaimIsTwoSteps,
            Self::CompleteIsTwoSteps,
            Self::LetterIsPutTwice,
            Self::LettersNewestFirst,
            Self::ClosedLettersComeBack,
            Self::ClosedLettersStayClosed,
            Self::LettersKeepTheirFirstFence,
            Self::TombstonesStayForEver,
            Self::RedrivesAreNotNoted,
            Self::ListRepeats,
            Self::ListSkips,
            Self::ListShowsResults,
        ]
        .contains(&self)
    }

    /// The claim as the store understands it.
    pub(crate) fn understands(self, mut claim: Claim) -> Claim {
        if self == Self::LapseRunsAgainUnderPark {
            claim.in_doubt = InDoubt::Retry;
        }
        if self == Self::AttemptsWithoutLimit {
            claim.max_attempts = None;
        }
        claim
    }

    /// The record as the decision is shown it.
    pub(crate) fn shows(self, verb: Verb, record: Option<Record>, now: Time) -> Option<Record> {
        let mut record = record?;
        let lapsed = record.state == State::Running && record.lease_until <= now;
        let expired = record.expired(now);
        let operator = [
            Verb::Resolve,
            Verb::Redrive,
            Verb::ReleaseByOperator,
            Verb::Forget,
        ];
        let word = [Verb::Renew, Verb::Complete, Verb::Fail, Verb::Release];
        match (self, record.state) {
            (Self::IgnoresTheLease, State::Running) if verb == Verb::Claim => {
                record.lease_until = LONG_AGO;
            }
            (Self::ForgetsLiveLeases, State::Running) if verb == Verb::Forget => {
                record.lease_until = LONG_AGO;
            }
            (Self::LapseRevokes, State::Running) if word.contains(&verb) && lapsed => return None,
            (Self::RenewalShortens, State::Running) if verb == Verb::Renew => {
                record.lease_until = LONG_AGO;
            }
            (Self::CompletesInAnyState, _) if verb == Verb::Complete => {
                record.state = State::Running;
            }
            (Self::SuccessDoesNotAbsorb, State::Succeeded)
            | (Self::FailureDoesNotAbsorb, State::Failed)
                if verb == Verb::Claim =>
            {
                (record.state, record.lease_until) = (State::Waiting, LONG_AGO);
            }
            (Self::ParkedLapses, State::Parked)
                if verb == Verb::Claim && record.lease_until <= now =>
            {
                record.state = State::Waiting;
            }
            (Self::ParkedExpires, State::Parked) if record.expires_at <= now => return None,
            (Self::TakeOverIsBornAnew, State::Running) if verb == Verb::Claim && lapsed => {
                record.expires_at = LONG_AGO;
            }
            (Self::ExpiryMovesBack, State::Running) if word.contains(&verb) => {
                record.expires_at = LONG_AGO;
            }
            (Self::ResolvesLiveRuns, State::Running) if verb == Verb::Resolve => {
                record.lease_until = LONG_AGO;
            }
            (Self::NeverExpires, _) => record.expires_at = NEVER,
            (Self::OperatorsSeeExpired, _) if expired && operator.contains(&verb) => {
                record.expires_at = NEVER;
            }
            (_, _) => {}
        }
        Some(record)
    }

    /// The resolution as a store takes it.
    pub(crate) fn hears(self, how: &Resolution, record: Option<&Record>) -> Resolution {
        match (self, how.fence, record) {
            (Self::ResolveTakesAnyFence, Some(_), Some(record)) => how.clone().of_run(record.fence),
            (_, _, _) => how.clone(),
        }
    }

    /// The record as a claim is shown it.
    pub(crate) fn shows_claim(self, claim: &Claim, mut record: Record) -> Record {
        let mine = record.owner == claim.owner;
        if self == Self::LostAnswerRunsAgain && mine && record.state == State::Running {
            record.lease_until = LONG_AGO;
        }
        if self == Self::LostAnswerIsBusy && mine {
            record.owner.0[0] ^= 1;
        }
        if self == Self::PayloadIgnored {
            record.fingerprint = claim.fingerprint;
        }
        record
    }

    /// The lease as the decision is shown it.
    pub(crate) fn trusts(self, verb: Verb, lease: &Lease, record: Option<&Record>) -> Lease {
        let mut trusted = lease.clone();
        let Some(record) = record else {
            return trusted;
        };
        let any = self == Self::NoFenceCheck || (self == Self::StepsOfAnyRun && verb == Verb::Step);
        if any {
            (trusted.fence, trusted.owner) = (record.fence, record.owner);
        }
        if self == Self::NoOwnerCheck && lease.fence == record.fence {
            trusted.owner = record.owner;
        }
        trusted
    }

    /// The record as it is written.
    pub(crate) fn writes(
        self,
        verb: Verb,
        old: Option<&Record>,
        mut new: Record,
        now: Time,
    ) -> Record {
        if self == Self::RetentionShorterThanTheLease && verb == Verb::Claim {
            new.expires_at = now.plus(new.lease_until.since(now) / 2);
        }
        if self == Self::DelayIgnored && verb == Verb::Fail {
            new.lease_until = now;
        }
        let born_anew = verb == Verb::Claim && new.born == new.fence;
        if self == Self::FencesStartAnew && born_anew {
            (new.born, new.fence) = (Fence(1_000), Fence(1_000));
        }
        let Some(old) = old else {
            return new;
        };
        let keeps = (self == Self::RedriveKeepsTheFence && verb == Verb::Redrive)
            || (self == Self::OperatorsReleaseKeepsTheFence && verb == Verb::ReleaseByOperator)
            || (self == Self::ResolveKeepsTheFence && verb == Verb::Resolve);
        if keeps {
            new.fence = old.fence;
        }
        if self == Self::ActsKeepTheOldRetention && [Verb::Redrive, Verb::Resolve].contains(&verb) {
            new.expires_at = old.expires_at;
        }
        if self == Self::ReleaseCountsTheAttempt && verb == Verb::Release {
            new.attempts = old.attempts;
        }
        if self == Self::ParkedForgetsItsRun && verb == Verb::Claim && new.state == State::Parked {
            new.fence.0 += 1;
        }
        new
    }

    /// What is left of the record by a claim that was mismatched.
    pub(crate) fn disturbs(self, claimed: &Claimed, record: &Record) -> Option<Record> {
        let disturbs = self == Self::MismatchEndsTheLease && *claimed == Claimed::Mismatched;
        disturbs.then(|| Record {
            lease_until: LONG_AGO,
            fingerprint: Fingerprint::of(b"nobody's"),
            ..record.clone()
        })
    }

    /// What a claim is told.
    pub(crate) fn tells_claim(self, claimed: Claimed) -> Claimed {
        match claimed {
            Claimed::Granted(mut lease) if self == Self::FencesStartAnew => {
                if lease.born == lease.fence {
                    (lease.born, lease.fence) = (Fence(1_000), Fence(1_000));
                }
                Claimed::Granted(lease)
            }
            other => other,
        }
    }

    /// What a run is told.
    pub(crate) fn tells(self, held: Held) -> Held {
        match held {
            Held::Already(_) if self == Self::RepeatedWordIsStale => Held::Stale,
            Held::Settled(_) if self == Self::SettledIsStale => Held::Stale,
            other => other,
        }
    }

    /// What a run that begins a step is told.
    pub(crate) fn tells_step(self, begun: StepBegun) -> StepBegun {
        match begun {
            StepBegun::InDoubt(_) if self == Self::StepInDoubtRuns => StepBegun::Run,
            StepBegun::Settled(_) if self == Self::SettledIsStale => StepBegun::Stale,
            other => other,
        }
    }

    /// Whether sweep takes this record, though it must not.
    pub(crate) fn sweeps(self, record: &Record) -> bool {
        (self == Self::SweepsRunning && record.state == State::Running)
            || (self == Self::SweepsParked && record.state == State::Parked)
    }

    /// The incarnation that a step is kept under.
    pub(crate) fn keeps_step_under(self, lease: &Lease) -> Fence {
        match self {
            Self::StepsOutliveTheIncarnation => Fence(0),
            Self::StepsAreForgottenByTheNextRun => lease.fence,
            _ => lease.born,
        }
    }
}
