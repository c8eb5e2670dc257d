//! How fast a queue may go: a bucket of permits, filled at the queue's rate, and a factor on that rate for handlers
//! that say they are overloaded.
//!
//! The factor is ours: production does not tell its own. A 429 or 503 halves it, another 5xx takes a tenth off, a
//! success gives a quarter back, and it stays between a sixteenth and one. It slows the filling only, never a permit
//! that is there: the retry of a single task keeps to its backoff.

use crate::clock::Time;
use crate::proto::tasks::{Queue, queue::State};
use std::time::Duration;

const SLOWEST: f64 = 1.0 / 16.0;

/// What a queue is allowed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    pub(crate) paused: bool,
    pub(crate) per_second: f64,
    pub(crate) burst: f64,
    pub(crate) concurrent: u32,
}

/// How much of its rate a queue has used.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    permits: f64,
    at: Time,
    factor: f64,
}

/// What an answer says about the handler's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandlerLoad {
    /// It succeeded.
    Succeeded,
    /// It says nothing about load.
    Neutral,
    /// It failed by itself.
    Failed,
    /// It asks for fewer requests.
    Overloaded,
}

// === impl Limits ===

impl Limits {
    pub(crate) fn of(queue: &Queue) -> Self {
        let rates = queue.rate_limits.unwrap_or_default();
        Self {
            paused: queue.state() != State::Running,
            per_second: rates.max_dispatches_per_second,
            burst: f64::from(rates.max_burst_size.max(1)),
            concurrent: u32::try_from(rates.max_concurrent_dispatches).unwrap_or(1),
        }
    }
}

// === impl RateLimiter ===

impl RateLimiter {
    /// A queue that has not dispatched yet.
    pub(crate) fn new() -> Self {
        Self {
            permits: f64::INFINITY,
            at: Time::default(),
            factor: 1.0,
        }
    }

    /// Takes a permit.
    ///
    /// # Errors
    /// With the moment when there will be one.
    pub(crate) fn take(&mut self, limits: &Limits, now: Time) -> Result<(), Time> {
        let rate = limits.per_second * self.factor;
        let filled = self.permits + now.since(self.at).as_secs_f64() * rate;
        self.permits = filled.min(limits.burst);
        self.at = now;
        // A little less than one: what rounding took away must not make a queue wait for nothing.
        if self.permits >= 0.999_999 {
            self.permits -= 1.0;
            return Ok(());
        }
        let missing = Duration::try_from_secs_f64((1.0 - self.permits) / rate);
        // Of a rate that is next to nothing, the permit never comes.
        let missing = missing.unwrap_or(Duration::MAX);
        Err(now.plus(missing.max(Duration::from_micros(1))))
    }

    /// Gives a permit back that was not used.
    pub(crate) fn give_back(&mut self) {
        self.permits += 1.0;
    }

    /// Goes slower or faster, as the handler's answers say.
    pub(crate) fn adapt(&mut self, load: HandlerLoad) {
        let factor = match load {
            HandlerLoad::Succeeded => self.factor * 1.25,
            HandlerLoad::Neutral => self.factor,
            HandlerLoad::Failed => self.factor * 0.9,
            HandlerLoad::Overloaded => self.factor * 0.5,
        };
        self.factor = factor.clamp(SLOWEST, 1.0);
    }
}
