//! The sender: delivers every piece of work at least once, and again until it hears how it ended.

use super::case::{Case, Mode};
use super::drive::DriveSettings;
use super::message::{Delivery, EffectBehaviour, SenderAnswer};
use super::point::ArmedPoint;
use crate::harness::{InjectedFault, WorkId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;
use tokio::time::Instant;

/// One work in this many fails for good, always.
const FAILS_EVERY: u32 = 17;

/// How many pieces of work are under way at a time.
const UNDER_WAY_MAX: usize = 16;

/// How many times the work that was planned a case may have until every armed fault was met.
const MORE_TIMES: u32 = 2;

/// How long most effects take.
const EFFECT_MS: std::ops::Range<u64> = 1..20;

/// How many times a lease a sender waits for an answer.
const DEADLINE_LEASES: f64 = 2.5;

/// The sender of a case, and all it remembers.
#[derive(Debug)]
pub(super) struct Sender {
    rng: StdRng,
    mode: Mode,
    lease: Duration,
    works: Vec<Progress>,
    total: u32,
    long_percent: u32,
    to_arm: Vec<ArmedPoint>,
    moment: u64,
    pub(super) history: Vec<Sent>,
}

/// How far a piece of work is.
#[derive(Clone, Copy, Debug)]
struct Progress {
    ended: bool,
    due: Option<Instant>,
}

/// A delivery, and what became of it. Moments are counted, not measured: a later one is greater.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) delivery: Delivery,
    pub(crate) worker: u32,
    pub(crate) sent: u64,
    /// What the sender heard, and when.
    pub(crate) heard: Option<(u64, SenderAnswer)>,
    /// Whether the worker died first.
    pub(crate) unknown: bool,
}

// === impl Sender ===

impl Sender {
    pub(super) fn new(
        seed: u64,
        case: &Case,
        settings: &DriveSettings,
        to_arm: Vec<ArmedPoint>,
    ) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            mode: case.mode,
            lease: case.lease,
            works: Vec::new(),
            total: settings.works,
            long_percent: settings.long_percent,
            to_arm,
            moment: 0,
            history: Vec::new(),
        }
    }

    /// Whether everything was sent once, and no armed fault waits for more: the time for faults is over then.
    pub(super) fn has_sent_all(&self) -> bool {
        let sent = self.works_sent();
        sent >= self.total && (self.to_arm.is_empty() || sent >= self.total * MORE_TIMES)
    }

    /// How many pieces of work were sent.
    pub(super) fn works_sent(&self) -> u32 {
        u32::try_from(self.works.len()).expect("a case has few pieces of work")
    }

    /// Whether every piece of work was heard to end, and nothing is left to say.
    pub(super) fn is_done(&self) -> bool {
        let over = |work: &Progress| work.ended && work.due.is_none();
        self.has_sent_all() && self.works.iter().all(over)
    }

    /// The pieces of work that have not been heard to end.
    pub(super) fn unended(&self) -> Vec<WorkId> {
        let works = (0..).zip(&self.works);
        let unended = works.filter(|(_, work)| !work.ended);
        unended.map(|(number, _)| WorkId(number)).collect()
    }

    /// The next delivery that is due, if one is. A fresh one may run into a fault.
    pub(super) fn next(&mut self, now: Instant) -> Option<Delivery> {
        let due = |work: &Progress| work.due.is_some_and(|due| due <= now);
        if let Some(number) = self.works.iter().position(due) {
            let work = WorkId(u32::try_from(number).ok()?);
            return Some(self.delivery(work, None));
        }
        let under_way = self.works.iter().filter(|work| !work.ended).count();
        if self.has_sent_all() || under_way >= UNDER_WAY_MAX {
            return None;
        }
        let work = WorkId(self.works_sent());
        self.works.push(Progress {
            ended: false,
            due: None,
        });
        let armed = self.arm(work);
        Some(self.delivery(work, armed))
    }

    fn arm(&mut self, work: WorkId) -> Option<ArmedPoint> {
        if always_fails(work) {
            return None;
        }
        let fits = |armed: &ArmedPoint| armed.point.is_on_the_way_of(self.mode, work);
        let position = self.to_arm.iter().position(fits)?;
        Some(self.to_arm.remove(position))
    }

    fn delivery(&mut self, work: WorkId, armed: Option<ArmedPoint>) -> Delivery {
        Delivery {
            id: self.history.len() as u64,
            work,
            behaviour: self.behaviour(work, armed),
            armed,
        }
    }

    fn behaviour(&mut self, work: WorkId, armed: Option<ArmedPoint>) -> EffectBehaviour {
        let lease_ms = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        let long = EffectBehaviour::Acts {
            ms: lease_ms + lease_ms / 2,
        };
        let short = EffectBehaviour::Acts {
            ms: self.rng.random_range(EFFECT_MS),
        };
        match armed {
            Some(armed) if armed.point.needs_a_long_run() => return long,
            Some(_) => return short,
            None if always_fails(work) => return EffectBehaviour::FailsForGood,
            None => {}
        }
        match self.rng.random_range(0..100) {
            0..6 => EffectBehaviour::Fails,
            6..10 => EffectBehaviour::NotStarted,
            dice if dice < 10 + self.long_percent => long,
            _ => short,
        }
    }

    /// A delivery was handed over. Without an answer it is made again; sometimes it is anyway.
    pub(super) fn sent(&mut self, delivery: Delivery, worker: u32, now: Instant) {
        let sent = self.tick();
        self.history.push(Sent {
            delivery,
            worker,
            sent,
            heard: None,
            unknown: false,
        });
        let ended = self.progress(delivery.work).ended;
        let twin = delivery.armed.is_none() && self.rng.random_bool(0.2);
        self.progress(delivery.work).due = match (ended, twin) {
            (true, _) => None,
            (false, true) => Some(now),
            (false, false) => Some(now + self.lease.mul_f64(DEADLINE_LEASES)),
        };
    }

    /// An answer came.
    pub(super) fn heard(&mut self, delivery: u64, heard: SenderAnswer, now: Instant) {
        let moment = self.tick();
        let pause = self.rng.random_range(5..40);
        let late = self.rng.random_bool(0.3);
        let Some(sent) = self.at(delivery) else {
            return;
        };
        let (work, armed) = (sent.delivery.work, sent.delivery.armed.take());
        let over = matches!(
            heard,
            SenderAnswer::Settled(..) | SenderAnswer::Parked | SenderAnswer::Wrong(_)
        );
        sent.heard = Some((moment, heard));
        // A fault that was not met is armed for another piece of work.
        self.to_arm.extend(armed);
        let soon = now + Duration::from_millis(pause);
        let progress = self.progress(work);
        progress.due = match (over, progress.ended) {
            (true, false) if late => Some(soon + Duration::from_millis(5 * pause)),
            (true, false) => None,
            (true, true) => progress.due,
            (false, _) => Some(soon),
        };
        // A late duplicate that hears no end makes its sender ask again, like any other.
        progress.ended = over;
    }

    /// The worker died with this delivery in hand: nobody knows how it ended.
    pub(super) fn lost(&mut self, delivery: u64, now: Instant) {
        let pause = Duration::from_millis(self.rng.random_range(5..60));
        let Some(sent) = self.at(delivery) else {
            return;
        };
        sent.unknown = true;
        let (work, armed) = (sent.delivery.work, sent.delivery.armed.take());
        self.to_arm.extend(armed);
        let progress = self.progress(work);
        progress.ended = false;
        progress.due = Some(now + pause);
    }

    /// A fault was met at its point: it is not set again.
    pub(super) fn fault_hit(&mut self, injected: &InjectedFault) {
        let Some(met) = ArmedPoint::name_of(injected) else {
            return;
        };
        let is_met = |sent: &&mut Sent| {
            let armed = sent.delivery.armed.map(ArmedPoint::name);
            injected.process == Some(sent.worker) && armed.as_ref() == Some(&met)
        };
        if let Some(sent) = self.history.iter_mut().rev().find(is_met) {
            sent.delivery.armed = None;
        }
    }

    fn at(&mut self, delivery: u64) -> Option<&mut Sent> {
        self.history.get_mut(usize::try_from(delivery).ok()?)
    }

    fn progress(&mut self, work: WorkId) -> &mut Progress {
        self.works
            .get_mut(work.0 as usize)
            .expect("only known work is sent")
    }

    const fn tick(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }
}

/// Whether this work fails for good whenever it runs.
pub(crate) const fn always_fails(work: WorkId) -> bool {
    work.0 % FAILS_EVERY == FAILS_EVERY - 1
}
