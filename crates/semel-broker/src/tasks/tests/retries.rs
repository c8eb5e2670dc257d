use super::*;

/// How many attempts a task gets when all fail, with the clock put forward by every wait.
async fn attempts(desk: &Desk, task: Task) -> (usize, Vec<u64>) {
    desk.handler.answer_next(&[500; 50]);
    desk.create(task).await.unwrap();
    let mut waits = Vec::new();
    for attempt in 1.. {
        desk.landed(attempt).await;
        let Ok(task) = desk.get("t").await else {
            return (attempt, waits);
        };
        let next = Time::of(&task.schedule_time.unwrap());
        let failed = Time::of(&task.last_attempt.unwrap().response_time.unwrap());
        let wait = next.since(failed);
        waits.push(wait.as_secs());
        desk.context
            .clock
            .advance(next.since(desk.context.clock.now()));
        if attempt == 6 {
            return (attempt, waits);
        }
    }
    unreachable!("the loop ends by returning")
}

fn retry(attempts: i32, span: Option<i64>, backoff: i64) -> RetryConfig {
    RetryConfig {
        max_attempts: attempts,
        max_retry_duration: span.and_then(secs),
        min_backoff: secs(backoff),
        max_backoff: secs(backoff),
        max_doublings: 0,
    }
}

#[tokio::test]
async fn waits_double_then_grow_evenly_then_stay() {
    let desk = Desk::retrying(RetryConfig {
        min_backoff: secs(1),
        max_backoff: secs(7),
        max_doublings: 1,
        ..RetryConfig::default()
    })
    .await;
    let (_, waits) = attempts(&desk, desk.task("t")).await;
    assert_eq!(waits, [1, 2, 4, 6, 7, 7]);
}

#[tokio::test]
async fn the_documented_waits_hold() {
    let desk = Desk::retrying(RetryConfig {
        min_backoff: secs(10),
        max_backoff: secs(300),
        max_doublings: 3,
        ..RetryConfig::default()
    })
    .await;
    let (_, waits) = attempts(&desk, desk.task("t")).await;
    assert_eq!(waits, [10, 20, 40, 80, 160, 240]);
}

#[tokio::test]
async fn retries_stop_as_recorded() {
    for (config, made) in [
        (retry(3, None, 1), 3),
        (retry(-1, Some(3), 2), 3),
        (retry(2, Some(3), 2), 3),
        (retry(4, Some(1), 1), 4),
    ] {
        let desk = Desk::retrying(config).await;
        let (attempts, _) = attempts(&desk, desk.task("t")).await;
        assert_eq!(attempts, made, "{config:?}");
        refused(desk.get("t").await, Code::NotFound, PAST);
        refused(
            desk.create(desk.task("t")).await,
            Code::AlreadyExists,
            USED_UP,
        );
        assert!(desk.tasks.busy().is_empty());
    }
}

#[tokio::test]
async fn a_tasks_own_policy_comes_before_its_queues() {
    let desk = Desk::retrying(retry(10, None, 1)).await;
    let task = Task {
        retry_config: Some(RetryConfig {
            max_attempts: 2,
            ..RetryConfig::default()
        }),
        ..desk.task("t")
    };
    let (attempts, waits) = attempts(&desk, task).await;
    assert_eq!((attempts, waits), (2, vec![0]));
}

#[tokio::test]
async fn a_tasks_own_policy_is_checked_and_filled() {
    let desk = Desk::open(&[]).await;
    let with = |retry| Task {
        retry_config: Some(retry),
        ..desk.later("")
    };
    let partial = RetryConfig {
        max_attempts: 3,
        ..RetryConfig::default()
    };
    let filled = desk
        .create(with(partial))
        .await
        .unwrap()
        .retry_config
        .unwrap();
    assert_eq!((filled.max_attempts, filled.max_doublings), (3, 16));
    assert_eq!(filled.max_backoff, secs(3600));
    assert_eq!(
        desk.create(desk.later("")).await.unwrap().retry_config,
        None
    );
    let message = "RetryConfig.maxAttempts must be greater or equal to -1.";
    let wrong = with(retry(-2, None, 1));
    refused(desk.create(wrong).await, Code::InvalidArgument, message);
}

#[tokio::test]
async fn one_503_does_not_hold_up_the_retry() {
    let desk = Desk::open(&[]).await;
    desk.handler.answer_next(&[503]);
    desk.create(desk.task("t")).await.unwrap();
    desk.landed(1).await;
    desk.context.clock.advance(Duration::from_millis(100));
    desk.handler.wait_for(2).await;
    desk.idle().await;
}
