//! The broker's time. It runs with the machine's, and can be put forward: then what was due in
//! between is due now.
//!
//! It never goes back, and is counted by a clock that nobody sets. That one stands still while the machine sleeps, so
//! the time of day is looked at, too: who closes a laptop in the evening finds the broker on time in the morning.

use prost_types::{Duration as ProtoDuration, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

const MICROS: i64 = 1_000_000;

/// When the time of day is ahead by more than this, the machine slept, or its clock was set.
const SLEPT: Duration = Duration::from_secs(2);

/// How long is waited at most without a look at the time of day.
const LOOK_WITHIN: Duration = Duration::from_secs(30);

/// A moment: microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Time(pub(crate) i64);

/// The time of a broker; clones show the same.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Arc<ClockInner>);

#[derive(Debug)]
struct ClockInner {
    started: Instant,
    /// The time of day when it was started, and for how long the machine slept since: microseconds.
    base: AtomicI64,
    /// How far it was put forward: microseconds.
    forward: AtomicI64,
    moved: Notify,
}

// === impl Time ===

impl Time {
    /// The moment `by` later.
    #[must_use]
    pub(crate) fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(micros(by)))
    }

    /// The moment `by` earlier.
    #[must_use]
    pub(crate) fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(micros(by)))
    }

    /// How long from `earlier` to this moment; zero if `earlier` is not earlier.
    #[must_use]
    pub(crate) fn since(self, earlier: Self) -> Duration {
        let apart = self.0.saturating_sub(earlier.0);
        Duration::from_micros(u64::try_from(apart).unwrap_or(0))
    }

    /// As the interfaces write it.
    #[must_use]
    pub(crate) fn timestamp(self) -> Timestamp {
        let nanos = self.0.rem_euclid(MICROS) * 1_000;
        Timestamp {
            seconds: self.0.div_euclid(MICROS),
            nanos: i32::try_from(nanos).expect("below a second"),
        }
    }

    /// As the interfaces write it, to the microsecond.
    #[must_use]
    pub(crate) fn of(timestamp: &Timestamp) -> Self {
        let seconds = timestamp.seconds.saturating_mul(MICROS);
        Self(seconds.saturating_add(i64::from(timestamp.nanos) / 1_000))
    }
}

// === impl Clock ===

impl Clock {
    /// Starts at the machine's time of day, put forward by as much as an earlier one was.
    #[must_use]
    pub(crate) fn start(forward: Duration) -> Self {
        Self(Arc::new(ClockInner {
            started: Instant::now(),
            base: AtomicI64::new(time_of_day().0),
            forward: AtomicI64::new(micros(forward)),
            moved: Notify::new(),
        }))
    }

    /// What it shows.
    #[must_use]
    pub(crate) fn now(&self) -> Time {
        self.wall().plus(self.ahead())
    }

    /// What it would show had it never been put forward: the machine's time of day, for who knows no
    /// other.
    #[must_use]
    pub(crate) fn wall(&self) -> Time {
        let elapsed = self.0.started.elapsed();
        let counted = Time(self.0.base.load(Ordering::Acquire)).plus(elapsed);
        let today = time_of_day();
        if today.since(counted) <= SLEPT {
            return counted;
        }
        let base = today.minus(elapsed).0;
        self.0.base.fetch_max(base, Ordering::AcqRel);
        self.0.moved.notify_waiters();
        today
    }

    /// How far it was put forward in all.
    #[must_use]
    pub(crate) fn ahead(&self) -> Duration {
        let micros = self.0.forward.load(Ordering::Acquire);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }

    /// Puts it forward; everybody who waits for a moment in between is woken. Answers by how much it
    /// has been put forward in all.
    pub(crate) fn advance(&self, by: Duration) -> Duration {
        self.0.forward.fetch_add(micros(by), Ordering::AcqRel);
        self.0.moved.notify_waiters();
        self.ahead()
    }

    /// Waits for a moment.
    pub(crate) async fn sleep_until(&self, moment: Time) {
        loop {
            let moved = self.0.moved.notified();
            let mut moved = std::pin::pin!(moved);
            // Listens before it looks, so that no step of the clock falls in between.
            moved.as_mut().enable();
            let left = moment.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = moved => {}
                () = tokio::time::sleep(left.min(LOOK_WITHIN)) => {}
            }
        }
    }

    /// Waits for a while, which may be cut short by putting the clock forward.
    pub(crate) async fn sleep(&self, span: Duration) {
        self.sleep_until(self.now().plus(span)).await;
    }
}

/// A span as the interfaces write it; nothing for a negative one.
#[must_use]
pub(crate) fn span_of(span: &ProtoDuration) -> Option<Duration> {
    let seconds = u64::try_from(span.seconds).ok()?;
    let nanos = u32::try_from(span.nanos).ok()?;
    Some(Duration::new(seconds, nanos))
}

/// A span, as the interfaces write it.
#[must_use]
pub(crate) fn proto_span(span: Duration) -> ProtoDuration {
    ProtoDuration {
        seconds: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(span.subsec_nanos()).expect("below a second"),
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the broker's one look at the machine's clock"
)]
fn time_of_day() -> Time {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    Time(micros(since.unwrap_or_default()))
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn putting_the_clock_forward_wakes_who_waits() {
        let clock = Clock::start(Duration::ZERO);
        let week = Duration::from_secs(7 * 24 * 3600);
        let waiting = clock.clone();
        let waiter = tokio::spawn(async move { waiting.sleep(week).await });
        tokio::task::yield_now().await;
        let wall = clock.wall();
        assert_eq!(clock.advance(week), week);
        assert!(clock.wall().since(wall) < week);
        tokio::time::timeout(Duration::from_secs(5), waiter)
            .await
            .unwrap()
            .unwrap();
    }

    #[tokio::test]
    async fn a_machine_that_slept_is_caught_up_with() {
        let clock = Clock::start(Duration::from_secs(60));
        let night = Duration::from_secs(8 * 3600);
        let before = clock.now();
        let waiting = clock.clone();
        let waiter = tokio::spawn(async move { waiting.sleep_until(before.plus(night / 2)).await });
        tokio::task::yield_now().await;
        // As if eight hours had passed that were not counted.
        clock.0.base.fetch_sub(micros(night), Ordering::AcqRel);
        let woken = clock.now();
        assert!(woken >= before, "{woken:?} {before:?}");
        assert!(woken.since(before) < Duration::from_secs(60));
        assert_eq!(clock.ahead(), Duration::from_secs(60));
        assert!(clock.now() >= woken);
        // Who waited looks again; only half of the night was left out of the wait.
        assert!(!waiter.is_finished());
        clock.advance(night);
        waiter.await.unwrap();
    }

    #[test]
    fn moments_survive_being_written() {
        for micros in [0, 1, 999_999, 1_700_000_000_123_456, -1] {
            assert_eq!(Time::of(&Time(micros).timestamp()), Time(micros));
        }
    }
}
