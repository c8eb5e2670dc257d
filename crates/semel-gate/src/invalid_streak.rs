//! Deliveries without a key, one after the other: mostly a rule that names what is not there, while every delivery is
//! acknowledged and kept as a letter.

use crate::flow::Flow;
use crate::naming::NamingError;
use crate::rate_limited_log::RateLimitedLog;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many deliveries of a route in a row had no key.
#[derive(Debug, Default)]
pub(crate) struct InvalidStreak {
    count: AtomicU32,
    log: Mutex<RateLimitedLog>,
}

/// So many in a row are no accident any more.
const ALARM_AFTER: u32 = 5;

/// Counts a delivery, and raises the alarm of its route or ends it.
pub(crate) fn note(flow: &Flow) {
    let (route, metrics) = (&flow.route, &flow.gate.metrics.doubt);
    let name = &route.settings.name;
    let streak = &route.invalid_streak;
    match &flow.identity {
        Ok(_) => {
            if streak.count.load(Ordering::Relaxed) > 0 {
                streak.count.store(0, Ordering::Relaxed);
                metrics.only_invalid(name, false);
            }
        }
        Err(NamingError::Invalid(invalid)) => {
            let count = streak
                .count
                .fetch_add(1, Ordering::Relaxed)
                .saturating_add(1);
            if count < ALARM_AFTER {
                return;
            }
            metrics.only_invalid(name, true);
            if streak.is_due() {
                tracing::warn!(
                    route = name,
                    reason = invalid.detail,
                    "only invalid deliveries arrive here: compare `key` and `require` with what is delivered"
                );
            }
        }
        Err(NamingError::NoRoom) => {}
    }
}

// === impl InvalidStreak ===

impl InvalidStreak {
    fn is_due(&self) -> bool {
        let log = self.log.lock();
        log.expect("nothing panics while it is held").is_due()
    }
}
