//! When a task that failed is tried again, and when it is given up.

use crate::clock::{Time, span_of};
use crate::proto::tasks::RetryConfig;
use std::time::Duration;

/// A task lives this long, tried or not.
const LIFE_MAX: Duration = Duration::from_secs(31 * 24 * 3600);

/// How failures are dealt with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// The first attempt counts. Nothing: without limit.
    pub(crate) attempts: Option<u32>,
    /// From the first attempt on. Nothing: without limit.
    pub(crate) span: Option<Duration>,
    pub(crate) backoff_min: Duration,
    pub(crate) backoff_max: Duration,
    pub(crate) doublings: u32,
}

// === impl Retry ===

impl Retry {
    /// From a configuration whose gaps are filled.
    pub(crate) fn of(config: &RetryConfig) -> Self {
        let span = |span: Option<prost_types::Duration>| span.as_ref().and_then(span_of);
        Self {
            attempts: u32::try_from(config.max_attempts).ok(),
            span: span(config.max_retry_duration).filter(|it| !it.is_zero()),
            backoff_min: span(config.min_backoff).unwrap_or_default(),
            backoff_max: span(config.max_backoff).unwrap_or_default(),
            doublings: u32::try_from(config.max_doublings).unwrap_or(0),
        }
    }

    /// How long to wait after this many failures, the first being 1: doubled so many times, then growing by
    /// the same step each time.
    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        let retries = failures.saturating_sub(1);
        let doublings = retries.min(self.doublings);
        let steps = u128::from(retries - doublings) + 1;
        let nanos = 1_u128
            .checked_shl(doublings)
            .and_then(|factor| factor.checked_mul(self.backoff_min.as_nanos()))
            .and_then(|step| step.checked_mul(steps))
            .and_then(|nanos| u64::try_from(nanos).ok());
        nanos.map_or(self.backoff_max, |nanos| {
            Duration::from_nanos(nanos).min(self.backoff_max)
        })
    }

    /// Whether a task that failed now is given up. With both limits, both must have passed.
    pub(crate) fn gives_up(&self, attempts: u32, first: Time, created: Time, now: Time) -> bool {
        let tried_out = self.attempts.map(|max| attempts >= max);
        let timed_out = self.span.map(|max| now.since(first) >= max);
        let past_limits = match (tried_out, timed_out) {
            (None, None) => false,
            (Some(passed), None) | (None, Some(passed)) => passed,
            (Some(tried_out), Some(timed_out)) => tried_out && timed_out,
        };
        past_limits || is_too_old(created, now)
    }
}

/// Whether a task that was created then is not stored any longer.
pub(crate) fn is_too_old(created: Time, now: Time) -> bool {
    now.since(created) >= LIFE_MAX
}
