//! The example runs, and what it asserts holds.

#[path = "../examples/transaction.rs"]
mod transaction;

#[tokio::test]
async fn effect_and_record_commit_together() {
    let url = testbed::fresh_database("example").unwrap();
    transaction::reserve_twice(&url).await.unwrap();
}
