//! Log lines that could be written again and again, and are written once a minute, or once an hour.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// A log that says the same thing all the time helps nobody.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Says a thing once in a while.
#[derive(Debug, Default)]
pub(crate) struct RateLimitedLog(Option<Instant>);

// === impl RateLimitedLog ===

impl RateLimitedLog {
    /// Whether it is to be said now; the next time is a minute later.
    pub(crate) fn is_due(&mut self) -> bool {
        self.is_due_after(TELL_EVERY)
    }

    fn is_due_after(&mut self, pause: Duration) -> bool {
        let due = self.0.is_none_or(|told| told.elapsed() >= pause);
        if due {
            self.0 = Some(Instant::now());
        }
        due
    }
}

/// A log line that many deliveries may ask for at once.
#[derive(Debug, Default)]
pub(crate) struct SharedLog(Mutex<RateLimitedLog>);

/// Pause between two lines that ask an operator for something.
const HOUR: Duration = Duration::from_secs(3600);

// === impl SharedLog ===

impl SharedLog {
    /// Whether a line is due; the next one is due an hour later.
    pub(crate) fn is_due(&self) -> bool {
        let mut log = self.0.lock().expect("no holder of this lock panics");
        log.is_due_after(HOUR)
    }
}

/// Log lines per reason and second; the others of that second are counted.
const LINES_MAX: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);

/// The lines of the current second, by reason.
#[derive(Debug, Default)]
pub(crate) struct TurnedAwayLog(Mutex<HashMap<&'static str, Second>>);

#[derive(Debug)]
struct Second {
    begun: Instant,
    lines: u32,
    left_out: u64,
}

// === impl TurnedAwayLog ===

impl TurnedAwayLog {
    /// Returns how many lines were left out since the last one, if a line is due.
    pub(crate) fn line(&self, reason: &'static str) -> Option<u64> {
        let now = Instant::now();
        let mut seconds = self.0.lock().expect("no holder of this lock panics");
        let second = seconds.entry(reason).or_insert(Second {
            begun: now,
            lines: 0,
            left_out: 0,
        });
        if now - second.begun >= SECOND {
            second.begun = now;
            second.lines = 0;
        }
        if second.lines == LINES_MAX {
            second.left_out += 1;
            return None;
        }
        second.lines += 1;
        Some(std::mem::take(&mut second.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thing_is_told_once_a_minute() {
        let mut log = RateLimitedLog::default();
        assert!(log.is_due());
        assert!(!log.is_due());
        tokio::time::advance(TELL_EVERY).await;
        assert!(log.is_due());
    }

    #[tokio::test(start_paused = true)]
    async fn ten_lines_a_second_are_written_and_the_others_counted() {
        let log = TurnedAwayLog::default();
        let lines: Vec<_> = (0..25).map(|_| log.line("unknown-path")).collect();
        assert_eq!(lines.iter().flatten().count(), 10);
        assert_eq!(log.line("other-method"), Some(0));
        tokio::time::advance(SECOND).await;
        assert_eq!(log.line("unknown-path"), Some(15));
        assert_eq!(log.line("unknown-path"), Some(0));
    }
}
