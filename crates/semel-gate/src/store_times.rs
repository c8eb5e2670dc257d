//! How long the store takes, minute by minute for the last hour: for people. Prometheus has its own counters.

use crate::rates::HandlerTimes;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many minutes are kept.
const MINUTES_MAX: usize = 60;

/// How long the calls of the last hour took.
#[derive(Debug)]
pub(crate) struct StoreTimes {
    since: Instant,
    /// Oldest first; a minute without calls may be missing.
    minutes: Mutex<VecDeque<(u64, HandlerTimes)>>,
}

// === impl StoreTimes ===

impl StoreTimes {
    pub(crate) fn new() -> Self {
        Self {
            since: Instant::now(),
            minutes: Mutex::default(),
        }
    }

    pub(crate) fn add(&self, took: Duration) {
        let now = self.minute();
        let mut minutes = self.lock();
        if minutes.back().is_none_or(|(minute, _)| *minute < now) {
            minutes.push_back((now, HandlerTimes::default()));
            if minutes.len() > MINUTES_MAX {
                minutes.pop_front();
            }
        }
        if let Some((_, times)) = minutes.back_mut() {
            times.add(took);
        }
    }

    /// How long 99 of 100 calls took at the most, in the last minute that had calls.
    pub(crate) fn p99(&self) -> Option<Duration> {
        self.lock().back().and_then(|(_, times)| times.p99())
    }

    /// The same for each minute that had calls, oldest first.
    pub(crate) fn trend(&self) -> Vec<Duration> {
        let minutes = self.lock();
        minutes.iter().filter_map(|(_, it)| it.p99()).collect()
    }

    fn minute(&self) -> u64 {
        self.since.elapsed().as_secs() / 60
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, HandlerTimes)>> {
        self.minutes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_minute_has_its_own_times_for_an_hour() {
        let times = StoreTimes::new();
        assert_eq!(times.p99(), None);
        for minute in 0..100 {
            times.add(Duration::from_millis(1 + minute));
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        assert_eq!(times.trend().len(), MINUTES_MAX);
        assert!(times.p99() >= Some(Duration::from_millis(100)));
    }
}
