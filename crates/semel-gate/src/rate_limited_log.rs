//! Log lines that could be written again and again, and are written once a minute.

use std::time::Duration;
use tokio::time::Instant;

/// A log that says the same thing all the time helps nobody.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Says a thing once in a while.
#[derive(Debug, Default)]
pub(crate) struct RateLimitedLog(Option<Instant>);

// === impl RateLimitedLog ===

impl RateLimitedLog {
    pub(crate) fn tell(&mut self, tell: impl FnOnce()) {
        if self.0.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            self.0 = Some(Instant::now());
            tell();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thing_is_told_once_a_minute() {
        let (mut log, mut told) = (RateLimitedLog::default(), 0);
        log.tell(|| told += 1);
        log.tell(|| told += 1);
        assert_eq!(told, 1);
        tokio::time::advance(TELL_EVERY).await;
        log.tell(|| told += 1);
        assert_eq!(told, 2);
    }
}
