//! The store's own clock. It starts where the directory's clock had come to, advances with the
//! monotonic clock, and follows the time of day only forwards: no record expires early because
//! somebody set the time back and forth.

use semel::clock::{Clock, Time};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A clock that never goes back, neither while it runs nor across a restart.
#[derive(Debug)]
pub(crate) struct StoreClock {
    source: Arc<dyn Clock>,
    last: Mutex<Reading>,
}

#[derive(Debug)]
struct Reading {
    time: Time,
    monotonic: Duration,
}

// === impl StoreClock ===

impl StoreClock {
    /// Goes on from what the directory remembers.
    pub(crate) fn resume(source: Arc<dyn Clock>, remembered: Time) -> Self {
        let last = Reading {
            time: remembered.max(source.wall()),
            monotonic: source.monotonic(),
        };
        Self {
            source,
            last: Mutex::new(last),
        }
    }

    /// The time by which every lease and every retention is judged.
    pub(crate) fn now(&self) -> Time {
        let mut last = self.last.lock().expect("no holder of this mutex panics");
        let monotonic = self.source.monotonic();
        let passed = monotonic.saturating_sub(last.monotonic);
        *last = Reading {
            time: last.time.plus(passed).max(self.source.wall()),
            monotonic: monotonic.max(last.monotonic),
        };
        last.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel::clock::ManualClock;

    const HOUR: Duration = Duration::from_secs(3_600);
    const NOON: Time = Time(1_000_000_000_000);

    fn clock() -> (Arc<ManualClock>, StoreClock) {
        let source = Arc::new(ManualClock::at(NOON));
        let clock = StoreClock::resume(Arc::clone(&source) as Arc<dyn Clock>, Time(0));
        (source, clock)
    }

    #[test]
    fn a_time_of_day_that_jumps_back_is_not_followed() {
        let (source, clock) = clock();
        source.set_wall(Time(NOON.0 - 3_600_000_000));
        assert_eq!(clock.now(), NOON);
        source.advance(Duration::from_secs(5));
        assert_eq!(clock.now(), NOON.plus(Duration::from_secs(5)));
    }

    #[test]
    fn a_time_of_day_that_jumps_ahead_is_followed() {
        let (source, clock) = clock();
        source.set_wall(NOON.plus(HOUR));
        assert_eq!(clock.now(), NOON.plus(HOUR));
        source.set_wall(NOON);
        source.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), NOON.plus(HOUR).plus(Duration::from_secs(1)));
    }

    #[test]
    fn what_the_directory_remembers_is_the_floor() {
        let source = Arc::new(ManualClock::at(NOON));
        let clock = StoreClock::resume(Arc::clone(&source) as Arc<dyn Clock>, NOON.plus(HOUR));
        source.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), NOON.plus(HOUR).plus(Duration::from_secs(1)));
    }

    #[test]
    fn it_moves_at_one_second_per_second() {
        let (source, clock) = clock();
        for second in 1..=10 {
            source.advance(Duration::from_secs(1));
            assert_eq!(clock.now(), NOON.plus(Duration::from_secs(second)));
        }
    }
}
