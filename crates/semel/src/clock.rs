//! Time, handed in. A store judges every lease by its own clock; a store that lives in this
//! process is given one of these.

use std::fmt::Debug;
use std::sync::Mutex;
use std::time::Duration;

/// A moment on a store's clock: microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// Where a store in this process gets its time from.
///
/// ```
/// use semel::clock::{Clock, ManualClock, Time};
/// use std::time::Duration;
///
/// let clock = ManualClock::at(Time(1_000_000));
/// clock.advance(Duration::from_secs(2));
/// assert_eq!(clock.wall(), Time(3_000_000));
/// ```
pub trait Clock: Debug + Send + Sync + 'static {
    /// The time of day. It may jump in either direction.
    fn wall(&self) -> Time;
    /// Time since some moment in the past. It never goes back and never jumps.
    fn monotonic(&self) -> Duration;
}

/// The clocks of this machine.
///
/// ```
/// use semel::clock::{Clock, SystemClock, Time};
///
/// assert!(SystemClock::new().wall() > Time(1_700_000_000_000_000));
/// ```
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

/// A clock that moves only when it is told to: for tests.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<(Time, Duration)>,
}

// === impl Time ===

impl Time {
    /// The moment `by` later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(micros(by)))
    }

    /// How long from `earlier` to this moment; zero if `earlier` is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

// === impl SystemClock ===

impl SystemClock {
    /// The clocks of this machine.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where time comes in")]
    pub fn new() -> Self {
        Self {
            start: std::time::Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where time comes in")]
    fn wall(&self) -> Time {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Time(micros(since_1970.unwrap_or_default()))
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

// === impl ManualClock ===

impl ManualClock {
    /// A clock that stands at `wall`.
    #[must_use]
    pub const fn at(wall: Time) -> Self {
        Self {
            now: Mutex::new((wall, Duration::ZERO)),
        }
    }

    /// Lets time pass on both clocks.
    pub fn advance(&self, by: Duration) {
        let mut now = self.lock();
        *now = (now.0.plus(by), now.1.saturating_add(by));
    }

    /// Sets the time of day alone, as an operator or NTP would.
    pub fn set_wall(&self, wall: Time) {
        self.lock().0 = wall;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Time, Duration)> {
        self.now.lock().expect("no holder of this lock panics")
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Time {
        self.lock().0
    }

    fn monotonic(&self) -> Duration {
        self.lock().1
    }
}
