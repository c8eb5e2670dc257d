//! The trace: what an attack left behind, as evidence for the checker of crash runs.

use super::attack::AttackLog;
use crate::crash::{
    Case, Delivery, Downstream, DriveLog, EffectBehaviour, Evidence, SenderAnswer, Sent,
};
use crate::harness::{Event, FaultKind, InjectedFault, Ledger, Role, WorkId};
use semel::letter::Reason;
use semel::protocol::State;
use semel::store::{Letters, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long records may be found running after the last run was waited for.
const SETTLE_MAX: Duration = Duration::from_secs(3);
const SETTLE_AGAIN: Duration = Duration::from_millis(100);

/// How much earlier or later than a gate the driver notices that a handler died.
const NOTICED_BEFORE_US: u64 = 100_000;
const NOTICED_AFTER_US: u64 = 1_500_000;

/// Follows the handlers' ledgers as they grow.
#[derive(Debug)]
pub(super) struct Trace {
    case: Case,
    lengths: BTreeMap<u32, u64>,
    /// The runs of each piece of work, by number, with their fences.
    begun: BTreeMap<WorkId, BTreeMap<u64, u64>>,
    /// The runs that a handler has answered.
    answered: BTreeSet<u64>,
    /// The runs of each piece of work that took effect.
    acted: BTreeMap<WorkId, BTreeSet<u64>>,
    /// The fences under which a handler was asked what became of a piece of work.
    probed: BTreeSet<(WorkId, u64)>,
}

// === impl Trace ===

impl Trace {
    pub(super) fn new(case: &Case) -> Self {
        Self {
            case: case.clone(),
            lengths: BTreeMap::new(),
            begun: BTreeMap::new(),
            answered: BTreeSet::new(),
            acted: BTreeMap::new(),
            probed: BTreeSet::new(),
        }
    }

    /// How many pieces of work have come to a handler.
    pub(super) fn begun(&mut self, handlers: &[u32]) -> anyhow::Result<usize> {
        for number in handlers {
            let path = Ledger::path(&self.case.dir, *number);
            let length = std::fs::metadata(path).map_or(0, |it| it.len());
            if self.lengths.insert(*number, length) == Some(length) {
                continue;
            }
            for event in Ledger::read(&self.case.dir, *number)? {
                self.follow(&event);
            }
        }
        Ok(self.begun.len())
    }

    fn follow(&mut self, event: &Event) {
        if let Event::Begun(attempt) = event {
            let runs = self.begun.entry(attempt.work).or_default();
            runs.insert(attempt.delivery, attempt.fence);
        }
        if let Event::Answered { delivery } = event {
            self.answered.insert(*delivery);
        }
        if let Event::Effect { attempt, .. } = event {
            let acted = self.acted.entry(attempt.work).or_default();
            acted.insert(attempt.delivery);
        }
        if let Event::Probed { work, fence, .. } = event {
            self.probed.insert((*work, *fence));
        }
    }

    /// How many pieces of work took effect more than once.
    pub(super) fn repeated(&self) -> usize {
        self.acted.values().filter(|runs| runs.len() > 1).count()
    }

    /// How often a handler was asked what became of a run.
    pub(super) fn probed(&self) -> usize {
        self.probed.len()
    }

    /// Those of these runs that a handler has answered and that were taken over: a later run of the same work has come to
    /// a handler.
    pub(super) fn overtaken(&self, open: &BTreeSet<u64>) -> BTreeSet<u64> {
        let runs = self.answered_runs(open);
        let overtaken = runs.filter(|(work, _, fence)| {
            let mut runs = self.begun.get(work).into_iter().flatten();
            runs.any(|(_, later)| later > fence)
        });
        overtaken.map(|(_, run, _)| run).collect()
    }

    /// The work of those of these runs that a handler has answered.
    pub(super) fn answered(&self, open: &BTreeSet<u64>) -> BTreeSet<WorkId> {
        self.answered_runs(open).map(|(work, ..)| work).collect()
    }

    /// Work, number and fence of those of these runs that a handler has answered.
    fn answered_runs(&self, open: &BTreeSet<u64>) -> impl Iterator<Item = (WorkId, u64, u64)> {
        let begun = self.begun.iter();
        let runs =
            begun.flat_map(|(work, runs)| runs.iter().map(|(run, fence)| (*work, *run, *fence)));
        runs.filter(|(_, run, _)| open.contains(run) && self.answered.contains(run))
    }
}

/// Gathers the evidence of an attack. Nobody else may have the store open.
pub(super) async fn evidence(
    case: &Case,
    log: &AttackLog,
    downstream: &Downstream,
) -> anyhow::Result<Evidence> {
    let mut events: Vec<Event> = Vec::new();
    for number in 0..log.processes {
        events.extend(Ledger::read(&case.dir, number)?);
    }
    let mut injected = log.injected.clone();
    let mut sent = grants(&events, &killed(&injected));
    sent.extend(heard(log));
    sent.extend(told_parked(case, log.works).await?);
    injected.push(lost_by_handlers(&events, log));
    let drive = DriveLog {
        sent,
        injected,
        works: log.works,
        processes: log.processes,
        stuck: Vec::new(),
    };
    settled(case).await?;
    Evidence::gather(case, drive, downstream).await
}

/// The runs that someone who was killed had in hand.
pub(super) fn killed(injected: &[InjectedFault]) -> BTreeSet<u64> {
    let killed = injected.iter();
    let killed = killed.filter(|injection| matches!(injection.kind, FaultKind::Kill(_)));
    killed.flat_map(|it| it.in_flight.clone()).collect()
}

/// The faults that met something in flight.
pub(super) fn met_in_flight(injected: &[InjectedFault]) -> impl Iterator<Item = &InjectedFault> {
    injected.iter().filter(|it| !it.in_flight.is_empty())
}

/// The runs whose gate lost the handler just when one died, though that one may not have read the request yet.
fn lost_by_handlers(events: &[Event], log: &AttackLog) -> InjectedFault {
    let mut in_flight = BTreeSet::new();
    for event in events {
        if let Event::Doubted { delivery, at } = event {
            let noticed = at.saturating_sub(NOTICED_BEFORE_US)..at + NOTICED_AFTER_US;
            let mut deaths = log.handler_deaths.iter();
            let died = deaths.any(|at| noticed.contains(at));
            in_flight.extend(died.then_some(*delivery));
        }
    }
    InjectedFault::new(FaultKind::Kill(Role::Handler), in_flight)
}

/// Every run that a gate asked for, as a delivery of its own.
fn grants(events: &[Event], killed: &BTreeSet<u64>) -> Vec<Sent> {
    let mut works = BTreeMap::new();
    for event in events {
        if let Event::Received { delivery, work } = event {
            works.insert(*delivery, *work);
        }
    }
    let sent = works.into_iter();
    sent.map(|(id, work)| sent_as(id, work, None, killed.contains(&id)))
        .collect()
}

/// What API clients heard, each as a delivery of its own.
fn heard(log: &AttackLog) -> Vec<Sent> {
    let heard = log.heard.iter();
    heard
        .map(|heard| sent_as(rand::random(), heard.work, Some(heard.end.clone()), false))
        .collect()
}

/// The broker was told that it may forget what is kept as a letter for a person.
async fn told_parked(case: &Case, works: u32) -> anyhow::Result<Vec<Sent>> {
    let mut keys = BTreeMap::new();
    for work in (0..works).map(WorkId) {
        keys.insert(case.key(work)?.to_string(), work);
    }
    let store = case.location.open().await?;
    let (mut sent, mut after) = (Vec::new(), None);
    loop {
        let page = Letters::list(store.as_ref(), after.as_ref(), 100).await?;
        for letter in page.items {
            let key = letter.key.map(|key| key.to_string());
            let work = key.and_then(|key| keys.get(&key).copied());
            if let Some(work) = work.filter(|_| letter.reason == Reason::Parked) {
                let parked = Some(SenderAnswer::Parked);
                sent.push(sent_as(rand::random(), work, parked, false));
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(sent);
        }
    }
}

/// A gate that was stopped has nothing to say any more, but what it said may be on its way to the store.
async fn settled(case: &Case) -> anyhow::Result<()> {
    let store = case.location.open().await?;
    let until = Instant::now() + SETTLE_MAX;
    while Instant::now() < until {
        let running = Store::list(store.as_ref(), Some(State::Running), None, 1).await?;
        if running.items.is_empty() {
            break;
        }
        sleep(SETTLE_AGAIN).await;
    }
    Ok(())
}

fn sent_as(id: u64, work: WorkId, heard: Option<SenderAnswer>, unknown: bool) -> Sent {
    Sent {
        delivery: Delivery {
            id,
            work,
            behaviour: EffectBehaviour::Acts { ms: 0 },
            armed: None,
        },
        worker: 0,
        sent: 0,
        heard: heard.map(|heard| (0, heard)),
        unknown,
    }
}

/// How long after the heal all but one in a hundred of the works that had not ended before had ended, by the store's
/// own clock.
pub(super) fn p99_to_end(evidence: &Evidence, log: &AttackLog) -> Duration {
    let off = u64::try_from(log.clock_off.as_micros()).unwrap_or(u64::MAX);
    let ended = evidence.records.values();
    let mut late: Vec<u64> = ended
        .map(|record| record.lease_until.0.saturating_sub(off))
        .filter_map(|ended| ended.checked_sub(log.healed_at))
        .collect();
    late.sort_unstable();
    let position = late.len().saturating_sub(1) * 99 / 100;
    Duration::from_micros(late.get(position).copied().unwrap_or_default())
}
