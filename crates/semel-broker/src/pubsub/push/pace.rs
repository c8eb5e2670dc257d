//! How fast a subscription pushes: a window that grows while the handler accepts, and pauses while it refuses.

use crate::clock::Time;
use std::time::Duration;

const WINDOW_FIRST: usize = 8;
const WINDOW_MAX: usize = 1000;
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The pace of one subscription.
#[derive(Debug)]
pub(in super::super) struct Pace {
    window: usize,
    running: usize,
    /// Pauses in a row, without a success in between.
    pauses: u32,
    paused_since: Time,
    paused_until: Time,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            window: WINDOW_FIRST,
            running: 0,
            pauses: 0,
            paused_since: Time(i64::MIN),
            paused_until: Time(i64::MIN),
        }
    }
}

// === impl Pace ===

impl Pace {
    /// When the pause ends, if there is one.
    pub(super) fn pause(&self, now: Time) -> Option<Time> {
        (self.paused_until > now).then_some(self.paused_until)
    }

    /// How many more may be sent.
    pub(super) fn room(&self) -> usize {
        self.window.saturating_sub(self.running)
    }

    pub(super) fn begin(&mut self) {
        self.running += 1;
    }

    /// It succeeded: the window doubles while all do.
    pub(super) fn accepted(&mut self) {
        self.running = self.running.saturating_sub(1);
        self.window = (self.window + 1).min(WINDOW_MAX);
        self.pauses = 0;
    }

    /// It failed. Those that were under way when a pause began do not lengthen it.
    pub(super) fn refused(&mut self, since: Time, now: Time) {
        self.running = self.running.saturating_sub(1);
        if since < self.paused_since {
            return;
        }
        self.window = (self.window / 2).max(1);
        let doublings = self.pauses.min(20);
        let pause = PAUSE_MIN.saturating_mul(1 << doublings).min(PAUSE_MAX);
        self.pauses += 1;
        self.paused_since = now;
        self.paused_until = now.plus(pause);
    }

    pub(in super::super) fn is_running(&self) -> bool {
        self.running > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_end_with_a_success() {
        let mut pace = Pace::default();
        let mut now = Time(0);
        let mut pauses = Vec::new();
        for _ in 0..12 {
            pace.begin();
            pace.refused(now, now);
            pauses.push(pace.pause(now).unwrap().since(now).as_millis());
            now = pace.pause(now).unwrap();
        }
        assert_eq!(pauses[..4], [100, 200, 400, 800]);
        assert_eq!(pauses[11], 60_000);
        pace.begin();
        pace.accepted();
        pace.begin();
        pace.refused(now, now);
        assert_eq!(pace.pause(now), Some(now.plus(PAUSE_MIN)));
    }

    #[test]
    fn the_window_grows_and_shrinks() {
        let mut pace = Pace::default();
        for _ in 0..WINDOW_FIRST {
            pace.begin();
        }
        assert_eq!(pace.room(), 0);
        for _ in 0..WINDOW_FIRST {
            pace.accepted();
        }
        assert_eq!(pace.room(), 2 * WINDOW_FIRST);
        pace.begin();
        pace.refused(Time(5), Time(5));
        assert_eq!(pace.room(), WINDOW_FIRST);
        // Sent before the pause: it does not count again.
        pace.begin();
        pace.refused(Time(4), Time(6));
        assert_eq!(pace.room(), WINDOW_FIRST);
    }
}
