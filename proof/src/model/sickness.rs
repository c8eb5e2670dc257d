//! A sick piece of work and a sick handler: only the first is parked for its doubts.
//!
//! The record is decided by the library; the gate names the limit on doubts only when it has seen a success of the route, and
//! then asks for a first doubt that is at least as old as that.

use semel::clock::Time;
use semel::protocol::{
    Answer, Claim, Claimed, DoubtLimit, Fail, FailKind, InDoubt, Lease, Operation, Owner, Record,
    State, decide,
};
use semel::{Fingerprint, Key};
use stateright::{Model, Property};
use std::num::NonZeroU32;
use std::time::Duration;

/// The model.
#[derive(Clone, Copy, Debug)]
pub struct Sickness {
    /// A deliberate fault of the gate.
    pub fault: Option<SicknessFault>,
}

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SicknessFault {
    /// The first doubt may be of any age.
    AnyAge,
    /// The limit holds though the route had no success since.
    WithoutSuccess,
    /// The limit is never named.
    NoLimit,
    /// A long run counts as time since the success that was seen when it began.
    LongRuns,
}

/// Everything there is. Times are in ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ward {
    now: u64,
    record: Option<Record>,
    run: Option<Run>,
    /// The latest success of the route that this gate has seen.
    success: Option<u64>,
    /// The end of the first run in doubt.
    first_doubt: Option<u64>,
    doubts: u32,
    /// The last end in doubt should have parked the work, and did not; or the reverse.
    is_wrong: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Run {
    lease: Lease,
    began: u64,
    limit: Option<DoubtLimit>,
    /// What the gate had seen when it claimed.
    success: Option<u64>,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Time passes.
    Tick,
    /// Other work of the route succeeds.
    OtherSucceeds,
    /// The work is delivered, and its gate claims.
    Claim,
    /// The run ends in doubt.
    EndInDoubt,
    /// The gate stops: the run lapses.
    Stop,
}

const RUNS: NonZeroU32 = NonZeroU32::new(2).expect("two is not zero");
const AGE: u64 = 2;
const TICKS_MAX: u64 = 6;
const RUNS_MAX: u32 = 4;
const LEASE: Duration = ticks(1);
const LONG: Duration = ticks(1_000);
/// Fences are times of the clock in µs.
const BEGIN: u64 = 1_000_000;

/// The rule: doubts park a sick piece of work, and never for the sake of a sick handler.
pub const ONLY_SICK_WORK_IS_PARKED: &str = "only sick work is parked";

// === impl Sickness ===

impl Sickness {
    /// The limit that the gate names with a claim.
    fn limit(&self, ward: &Ward) -> Option<DoubtLimit> {
        let since = match (self.fault, ward.success) {
            (Some(SicknessFault::NoLimit), _) | (None, None) => return None,
            (Some(SicknessFault::WithoutSuccess), _) => 0,
            (_, success) => ward.now - success?,
        };
        let least = match self.fault {
            Some(SicknessFault::AnyAge) => 0,
            _ => AGE,
        };
        Some(DoubtLimit {
            runs: RUNS,
            age: ticks(least.max(since)),
        })
    }

    fn claim(&self, ward: &mut Ward) -> Option<()> {
        let limit = self.limit(ward);
        let lapsed = ward.record.as_ref().filter(|it| it.state == State::Running);
        let finds = lapsed.is_some_and(|record| record.lease_until <= ward.time());
        let claim = Claim {
            owner: Owner([u8::try_from(ward.doubts).ok()?; 16]),
            lease: LEASE,
            retention: LONG,
            max_in_doubt: limit,
            ..Claim::new(Key::from_bytes([1; 32]), Fingerprint::off())
        };
        let answer = ward.decide(&Operation::Claim(claim));
        if finds {
            ward.ends_in_doubt(ward.success, ward.now);
        }
        if let Answer::Claimed(Claimed::Granted(lease)) = answer {
            ward.run = Some(Run {
                lease,
                began: ward.now,
                limit,
                success: ward.success,
            });
        }
        Some(())
    }

    fn end(&self, ward: &mut Ward) -> Option<()> {
        let run = ward.run.take()?;
        let ran_for = match self.fault {
            Some(SicknessFault::LongRuns) => Duration::ZERO,
            _ => ticks(ward.now - run.began),
        };
        let how = Fail {
            kind: FailKind::InDoubt {
                delay: Duration::ZERO,
            },
            in_doubt: InDoubt::Retry,
            max_attempts: None,
            max_in_doubt: run.limit.map(|limit| DoubtLimit {
                age: limit.age + ran_for,
                ..limit
            }),
            park_after: None,
            retention: LONG,
            result: bytes::Bytes::new(),
        };
        let lease = run.lease;
        let _held = ward.decide(&Operation::Fail { lease, how });
        ward.ends_in_doubt(run.success, run.began);
        Some(())
    }
}

impl Model for Sickness {
    type State = Ward;
    type Action = Event;

    fn init_states(&self) -> Vec<Ward> {
        vec![Ward::default()]
    }

    fn actions(&self, ward: &Ward, events: &mut Vec<Event>) {
        if ward.is_wrong {
            return;
        }
        if ward.now < TICKS_MAX {
            events.push(Event::Tick);
        }
        events.push(Event::OtherSucceeds);
        match ward.run {
            Some(_) => events.extend([Event::EndInDoubt, Event::Stop]),
            None if ward.doubts < RUNS_MAX => events.push(Event::Claim),
            None => {}
        }
    }

    fn next_state(&self, last: &Ward, event: Event) -> Option<Ward> {
        let mut ward = last.clone();
        match event {
            Event::Tick => ward.now += 1,
            Event::OtherSucceeds => ward.success = Some(ward.now),
            Event::Claim => self.claim(&mut ward)?,
            Event::EndInDoubt => self.end(&mut ward)?,
            Event::Stop => ward.run = None,
        }
        Some(ward)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONLY_SICK_WORK_IS_PARKED, |_, ward: &Ward| !ward.is_wrong),
            Property::sometimes("sick work is parked", |_, ward: &Ward| ward.is_parked()),
            Property::sometimes("a sick handler parks nothing", |_, ward: &Ward| {
                ward.success.is_none() && ward.doubts == RUNS_MAX
            }),
        ]
    }
}

// === impl Ward ===

impl Ward {
    const fn time(&self) -> Time {
        Time(BEGIN + self.now * TICK_MICROS)
    }

    fn decide(&mut self, operation: &Operation) -> Answer {
        let decision = decide(self.record.as_ref(), None, operation, self.time());
        if let Some(record) = decision.write {
            self.record = Some(record);
        }
        decision.answer
    }

    fn is_parked(&self) -> bool {
        let record = self.record.as_ref();
        record.is_some_and(|record| record.state == State::Parked)
    }

    /// Judges the end of a run by what its gate had seen by then: enough doubts, the first of them old, and a success since.
    fn ends_in_doubt(&mut self, success: Option<u64>, seen_at: u64) {
        self.doubts += 1;
        let first = *self.first_doubt.get_or_insert(self.now);
        let is_old = first + AGE <= seen_at;
        let is_handler_sound = success.is_some_and(|success| first <= success);
        let is_sick = self.doubts >= RUNS.get() && is_old && is_handler_sound;
        self.is_wrong = is_sick != self.is_parked();
    }
}

const TICK_MICROS: u64 = 1_000;

const fn ticks(count: u64) -> Duration {
    Duration::from_micros(count * TICK_MICROS)
}
