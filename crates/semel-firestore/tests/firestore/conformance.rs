//! The suite that every store passes.

use crate::support::{Aged, settings};
use semel::conformance::{compare, suite};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_behaviour_holds() {
    let Some(settings) = settings() else { return };
    let subject = Aged::connect(settings).await;
    let report = suite(&subject).await.unwrap();
    assert!(!report.held.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(
    clippy::disallowed_methods,
    reason = "another seed each time, printed when it fails"
)]
async fn random_operations_are_answered_as_decide_says() {
    for guess in [true, false] {
        let Some(mut settings) = settings() else {
            return;
        };
        settings.guess = guess;
        let subject = Aged::connect(settings).await;
        let cases = if std::env::var_os("SEMEL_TEST_LONG").is_some() {
            500
        } else {
            16
        };
        compare(&subject, cases, 50, rand::random()).await.unwrap();
    }
}
