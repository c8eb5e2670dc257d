//! How fast a subscription pushes: a window that grows while the handler accepts, and pauses while it refuses.

use crate::clock::Time;
use std::time::Duration;

const WINDOW_FIRST: usize = 8;
const WINDOW_MAX: usize = 1000;
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The window of one subscription.
#[derive(Debug)]
pub(in super::super) struct PushWindow {
    window: usize,
    running: usize,
    /// Pauses in a row, without a success in between.
    pauses: u32,
    paused_since: Time,
    paused_until: Time,
}

impl Default for PushWindow {
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

// === impl PushWindow ===

impl PushWindow {
    /// When the pause ends, if there is one.
    pub(super) fn pause(&self, now: Time) -> Option<Time> {
        (self.paused_until > now).then_some(self.paused_until)
    }

    /// How many more may be sent.
    pub(super) fn capacity(&self) -> usize {
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
        let mut window = PushWindow::default();
        let mut now = Time(0);
        let mut pauses = Vec::new();
        for _ in 0..12 {
            window.begin();
            window.refused(now, now);
            pauses.push(window.pause(now).unwrap().since(now).as_millis());
            now = window.pause(now).unwrap();
        }
        assert_eq!(pauses[..4], [100, 200, 400, 800]);
        assert_eq!(pauses[11], 60_000);
        window.begin();
        window.accepted();
        window.begin();
        window.refused(now, now);
        assert_eq!(window.pause(now), Some(now.plus(PAUSE_MIN)));
    }

    #[test]
    fn the_window_grows_and_shrinks() {
        let mut window = PushWindow::default();
        for _ in 0..WINDOW_FIRST {
            window.begin();
        }
        assert_eq!(window.capacity(), 0);
        for _ in 0..WINDOW_FIRST {
            window.accepted();
        }
        assert_eq!(window.capacity(), 2 * WINDOW_FIRST);
        window.begin();
        window.refused(Time(5), Time(5));
        assert_eq!(window.capacity(), WINDOW_FIRST);
        // Sent before the pause: it does not count again.
        window.begin();
        window.refused(Time(4), Time(6));
        assert_eq!(window.capacity(), WINDOW_FIRST);
    }
}
