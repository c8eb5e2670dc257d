//! A queue's configuration: gaps filled, and refused where production refuses it.

use super::errors::invalid;
use super::target;
use crate::proto::tasks::{Queue, RateLimits, RetryConfig, queue::State};
use prost_types::Duration;
use tonic::Status;

const PER_SECOND_MAX: f64 = 500.0;
const CONCURRENT_MAX: i32 = 5000;
const CONCURRENT_DEFAULT: i32 = 1000;
const ATTEMPTS_DEFAULT: i32 = 100;
const DOUBLINGS_DEFAULT: i32 = 16;
const BACKOFF_MIN_DEFAULT: Duration = Duration {
    seconds: 0,
    nanos: 100_000_000,
};
const BACKOFF_MAX_DEFAULT: Duration = Duration {
    seconds: 3600,
    nanos: 0,
};

/// A new queue's configuration from what its creator wants.
pub(super) fn of_new_queue(wanted: Queue) -> Result<Queue, Status> {
    if let Some(target) = &wanted.http_target {
        target::check_tokens(target)?;
    }
    with_defaults(Queue {
        state: State::Running.into(),
        purge_time: None,
        ..wanted
    })
}

/// Checks a configuration and fills what is not set.
pub(super) fn with_defaults(mut queue: Queue) -> Result<Queue, Status> {
    queue.rate_limits = Some(rates_with_defaults(queue.rate_limits.unwrap_or_default())?);
    queue.retry_config = Some(retry_with_defaults(queue.retry_config.unwrap_or_default())?);
    if let Some(config) = &queue.stackdriver_logging_config {
        if !(0.0..=1.0).contains(&config.sampling_ratio) {
            return Err(invalid("sampling_ratio must be between 0.0 and 1.0."));
        }
        if config.sampling_ratio == 0.0 {
            queue.stackdriver_logging_config = None;
        }
    }
    queue.http_target = queue.http_target.map(target::checked).transpose()?;
    Ok(queue)
}

/// Checks how failures are to be dealt with and fills what is not set.
pub(super) fn retry_with_defaults(mut retry: RetryConfig) -> Result<RetryConfig, Status> {
    if retry.max_attempts < -1 {
        return Err(invalid(
            "RetryConfig.maxAttempts must be greater or equal to -1.",
        ));
    }
    let is_negative =
        |span: Option<Duration>| span.is_some_and(|it| it.seconds < 0 || it.nanos < 0);
    not_negative("RetryConfig.maxDoublings", retry.max_doublings < 0)?;
    not_negative("RetryConfig.minBackoff", is_negative(retry.min_backoff))?;
    not_negative("RetryConfig.maxBackoff", is_negative(retry.max_backoff))?;
    if let Some(span) = &retry.max_retry_duration {
        let seconds = "RetryConfig.max_retry_duration.seconds";
        not_negative(seconds, span.seconds < 0)?;
        if span.nanos != 0 {
            return Err(invalid(
                "RetryConfig.max_retry_duration.nanos cannot be set.",
            ));
        }
    }
    let is_set = |span: &Duration| (span.seconds, span.nanos) != (0, 0);
    retry.max_retry_duration = retry.max_retry_duration.filter(is_set);
    let (min, max) = (retry.min_backoff, retry.max_backoff);
    let min = min.filter(is_set).unwrap_or(BACKOFF_MIN_DEFAULT);
    let max = max.filter(is_set).unwrap_or(BACKOFF_MAX_DEFAULT);
    if (min.seconds, min.nanos) > (max.seconds, max.nanos) {
        return Err(invalid(
            "RetryConfig.minBackoff must be less than or equal to RetryConfig.maxBackoff.",
        ));
    }
    retry.min_backoff = Some(min);
    retry.max_backoff = Some(max);
    retry.max_attempts = or(retry.max_attempts, ATTEMPTS_DEFAULT);
    retry.max_doublings = or(retry.max_doublings, DOUBLINGS_DEFAULT);
    Ok(retry)
}

fn rates_with_defaults(rates: RateLimits) -> Result<RateLimits, Status> {
    let per_second = rates.max_dispatches_per_second;
    let concurrent = rates.max_concurrent_dispatches;
    not_negative("RateLimits.maxDispatchesPerSecond", per_second < 0.0)?;
    // Also refuses what is not a number.
    if !(0.0..=PER_SECOND_MAX).contains(&per_second) {
        return Err(invalid(
            "RateLimits.maxDispatchesPerSecond must be less than or equal to 500.",
        ));
    }
    not_negative("RateLimits.maxConcurrentDispatches", concurrent < 0)?;
    if concurrent > CONCURRENT_MAX {
        return Err(invalid(
            "RateLimits.maxConcurrentDispatches must be less than or equal to 5000.",
        ));
    }
    let per_second = if per_second == 0.0 {
        PER_SECOND_MAX
    } else {
        per_second
    };
    Ok(RateLimits {
        max_dispatches_per_second: per_second,
        max_burst_size: burst(per_second),
        max_concurrent_dispatches: or(concurrent, CONCURRENT_DEFAULT),
    })
}

/// A fifth of a second's dispatches, at least ten.
fn burst(per_second: f64) -> i32 {
    let reached = |size: &i32| f64::from(*size) * 5.0 <= per_second;
    (11..=100).take_while(reached).last().unwrap_or(10)
}

fn or(value: i32, default: i32) -> i32 {
    if value == 0 { default } else { value }
}

fn not_negative(field: &str, is_negative: bool) -> Result<(), Status> {
    match is_negative {
        true => Err(invalid(format!("{field} cannot be negative."))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_burst_follows_the_rate_as_recorded() {
        let recorded = [(0.5, 10), (54.0, 10), (77.0, 15), (333.0, 66), (500.0, 100)];
        for (rate, expected) in recorded {
            assert_eq!(burst(rate), expected, "{rate}");
        }
    }

    #[test]
    fn backoff_keeps_its_precision_and_unlimited_stays() {
        let precise = |seconds, nanos| Some(Duration { seconds, nanos });
        let retry = RetryConfig {
            max_attempts: -1,
            min_backoff: precise(1, 234_567_891),
            max_backoff: precise(10, 987_654_321),
            ..RetryConfig::default()
        };
        let filled = retry_with_defaults(retry).unwrap();
        assert_eq!(filled.max_attempts, -1);
        assert_eq!(filled.min_backoff, precise(1, 234_567_891));
        assert_eq!(filled.max_backoff, precise(10, 987_654_321));
        assert_eq!(filled.max_doublings, 16);
    }
}
