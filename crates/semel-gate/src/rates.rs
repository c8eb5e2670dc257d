//! Rates: what became of the deliveries of the last hour, route by route, and how late duplicates come. Counters only.

mod counts;
mod first_seen;
mod handler_times;

pub(crate) use counts::{Became, Counts, Late, Lateness};
pub(crate) use handler_times::HandlerTimes;

use crate::disposition::Disposition;
use crate::flow::Flow;
use crate::gate::RouteState;
use crate::settings::Source;
use first_seen::FirstSeen;
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long deliveries are counted together.
pub(crate) const BUCKET: Duration = Duration::from_secs(10);

/// How many buckets are kept: an hour.
pub(crate) const BUCKETS_MAX: usize = 360;

/// What became of deliveries, by route.
#[derive(Debug)]
pub(crate) struct Rates {
    since: Instant,
    routes: BTreeMap<Arc<str>, Mutex<RouteRates>>,
    first_seen: FirstSeen,
}

/// What is counted of one route.
#[derive(Debug, Default)]
struct RouteRates {
    /// Oldest first; a bucket without deliveries may be missing.
    buckets: VecDeque<(u64, Counts)>,
    total: Counts,
    by_source: BTreeMap<Source, SourceCounts>,
    late: Lateness,
    forgotten: u64,
    handler: HandlerTimes,
}

/// How many deliveries a sender made, and how many were duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceCounts {
    pub(crate) deliveries: u64,
    pub(crate) duplicates: u64,
}

/// What became of the deliveries of one route, as it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteSnapshot {
    pub(crate) route: Arc<str>,
    /// The last [`BUCKETS_MAX`] buckets of [`BUCKET`] each, oldest first; the last one has only begun. Fewer before the
    /// gate is an hour old.
    pub(crate) buckets: Vec<Counts>,
    /// Since the gate began.
    pub(crate) total: Counts,
    /// Since the gate began, by sender.
    pub(crate) by_source: BTreeMap<Source, SourceCounts>,
    /// How long after its first delivery a duplicate came, since the gate began.
    pub(crate) late: Lateness,
    /// How many deliveries ran again, because their work was remembered no more; they are among the late ones.
    pub(crate) forgotten: u64,
    /// How long 99 of 100 calls of the handler took at the most, since the gate began.
    pub(crate) handler_p99: Option<Duration>,
    /// How many calls that is known of.
    pub(crate) handler_calls: u64,
}

// === impl Rates ===

impl Rates {
    pub(crate) fn new(routes: &[Arc<RouteState>]) -> Self {
        let named = |route: &Arc<RouteState>| (Arc::clone(&route.name), Mutex::default());
        Self {
            since: Instant::now(),
            routes: routes.iter().map(named).collect(),
            first_seen: FirstSeen::default(),
        }
    }

    /// Counts a delivery whose flow has ended.
    pub(crate) fn note(&self, flow: &Flow, disposition: &Disposition) {
        let is_duplicate = disposition.is_duplicate();
        let late = self.late(flow, is_duplicate);
        let is_forgotten = late.is_some_and(|late| came_too_late(flow, late));
        let Some(route) = self.routes.get(&flow.route.name) else {
            return;
        };
        let (now, became) = (self.bucket(), Became::of(disposition));
        let mut rates = lock(route);
        rates.bucket(now).add(became, is_duplicate);
        rates.total.add(became, is_duplicate);
        let by_source = rates.by_source.entry(flow.source).or_default();
        by_source.deliveries += 1;
        by_source.duplicates += u64::from(is_duplicate);
        rates.forgotten += u64::from(is_forgotten);
        if is_duplicate || is_forgotten {
            rates.late.add(late);
        }
        if let Some(took) = flow.handler_took {
            rates.handler.add(took);
        }
    }

    /// Counts the end of a run whose sender heard before that it goes on.
    pub(crate) fn note_end(&self, flow: &Flow) {
        let route = self.routes.get(&flow.route.name);
        if let (Some(route), Some(took)) = (route, flow.handler_took) {
            lock(route).handler.add(took);
        }
    }

    /// How things stand, route by route.
    pub(crate) fn snapshot(&self) -> Vec<RouteSnapshot> {
        let now = self.bucket();
        let snapshot = |(name, route): (&Arc<str>, &Mutex<RouteRates>)| {
            lock(route).snapshot(Arc::clone(name), now)
        };
        self.routes.iter().map(snapshot).collect()
    }

    /// For how long it has been counted.
    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Drops when one piece of work was first seen.
    pub(crate) fn forget(&self, key: &semel::Key) {
        self.first_seen.forget(key);
    }

    /// How long after the first one a delivery came: of its work at this gate, else by when its sender published it.
    fn late(&self, flow: &Flow, is_duplicate: bool) -> Option<Duration> {
        let key = flow.identity()?.key;
        let seen = self.first_seen.since(&key, flow.arrival.since);
        if !is_duplicate || seen.is_some() {
            return seen;
        }
        let published_at: Timestamp = flow.transport.published_at?;
        let late = flow.arrival.received_at.duration_since(published_at);
        Duration::try_from(late).ok()
    }

    fn bucket(&self) -> u64 {
        self.since.elapsed().as_secs() / BUCKET.as_secs()
    }
}

/// Whether it began its work anew so long after the first delivery that this one was remembered no more.
fn came_too_late(flow: &Flow, late: Duration) -> bool {
    let retention = flow.route.settings.terms(flow.source).retention;
    let is_anew = |lease: &semel::protocol::Lease| lease.fence == lease.born;
    !flow.is_redrive && flow.lease.as_ref().is_some_and(is_anew) && late >= retention
}

fn lock(route: &Mutex<RouteRates>) -> MutexGuard<'_, RouteRates> {
    // Nobody panics while holding it.
    route.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl RouteRates ===

impl RouteRates {
    fn bucket(&mut self, now: u64) -> &mut Counts {
        if self.buckets.back().is_none_or(|(number, _)| *number < now) {
            self.buckets.push_back((now, Counts::default()));
        }
        while self.buckets.len() > BUCKETS_MAX {
            self.buckets.pop_front();
        }
        let (_, counts) = self.buckets.back_mut().expect("one was just put there");
        counts
    }

    fn snapshot(&self, route: Arc<str>, now: u64) -> RouteSnapshot {
        let first = (now + 1).saturating_sub(BUCKETS_MAX as u64);
        let mut known = self.buckets.iter().peekable();
        let buckets = (first..=now).map(|number| {
            while known.next_if(|(it, _)| *it < number).is_some() {}
            let found = known.next_if(|(it, _)| *it == number);
            found.map(|(_, counts)| *counts).unwrap_or_default()
        });
        RouteSnapshot {
            route,
            buckets: buckets.collect(),
            total: self.total,
            by_source: self.by_source.clone(),
            late: self.late,
            forgotten: self.forgotten,
            handler_p99: self.handler.p99(),
            handler_calls: self.handler.calls(),
        }
    }
}
