//! Log lines that could be written again and again, and are written once a minute, or once an hour.

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
}
