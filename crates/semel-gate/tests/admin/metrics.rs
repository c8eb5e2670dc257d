//! Health and metrics.

use super::{kept, strict};
use crate::support::prelude::*;

#[tokio::test]
async fn letters_that_wait_and_seconds_of_the_store_are_told() {
    let (bed, _) = kept(500).await;
    bed.task("t2").await;
    for line in [
        "\nsemel_letters_waiting 1\n",
        "\nsemel_store_seconds_count{verb=\"claim\"} 2\n",
        "\nsemel_store_seconds_count{verb=\"fail\"} 1\n",
        "\nsemel_store_seconds_count{verb=\"complete\"} 1\n",
        "\nsemel_store_seconds_count{verb=\"letter_put\"} 1\n",
    ] {
        bed.counts(line).await;
    }
}

#[tokio::test]
async fn a_gate_without_its_store_lives_and_is_not_ready() {
    let bed = strict().await;
    assert_eq!(bed.admin("/readyz").await.status, 200);
    bed.store.is(Down::Everything);
    assert_eq!(bed.admin("/healthz").await.status, 200);
    let ready = bed.admin("/readyz").await;
    let why = "the store does not take writes; the log says why\n";
    assert_eq!((ready.status, ready.text()), (503, why));
    bed.admin("/healthz").await.tells("does not take writes");
    // What is not in the store is still counted.
    assert_eq!(bed.admin("/metrics").await.status, 200);
    bed.store.is(Down::Nothing);
    assert_eq!(bed.admin("/readyz").await.status, 200);
    assert_eq!(bed.admin("/healthz").await.text(), "alive\n");
}

#[tokio::test]
async fn a_store_that_reads_and_does_not_write_is_not_ready() {
    let bed = strict().await;
    bed.store.is(Down::Outcomes);
    assert_eq!(bed.admin("/letters").await.status, 200);
    assert_eq!(bed.admin("/readyz").await.status, 503);
    bed.store.is(Down::Nothing);
    assert_eq!(bed.admin("/readyz").await.status, 200);
}
