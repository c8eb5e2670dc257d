//! The server's clock, as its answers tell it.

use semel::clock::Time;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long a time that the server told is better than a newer one: clocks drift.
const FRESH: Duration = Duration::from_secs(10);

/// What time it is for the server.
#[derive(Debug, Default)]
pub(crate) struct ServerClock {
    /// In tests: by how many microseconds the server's clock counts as further than it is.
    ahead: AtomicU64,
    /// A time that the server told, and when it was asked.
    told: Mutex<Option<(Time, Instant)>>,
}

// === impl ServerClock ===

impl ServerClock {
    /// The server's time, or a little later, if it has told one: never earlier, so that a lease which begins now lasts.
    pub(crate) fn now(&self) -> Option<Time> {
        let told = *self.told.lock().expect("no holder of this lock panics");
        let (time, asked) = told?;
        Some(self.ahead(time.plus(asked.elapsed())))
    }

    /// A time that the server told to whoever asked then. The one that tells most exactly is kept, while it is fresh.
    pub(crate) fn told(&self, time: Time, asked: Instant) -> Time {
        let mut told = self.told.lock().expect("no holder of this lock panics");
        let is_better = told.is_none_or(|(old, old_asked)| {
            let age = old_asked.elapsed();
            // A time beyond what we take for the present one shows that the clock there went ahead of ours.
            let is_beyond = time > old.plus(age);
            age > FRESH || is_beyond || time.plus(asked.elapsed()) <= old.plus(age)
        });
        if is_better {
            *told = Some((time, asked));
        }
        drop(told);
        self.ahead(time)
    }

    fn ahead(&self, time: Time) -> Time {
        let ahead = self.ahead.load(Ordering::SeqCst);
        time.plus(Duration::from_micros(ahead))
    }

    /// From now on the server's clock counts as this much further.
    pub(crate) fn let_pass(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.ahead.fetch_add(micros, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_that_tells_most_exactly_is_kept_and_one_beyond_it_is_believed() {
        let clock = ServerClock::default();
        let second = Duration::from_secs(1);
        clock.told(Time(10_000_000), Instant::now());
        assert_eq!(clock.now(), Some(Time(10_000_000)));
        // An answer that took a second tells no more than that it is so late at most.
        let asked = Instant::now();
        tokio::time::advance(second).await;
        clock.told(Time(10_500_000), asked);
        assert_eq!(clock.now(), Some(Time(11_000_000)));
        // The clock there went ahead of ours.
        clock.told(Time(15_000_000), Instant::now());
        assert_eq!(clock.now(), Some(Time(15_000_000)));
        // An earlier one tells more exactly.
        clock.told(Time(14_000_000), Instant::now());
        assert_eq!(clock.now(), Some(Time(14_000_000)));
    }
}
