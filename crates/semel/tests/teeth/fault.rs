//! Everything that can be wrong with a store, one thing at a time.
//!
//! A fault changes what a decision is shown, what is written after it, or whose word it is; the
//! store around it is sound.

use bytes::Bytes;
use semel::Fingerprint;
use semel::clock::Time;
use semel::protocol::{
    Answer, Claim, Claimed, Decision, Fence, Held, InDoubt, Lease, Operation, Record, State,
    StepBegun, StepRecord, decide, sweepable,
};
use std::time::Duration;

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
    LabelsAreNotKept,
    LabelsOfLaterGrantsAreKept,
    LabelsOutliveTheIncarnation,
    LabelsAreCompared,
    HistoryIsNotKept,
    HistoryHasNoEnd,
    HistoryForgetsWho,
    HistoryKeepsTheNewFence,
    HistoryKeepsNoReason,
    HistoryOutlivesTheIncarnation,
    RenewalsAreRemembered,
    ActsAreNotRemembered,
    StepsOfEveryIncarnationAreShown,
    IndexOutlivesForget,
    IndexNeverEnds,
    IndexFindsOneKey,
    DoubtsAreNotCounted,
    AnsweredFailuresAreCounted,
    RepeatedDoubtsAreCounted,
    DoubtsWithoutLimit,
    DoubtsOutliveTheIncarnation,
    AgeWithoutLimit,
    AgeParksAtOnce,
    ProbesWhileTheRunMayAct,
    TwoProbers,
    ProbersAreNotTold,
    AnswersKeepTheDoubt,
    UnansweredProbesEndTheDoubt,
    UnansweredProbesCount,
    UnansweredProbesMayAct,
    RedriveEndsTheDoubt,
    RunsTakenAwayAreNotInDoubt,
    ResolutionsKeepTheDoubt,
    DoubtsWithoutAge,
    DoubtsParkByAgeAlone,
    DoubtsAgeFromTheLatest,
    DoubtsAgeFromBirth,
    FirstDoubtIsNotKept,
    FirstDoubtOutlivesTheIncarnation,
    ReleaseIgnoresAge,
    ReleaseNeedsEnoughRuns,
    ReleaseParksAgain,
    ReleaseThatParksTakesTheFence,
    RetainShortens,
    RetainDoesNothing,
    RetainTakesSucceeded,
    RetainTakesParked,
    RetainForgetsFailed,
    RetainTakesTheFence,
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
    AlarmsAreNotNoted,
    AlarmsAreLostOnPut,
    AlarmsEndRedrives,
    ListRepeats,
    ListSkips,
    ListShowsResults,
];

const LONG_AGO: Time = Time(0);
const NEVER: Time = Time(u64::MAX);

impl Fault {
    /// Whether single operations, one after the other, can show this fault: `compare` makes no
    /// others, lists nothing, puts no letters, its calls are valid, and it hardly ever has five runs of old work.
    pub(crate) fn shows_in_sequence(self) -> bool {
        ![
            Self::AgeWithoutLimit,
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
            Self::AlarmsAreNotNoted,
            Self::AlarmsAreLostOnPut,
            Self::AlarmsEndRedrives,
            Self::ListRepeats,
            Self::ListSkips,
            Self::ListShowsResults,
            // A case seldom has nine runs of one piece of work, or a step of an incarnation that has not been dropped.
            Self::HistoryHasNoEnd,
            Self::StepsOfEveryIncarnationAreShown,
            Self::IndexOutlivesForget,
            Self::IndexNeverEnds,
            Self::IndexFindsOneKey,
        ]
        .contains(&self)
    }

    /// What a store with this fault decides.
    pub(crate) fn decide(
        self,
        record: Option<&Record>,
        step: Option<&StepRecord>,
        operation: &Operation,
        now: Time,
    ) -> Decision {
        let shown = self.shows(record.cloned(), operation, now);
        let understood = self.understands(operation.clone(), shown.as_ref());
        let mut decision = decide(shown.as_ref(), step, &understood, now);
        if self == Self::StepsOutliveTheIncarnation {
            decision.ended = None;
        }
        if let Some(record) = record {
            self.disturbs(&mut decision, record);
        }
        if let Some(new) = &mut decision.write {
            self.writes(operation, record, new, now);
            self.writes_doubt(operation, record, new);
        }
        self.decides_age(operation, record, &mut decision, now);
        self.supersedes(&mut decision, operation, record, now);
        self.tells(&mut decision.answer);
        self.tells_doubt(&mut decision.answer);
        decision
    }

    /// The record as the decision is shown it.
    fn shows(self, record: Option<Record>, operation: &Operation, now: Time) -> Option<Record> {
        let mut record = record?;
        let lapsed = record.state == State::Running && record.lease_until <= now;
        let claims = matches!(operation, Operation::Claim(_));
        let speaks = operation.lease().is_some() && operation.step().is_none();
        match (self, record.state) {
            (Self::IgnoresTheLease, State::Running) if claims => record.lease_until = LONG_AGO,
            (Self::ForgetsLiveLeases, State::Running)
                if matches!(operation, Operation::Forget(_)) =>
            {
                record.lease_until = LONG_AGO;
            }
            (Self::LapseRevokes, State::Running) if speaks && lapsed => return None,
            (Self::RenewalShortens, State::Running)
                if matches!(operation, Operation::Renew { .. }) =>
            {
                record.lease_until = LONG_AGO;
            }
            (Self::CompletesInAnyState, _) if matches!(operation, Operation::Complete { .. }) => {
                record.state = State::Running;
            }
            (Self::SuccessDoesNotAbsorb, State::Succeeded)
            | (Self::FailureDoesNotAbsorb, State::Failed)
                if claims =>
            {
                (record.state, record.lease_until) = (State::Waiting, LONG_AGO);
            }
            (Self::ParkedLapses, State::Parked) if claims && record.lease_until <= now => {
                record.state = State::Waiting;
            }
            (Self::ParkedExpires, State::Parked) if record.expires_at <= now => return None,
            (Self::TakeOverIsBornAnew, State::Running) if claims && lapsed => {
                record.expires_at = LONG_AGO;
            }
            (Self::ExpiryMovesBack, State::Running) if speaks => record.expires_at = LONG_AGO,
            (Self::ResolvesLiveRuns, State::Running)
                if matches!(operation, Operation::Resolve { .. }) =>
            {
                record.lease_until = LONG_AGO;
            }
            (Self::NeverExpires, _) => record.expires_at = NEVER,
            (Self::OperatorsSeeExpired, _) if record.expired(now) && is_act(operation) => {
                record.expires_at = NEVER;
            }
            (_, _) => {}
        }
        self.shows_doubt(&mut record, operation);
        self.shows_age(&mut record, operation, now);
        if let Operation::Claim(claim) = operation {
            self.shows_claim(claim, &mut record);
        }
        Some(record)
    }

    /// The record as a claim is shown it.
    fn shows_claim(self, claim: &Claim, record: &mut Record) {
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
        if self == Self::LabelsAreCompared && record.label != claim.label {
            record.fingerprint = Fingerprint::of(b"nobody's");
        }
    }

    /// The operation as the store understands it.
    fn understands(self, mut operation: Operation, record: Option<&Record>) -> Operation {
        let is_step = operation.step().is_some();
        self.understands_doubt(&mut operation);
        self.understands_age(&mut operation, record);
        if let Operation::Claim(claim) = &mut operation {
            if self == Self::LapseRunsAgainUnderPark {
                claim.in_doubt = InDoubt::Retry;
            }
            if self == Self::AttemptsWithoutLimit {
                claim.max_attempts = None;
            }
        }
        if let Operation::Fail { how, .. } = &mut operation
            && self == Self::AttemptsWithoutLimit
        {
            how.max_attempts = None;
        }
        if let Operation::Complete { result, .. } = &mut operation
            && self == Self::ResultsAreText
        {
            *result = Bytes::from(String::from_utf8_lossy(result).into_owned());
        }
        if let (Some(record), Some(lease)) = (record, lease_mut(&mut operation)) {
            if self == Self::NoFenceCheck || (self == Self::StepsOfAnyRun && is_step) {
                (lease.fence, lease.owner) = (record.fence, record.owner);
            }
            if self == Self::NoOwnerCheck && lease.fence == record.fence {
                lease.owner = record.owner;
            }
        }
        if let (Some(record), Operation::Resolve { how, .. }) = (record, &mut operation)
            && self == Self::ResolveTakesAnyFence
            && how.fence.is_some()
        {
            how.fence = Some(record.fence);
        }
        operation
    }

    /// What is written besides, though nothing should be.
    fn disturbs(self, decision: &mut Decision, record: &Record) {
        let mismatched = decision.answer == Answer::Claimed(Claimed::Mismatched);
        if self == Self::MismatchEndsTheLease && mismatched {
            decision.write = Some(Record {
                lease_until: LONG_AGO,
                fingerprint: Fingerprint::of(b"nobody's"),
                ..record.clone()
            });
        }
    }

    /// The label as a claim writes it.
    fn labels(self, claim: &Claim, old: Option<&Record>, new: &mut Record) {
        match (self, old) {
            (Self::LabelsAreNotKept, _) => new.label = Bytes::new(),
            (Self::LabelsOfLaterGrantsAreKept, _) => new.label = claim.label.clone(),
            (Self::LabelsOutliveTheIncarnation, Some(old)) => new.label = old.label.clone(),
            (_, _) => {}
        }
    }

    /// The record as it is written.
    fn writes(self, operation: &Operation, old: Option<&Record>, new: &mut Record, now: Time) {
        let claims = matches!(operation, Operation::Claim(_));
        if let Operation::Claim(claim) = operation {
            self.labels(claim, old, new);
        }
        let redrives = matches!(operation, Operation::Redrive { .. });
        let resolves = matches!(operation, Operation::Resolve { .. });
        if self == Self::RetentionShorterThanTheLease && claims {
            new.expires_at = now.plus(new.lease_until.since(now) / 2);
        }
        if self == Self::DelayIgnored && matches!(operation, Operation::Fail { .. }) {
            new.lease_until = now;
        }
        if self == Self::FencesStartAnew && claims && new.born == new.fence {
            (new.born, new.fence) = (Fence(1_000), Fence(1_000));
        }
        // An expired record without a fence is as good as none.
        if self == Self::ForgetRemovesTheRecord && matches!(operation, Operation::Forget(_)) {
            (new.fence, new.expires_at) = (Fence(0), LONG_AGO);
        }
        let Some(old) = old else {
            return;
        };
        let releases = matches!(operation, Operation::ReleaseByOperator { .. });
        if (self == Self::RedriveKeepsTheFence && redrives)
            || (self == Self::OperatorsReleaseKeepsTheFence && releases)
            || (self == Self::ResolveKeepsTheFence && resolves)
        {
            new.fence = old.fence;
        }
        if self == Self::ActsKeepTheOldRetention && (redrives || resolves) {
            new.expires_at = old.expires_at;
        }
        if self == Self::ReleaseCountsTheAttempt && matches!(operation, Operation::Release { .. }) {
            new.attempts = old.attempts;
        }
        if self == Self::ParkedForgetsItsRun && claims && new.state == State::Parked {
            new.fence.0 += 1;
        }
    }

    /// What the caller is told.
    fn tells(self, answer: &mut Answer) {
        match answer {
            Answer::Claimed(Claimed::Granted(lease))
                if self == Self::FencesStartAnew && lease.born == lease.fence =>
            {
                (lease.born, lease.fence) = (Fence(1_000), Fence(1_000));
            }
            Answer::Held(held) => match held {
                Held::Already(_) if self == Self::RepeatedWordIsStale => *held = Held::Stale,
                Held::Settled(_) if self == Self::SettledIsStale => *held = Held::Stale,
                _ => {}
            },
            Answer::StepBegun(begun) => match begun {
                StepBegun::InDoubt(_) if self == Self::StepInDoubtRuns => *begun = StepBegun::Run,
                StepBegun::Settled(_) if self == Self::SettledIsStale => *begun = StepBegun::Stale,
                _ => {}
            },
            _ => {}
        }
    }

    /// Whether sweep takes this record.
    pub(crate) fn sweepable(self, record: &Record, grace: Duration, now: Time) -> bool {
        (self == Self::SweepsRunning && record.state == State::Running)
            || (self == Self::SweepsParked && record.state == State::Parked)
            || sweepable(record, grace, now)
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

fn is_act(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Resolve { .. }
            | Operation::Redrive { .. }
            | Operation::Retain { .. }
            | Operation::ReleaseByOperator { .. }
            | Operation::Forget(_)
    )
}

fn lease_mut(operation: &mut Operation) -> Option<&mut Lease> {
    match operation {
        Operation::Renew { lease, .. }
        | Operation::Complete { lease, .. }
        | Operation::Fail { lease, .. }
        | Operation::Release { lease, .. }
        | Operation::StepBegin { lease, .. }
        | Operation::StepRestart { lease, .. }
        | Operation::StepComplete { lease, .. } => Some(lease),
        _ => None,
    }
}
