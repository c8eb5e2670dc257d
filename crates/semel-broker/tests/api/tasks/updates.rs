use super::*;

/// Updates the queue, or another one that `queue` names, by a mask.
async fn update(test: &TestQueue, queue: Value, mask: Option<&str>) -> ApiResult {
    let path = match queue["name"].as_str() {
        Some(name) => format!("/v2/{name}"),
        None => QUEUE.to_owned(),
    };
    let query = mask.map_or(String::new(), |mask| format!("?updateMask={mask}"));
    test.patch(&format!("{path}{query}"), queue).await
}

fn rates(per_second: i32, burst: i32, concurrent: i32) -> Value {
    json!({
        "maxDispatchesPerSecond": per_second, "maxBurstSize": burst, "maxConcurrentDispatches": concurrent,
    })
}

async fn configured() -> TestQueue {
    let retry = json!({ "retryConfig": { "maxAttempts": 5, "maxBackoff": "10s" } });
    TestQueue::with_queue(merged(rate(10.0, 5), retry)).await
}

#[tokio::test]
async fn only_masked_fields_change() {
    let test = configured().await;
    let mask = Some("rateLimits.maxDispatchesPerSecond");
    let updated = update(&test, rate(100.0, 7), mask).await.unwrap();
    assert_eq!(updated["rateLimits"], rates(100, 20, 5));
    assert_eq!(updated["retryConfig"]["maxAttempts"], 5);
    assert_eq!(test.queue().await.unwrap(), updated);
}

#[tokio::test]
async fn a_masked_message_is_replaced_whole() {
    let test = configured().await;
    let updated = ok(update(&test, rate(100.0, 0), Some("rate_limits"))).await;
    assert_eq!(updated["rateLimits"], rates(100, 20, 1000));
    assert_eq!(updated["retryConfig"]["maxAttempts"], 5);
}

#[tokio::test]
async fn without_a_mask_everything_is_replaced() {
    let test = configured().await;
    let updated = update(&test, rate(100.0, 0), None).await.unwrap();
    assert_eq!(updated["rateLimits"], rates(100, 20, 1000));
    assert_eq!(updated["retryConfig"]["maxAttempts"], 100);
}

#[tokio::test]
async fn an_empty_mask_changes_nothing() {
    let test = configured().await;
    let before = test.queue().await.unwrap();
    let updated = update(&test, rate(100.0, 0), Some("")).await.unwrap();
    assert_eq!(updated, before);
}

#[tokio::test]
async fn a_missing_queue_is_created() {
    let test = TestQueue::new(&[]).await;
    let named = |id: &str| {
        let name = json!({ "name": format!("projects/p/locations/l/queues/{id}") });
        merged(rate(10.0, 5), name)
    };
    let whole = update(&test, named("whole"), None).await.unwrap();
    assert_eq!(whole["rateLimits"], rates(10, 10, 5));
    assert_eq!(whole["state"], "RUNNING");
    let mask = Some("rate_limits.max_concurrent_dispatches");
    let masked = update(&test, named("masked"), mask).await.unwrap();
    assert_eq!(masked["rateLimits"], rates(500, 100, 5));
    test.delete(QUEUE).await.unwrap();
    let recreated = update(&test, json!({}), None).await;
    refused(recreated, "FAILED_PRECONDITION", QUEUE_USED_UP);
}

#[tokio::test]
async fn state_and_purge_time_are_not_for_setting() {
    let test = configured().await;
    test.tell_queue("pause").await;
    let wanted = json!({ "state": "RUNNING", "purgeTime": "1970-01-01T00:00:00Z" });
    let wanted = merged(rate(10.0, 5), wanted);
    for mask in [
        None,
        Some("state,purge_time,name,rate_limits.max_burst_size"),
    ] {
        let updated = update(&test, wanted.clone(), mask).await.unwrap();
        assert_eq!(updated["state"], "PAUSED");
        assert!(updated["purgeTime"].is_null());
        assert_eq!(updated["rateLimits"]["maxBurstSize"], 10);
    }
}

#[tokio::test]
async fn updates_are_refused_as_recorded() {
    let test = configured().await;
    let host = |host: &str| json!({ "httpTarget": { "uriOverride": { "host": host } } });
    let no_target = json!({ "httpTarget": {} });
    for (queue, mask, message) in [
        (
            json!({}),
            Some("rate_limits.bogus"),
            "Invalid mask: rate_limits.bogus",
        ),
        (
            rate(501.0, 0),
            None,
            "RateLimits.maxDispatchesPerSecond must be less than or equal to 500.",
        ),
        (
            json!({ "retryConfig": { "minBackoff": "11s" } }),
            Some("retry_config.min_backoff"),
            "RetryConfig.minBackoff must be less than or equal to RetryConfig.maxBackoff.",
        ),
        (
            host("http://x"),
            Some("state"),
            "Error in parsing HttpTarget. Invalid Host.",
        ),
    ] {
        invalid(update(&test, queue, mask).await, message);
    }
    ok(update(&test, host("example.net"), Some("http_target"))).await;
    let emptied = update(&test, no_target, Some("http_target.uri_override.host")).await;
    let message = "Error in parsing HttpTarget. Invalid uri_override.";
    invalid(emptied, message);
}
