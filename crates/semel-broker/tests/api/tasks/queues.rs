use super::*;

async fn list(test: &TestQueue, query: &str) -> ApiResult {
    test.get(&format!("{PARENT}/queues?{query}")).await
}

#[tokio::test]
async fn a_queue_has_the_recorded_defaults() {
    let test = TestQueue::new(&[]).await;
    let expected = json!({
        "name": QUEUE_NAME,
        "rateLimits": { "maxDispatchesPerSecond": 500, "maxBurstSize": 100, "maxConcurrentDispatches": 1000 },
        "retryConfig": { "maxAttempts": 100, "minBackoff": "0.100s", "maxBackoff": "3600s", "maxDoublings": 16 },
        "state": "RUNNING",
    });
    assert_eq!(test.queue().await.unwrap(), expected);
}

/// Part of a queue's configuration, and what is said about it.
const WRONG_CONFIGS: &str = r#"
    {"rateLimits": {"maxDispatchesPerSecond": 501}} | RateLimits.maxDispatchesPerSecond must be less than or equal to 500.
    {"rateLimits": {"maxDispatchesPerSecond": -1}} | RateLimits.maxDispatchesPerSecond cannot be negative.
    {"rateLimits": {"maxConcurrentDispatches": 5001}} | RateLimits.maxConcurrentDispatches must be less than or equal to 5000.
    {"rateLimits": {"maxConcurrentDispatches": -1}} | RateLimits.maxConcurrentDispatches cannot be negative.
    {"retryConfig": {"maxAttempts": -2}} | RetryConfig.maxAttempts must be greater or equal to -1.
    {"retryConfig": {"maxDoublings": -1}} | RetryConfig.maxDoublings cannot be negative.
    {"retryConfig": {"minBackoff": "-1s"}} | RetryConfig.minBackoff cannot be negative.
    {"retryConfig": {"maxBackoff": "-1s"}} | RetryConfig.maxBackoff cannot be negative.
    {"retryConfig": {"maxRetryDuration": "-1s"}} | RetryConfig.max_retry_duration.seconds cannot be negative.
    {"retryConfig": {"maxRetryDuration": "30.9s"}} | RetryConfig.max_retry_duration.nanos cannot be set.
    {"retryConfig": {"minBackoff": "2s", "maxBackoff": "1s"}} | RetryConfig.minBackoff must be less than or equal to RetryConfig.maxBackoff.
"#;

/// Queues with a wrong part are refused; there are so many.
async fn are_refused(part: &str, count: usize) {
    let test = TestQueue::new(&[]).await;
    let all = rows(WRONG_CONFIGS).into_iter();
    let wrong: Vec<[&str; 2]> = all.filter(|[queue, _]| queue.contains(part)).collect();
    assert_eq!(wrong.len(), count);
    for [queue, message] in wrong {
        let queue = serde_json::from_str(queue).unwrap();
        invalid(test.create_queue("other", queue).await, message);
    }
}

#[tokio::test]
async fn wrong_rates_are_refused_in_productions_words() {
    are_refused("rateLimits", 4).await;
}

#[tokio::test]
async fn wrong_retries_are_refused_in_productions_words() {
    are_refused("retryConfig", 7).await;
}

#[tokio::test]
async fn a_sampling_ratio_is_a_share() {
    let test = TestQueue::new(&[]).await;
    let sampling = |ratio: Value| json!({ "stackdriverLoggingConfig": { "samplingRatio": ratio } });
    for wrong in [json!(1.5), json!(-0.5), json!("NaN")] {
        let message = "sampling_ratio must be between 0.0 and 1.0.";
        let created = test.create_queue("other", sampling(wrong)).await;
        invalid(created, message);
    }
    let none = test.create_queue("zero", sampling(json!(0.0))).await;
    assert!(none.unwrap()["stackdriverLoggingConfig"].is_null());
    let some = test.create_queue("some", sampling(json!(0.25))).await;
    assert_eq!(
        some.unwrap()["stackdriverLoggingConfig"]["samplingRatio"],
        0.25
    );
}

#[tokio::test]
async fn names_are_refused_with_the_recorded_details() {
    let test = TestQueue::new(&[]).await;
    let unknown = test.get(&format!("{PARENT}/queues/unknown")).await;
    refused(unknown, "NOT_FOUND", NO_QUEUE);
    let invalid = test.create_queue("not_valid", json!({})).await.unwrap_err();
    assert!(
        invalid
            .message
            .starts_with("Queue ID \"not_valid\" can contain only letters")
    );
    let help = &invalid.details[0];
    assert_eq!(help["@type"], "type.googleapis.com/google.rpc.Help");
    assert_eq!(help["links"][0]["description"], "Definition of queue ID");
}

#[tokio::test]
async fn a_queue_is_created_once_and_where_it_is_said_to_be() {
    let test = TestQueue::new(&[]).await;
    let again = test.create_queue("q", json!({})).await;
    refused(again, "ALREADY_EXISTS", "Queue already exists");
    let queue = json!({ "name": QUEUE_NAME });
    let elsewhere = test
        .post("/v2/projects/p/locations/other/queues", queue)
        .await;
    let message = format!("{QUEUE_NAME} must begin with projects/p/locations/other.");
    invalid(elsewhere, &message);
}

#[tokio::test]
async fn a_deleted_queues_name_rests_for_three_days() {
    let test = TestQueue::new(&[]).await;
    test.create(test.later("t")).await.unwrap();
    test.delete(QUEUE).await.unwrap();
    refused(test.queue().await, "NOT_FOUND", NO_QUEUE);
    refused(test.delete(QUEUE).await, "NOT_FOUND", NOT_FOUND);
    refused(test.create(test.task("t")).await, "NOT_FOUND", NO_QUEUE);
    refused(test.task_named("t").await, "NOT_FOUND", NOT_FOUND);
    let recreated = test.create_queue("q", json!({})).await;
    refused(recreated, "FAILED_PRECONDITION", QUEUE_USED_UP);
    test.advance(3 * 86_400).await;
    test.create_queue("q", json!({})).await.unwrap();
    assert!(test.ids().await.is_empty());
}

#[tokio::test]
async fn queues_are_listed_by_name_in_pages_and_filtered() {
    let test = TestQueue::new(&[]).await;
    for id in ["c", "a", "b"] {
        test.create_queue(id, json!({})).await.unwrap();
    }
    test.tell_queue("pause").await;
    let page = async |query: &str, token: &Value| {
        let token = token.as_str().unwrap_or_default();
        let page = ok(list(&test, &format!("{query}&pageToken={token}"))).await;
        let queues = page["queues"].as_array().into_iter().flatten();
        let names: Vec<String> = queues.map(|it| short(it).to_owned()).collect();
        (names, page["nextPageToken"].clone())
    };
    let (first, token) = page("pageSize=2", &Value::Null).await;
    assert_eq!(first, ["a", "b"]);
    let (second, token) = page("pageSize=2", &token).await;
    assert_eq!(second, ["c", "q"]);
    let (third, token) = page("pageSize=2", &token).await;
    assert!(third.is_empty() && token.is_null());
    assert_eq!(page("filter=state:+PAUSED", &Value::Null).await.0, ["q"]);
    let message = "ListQueuesRequest.pageSize cannot be negative.";
    invalid(list(&test, "pageSize=-1").await, message);
    let bogus = list(&test, "pageToken=bogus").await;
    invalid(bogus, "Invalid page_token");
}

#[tokio::test]
async fn pausing_stops_dispatch_and_can_be_repeated() {
    let test = TestQueue::new(&[]).await;
    for _ in 0..2 {
        assert_eq!(test.tell_queue("pause").await["state"], "PAUSED");
    }
    test.create(test.task("t")).await.unwrap();
    assert!(test.busy(false).await.is_empty(), "a paused queue is idle");
    assert!(test.handler.seen().is_empty());
    for _ in 0..2 {
        assert_eq!(test.tell_queue("resume").await["state"], "RUNNING");
    }
    test.handler.wait_for(1).await;
    test.idle(false).await;
}

#[tokio::test]
async fn a_purge_deletes_what_is_there_and_uses_up_its_names() {
    let test = TestQueue::new(&[]).await;
    test.tell_queue("pause").await;
    test.create(test.task("a")).await.unwrap();
    test.create(test.task("")).await.unwrap();
    let purged = test.tell_queue("purge").await;
    assert_eq!(purged["state"], "PAUSED");
    assert!(purged["purgeTime"].is_string());
    test.create(test.later("b")).await.unwrap();
    assert_eq!(test.ids().await, ["b"]);
    test.is_past("a").await;
    test.is_used_up("a").await;
    test.tell_queue("resume").await;
    assert!(test.busy(false).await.is_empty());
    assert!(test.handler.seen().is_empty());
}

#[tokio::test]
async fn a_purge_works_through_many_pages() {
    let test = TestQueue::new(&[]).await;
    test.create_many(2500, &test.later("")).await;
    test.tell_queue("purge").await;
    assert!(test.ids().await.is_empty());
}

#[tokio::test]
async fn no_more_are_on_the_way_than_the_queue_allows() {
    let test = TestQueue::with_queue(rate(0.0, 2)).await;
    test.handler.hold();
    for _ in 0..5 {
        test.create(test.task("")).await.unwrap();
    }
    test.handler.wait_for(2).await;
    let busy = test.busy(false).await;
    assert_eq!(busy[0], format!("{QUEUE_NAME}: 2 dispatches on the way"));
    test.handler.let_go();
    test.idle(false).await;
    assert_eq!(test.handler.seen().len(), 5);
}

#[tokio::test]
async fn beyond_a_burst_the_rate_holds() {
    let test = TestQueue::with_queue(rate(0.01, 0)).await;
    for _ in 0..12 {
        test.create(test.task("")).await.unwrap();
    }
    test.landed(10).await;
    assert_eq!(test.handler.seen().len(), 10);
    test.advance(100).await;
    test.landed(11).await;
    assert_eq!(test.handler.seen().len(), 11);
}
