//! How long a handler takes, in counters that grow by a quarter: enough to say how long 99 of 100 calls take.

use std::time::Duration;

/// Counters per doubling.
const PER_DOUBLING: u32 = 4;

/// From a microsecond to some seventy minutes.
const COUNTERS: usize = 32 * PER_DOUBLING as usize;

/// How long calls took.
#[derive(Debug)]
pub(crate) struct HandlerTimes {
    counters: [u64; COUNTERS],
    calls: u64,
}

// === impl HandlerTimes ===

impl HandlerTimes {
    pub(crate) fn add(&mut self, took: Duration) {
        let place = place(took).min(COUNTERS - 1);
        if let Some(counter) = self.counters.get_mut(place) {
            *counter += 1;
            self.calls += 1;
        }
    }

    /// How many calls there were.
    pub(crate) const fn calls(&self) -> u64 {
        self.calls
    }

    /// How long 99 of 100 calls took at the most, rounded up by a quarter at the most.
    pub(crate) fn p99(&self) -> Option<Duration> {
        let enough = (self.calls * 99).div_ceil(100);
        let mut counted = 0;
        let reached = |count: &u64| {
            counted += count;
            counted >= enough && enough > 0
        };
        self.counters.iter().position(reached).map(end)
    }
}

impl Default for HandlerTimes {
    fn default() -> Self {
        Self {
            counters: [0; COUNTERS],
            calls: 0,
        }
    }
}

/// Which counter a time belongs to: its doubling, and which quarter of that.
fn place(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let micros = micros.clamp(1, 1 << (COUNTERS / PER_DOUBLING as usize));
    let doubling = micros.ilog2();
    let beyond = micros - (1 << doubling);
    let quarter = (beyond * u64::from(PER_DOUBLING)) >> doubling;
    usize::try_from(doubling * PER_DOUBLING).unwrap_or(usize::MAX)
        + usize::try_from(quarter).unwrap_or(0)
}

/// The longest time that a counter counts, nearly.
fn end(place: usize) -> Duration {
    let per = PER_DOUBLING as usize;
    let (doubling, quarter) = (place / per, place % per + 1);
    let begin = 1_u64 << doubling;
    Duration::from_micros(begin + (begin * quarter as u64).div_ceil(u64::from(PER_DOUBLING)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_a_hundred_does_not_count() {
        let mut times = HandlerTimes::default();
        assert_eq!(times.p99(), None);
        for _ in 0..99 {
            times.add(Duration::from_millis(10));
        }
        times.add(Duration::from_secs(10));
        let p99 = times.p99().unwrap();
        assert!((10..=13).contains(&p99.as_millis()), "{p99:?}");
        times.add(Duration::from_secs(10));
        let p99 = times.p99().unwrap();
        assert!((10..=13).contains(&p99.as_secs()), "{p99:?}");
    }

    #[test]
    fn the_shortest_and_the_longest_time_are_counted() {
        let mut times = HandlerTimes::default();
        times.add(Duration::ZERO);
        assert!(times.p99().unwrap() <= Duration::from_micros(2));
        times.add(Duration::MAX);
        assert!(times.p99().unwrap() > Duration::from_secs(3_600));
    }
}
