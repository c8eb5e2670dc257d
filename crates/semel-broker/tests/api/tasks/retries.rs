use super::*;

/// How many attempts a task gets when all fail, with the clock put forward by every wait.
async fn attempts(test: &TestQueue, task: Value) -> (usize, Vec<i64>) {
    test.handler.answer_next(&[500; 50]);
    test.create(task).await.unwrap();
    let mut waits = Vec::new();
    for attempt in 1.. {
        test.landed(attempt).await;
        let Ok(task) = test.task_named("t").await else {
            return (attempt, waits);
        };
        let wait = micros(&task["scheduleTime"]) - micros(&task["lastAttempt"]["responseTime"]);
        waits.push(wait / 1_000_000);
        if attempt == 6 {
            return (attempt, waits);
        }
        let seconds = u64::try_from(wait / 1_000_000).unwrap();
        test.advance(seconds.max(1)).await;
    }
    unreachable!("the loop ends by returning")
}

fn retry(attempts: i32, span: Option<&str>, backoff: &str) -> Value {
    json!({
        "maxAttempts": attempts, "maxRetryDuration": span, "minBackoff": backoff, "maxBackoff": backoff,
    })
}

#[tokio::test]
async fn waits_double_then_grow_evenly_then_stay() {
    let retry = json!({ "minBackoff": "1s", "maxBackoff": "7s", "maxDoublings": 1 });
    let test = TestQueue::retrying(retry).await;
    let (_, waits) = attempts(&test, test.task("t")).await;
    assert_eq!(waits, [1, 2, 4, 6, 7, 7]);
}

#[tokio::test]
async fn the_documented_waits_hold() {
    let retry = json!({ "minBackoff": "10s", "maxBackoff": "300s", "maxDoublings": 3 });
    let test = TestQueue::retrying(retry).await;
    let (_, waits) = attempts(&test, test.task("t")).await;
    assert_eq!(waits, [10, 20, 40, 80, 160, 240]);
}

#[tokio::test]
async fn retries_stop_as_recorded() {
    for (config, made) in [
        (retry(3, None, "1s"), 3),
        (retry(-1, Some("3s"), "2s"), 3),
        (retry(2, Some("3s"), "2s"), 3),
        (retry(4, Some("1s"), "1s"), 4),
    ] {
        let test = TestQueue::retrying(config.clone()).await;
        let (attempts, _) = attempts(&test, test.task("t")).await;
        assert_eq!(attempts, made, "{config}");
        test.is_past("t").await;
        test.is_used_up("t").await;
        assert!(test.busy(false).await.is_empty());
    }
}

#[tokio::test]
async fn a_tasks_own_policy_comes_before_its_queues() {
    let test = TestQueue::retrying(retry(10, None, "1s")).await;
    let own = json!({ "retryConfig": { "maxAttempts": 2 } });
    let (attempts, waits) = attempts(&test, merged(test.task("t"), own)).await;
    assert_eq!((attempts, waits), (2, vec![0]));
}

#[tokio::test]
async fn a_tasks_own_policy_is_checked_and_filled() {
    let test = TestQueue::new(&[]).await;
    let with = |retry: Value| merged(test.later(""), json!({ "retryConfig": retry }));
    let filled = ok(test.create(with(json!({ "maxAttempts": 3 })))).await;
    let expected = json!({ "maxAttempts": 3, "minBackoff": "0.100s", "maxBackoff": "3600s", "maxDoublings": 16 });
    assert_eq!(filled["retryConfig"], expected);
    let without = test.create(test.later("")).await.unwrap();
    assert!(without["retryConfig"].is_null());
    let message = "RetryConfig.maxAttempts must be greater or equal to -1.";
    let wrong = test.create(with(retry(-2, None, "1s"))).await;
    invalid(wrong, message);
}

#[tokio::test]
async fn one_503_does_not_hold_up_the_retry() {
    let test = TestQueue::new(&[]).await;
    test.handler.answer_next(&[503]);
    test.create(test.task("t")).await.unwrap();
    test.landed(1).await;
    let by = json!({ "by": "100ms" });
    test.post("/_semel/clock/advance", by).await.unwrap();
    test.handler.wait_for(2).await;
    test.idle(false).await;
}
