//! Whom a route takes deliveries of: tokens, the keys they are verified with, signed webhooks, and callers.

pub(crate) mod issuer;
mod bad_tokens;
mod tokens;
mod keys;
mod callers;
mod webhooks;
mod handshake;

use crate::support::{Answer, Bed};
use semel::clock::{Clock, SystemClock};

/// Seconds since 1970.
fn now() -> i64 {
    i64::try_from(SystemClock::new().wall().0 / 1_000_000).unwrap()
}

/// A refusal for this reason, which left nothing behind.
async fn refused(bed: &Bed, answer: &Answer, reason: &str, case: &str) {
    assert_eq!(answer.status, 401, "{case}: {answer:?}");
    answer.is_problem(401, "unverified");
    let counted = format!("semel_unverified_total{{route=\"work\",reason=\"{reason}\"}}");
    let metrics = bed.admin("/metrics").await;
    assert!(
        metrics.text().contains(&counted),
        "{case}: {}",
        lines(metrics.text())
    );
    left_nothing(bed, case).await;
}

/// Neither a record nor a letter, and the handler was not asked.
async fn left_nothing(bed: &Bed, case: &str) {
    assert!(bed.records().await.is_empty(), "{case}");
    assert!(bed.letters().await.is_empty(), "{case}");
    assert_eq!(bed.runs(), 0, "{case}");
}

/// The reasons that were counted.
fn lines(metrics: &str) -> String {
    let counted = metrics.lines().filter(|line| line.contains("unverified"));
    counted.collect::<Vec<_>>().join("\n")
}
