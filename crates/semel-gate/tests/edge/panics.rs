//! A gate that fails keeps its reasons to itself.

use crate::support::prelude::*;

/// `semel check` refuses such a timeout: no timestamp is so far away.
#[tokio::test]
async fn what_a_panic_says_is_not_told_to_a_client() {
    const TEN_THOUSAND_YEARS: Duration = Duration::from_secs(10_000 * 366 * 24 * 3600);
    let bed = Bed::terms(|terms| terms.timeout = TEN_THOUSAND_YEARS).await;
    for sender in [Sender::Api, Sender::Task] {
        let answer = refused(&bed, sender.sends("k", "{}"), 500, "gate-broken").await;
        assert!(!answer.text().contains("panicked"), "{answer:?}");
    }
}
