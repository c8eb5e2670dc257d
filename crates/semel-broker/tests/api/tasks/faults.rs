use super::*;

#[tokio::test]
async fn duplicate_delivers_once_more_after_a_success() {
    let test = TestQueue::new(&["duplicate=1"]).await;
    test.create(test.task("t")).await.unwrap();
    test.landed(2).await;
    test.idle(false).await;
    let seen = test.handler.seen();
    assert_eq!(seen.len(), 2);
    for name in [
        "taskretrycount",
        "taskexecutioncount",
        "tasketa",
        "taskname",
    ] {
        let name = format!("x-cloudtasks-{name}");
        assert_eq!(seen[0].header(&name), seen[1].header(&name), "{name}");
    }
    for dispatch in test.history().await {
        assert_eq!(dispatch["attempt"], 1);
        assert_eq!(dispatch["faults"], json!(["duplicate"]));
        assert_eq!(dispatch["status"], 200);
        assert_eq!(dispatch["success"], true);
    }
}

#[tokio::test]
async fn duplicate_does_nothing_to_a_failure() {
    let test = TestQueue::new(&["duplicate=1"]).await;
    test.tell_queue("pause").await;
    test.handler.answer_next(&[500]);
    test.create(test.task("t")).await.unwrap();
    test.run("t").await.unwrap();
    test.landed(1).await;
    assert_eq!(test.handler.seen().len(), 1);
}

#[tokio::test]
async fn duplicate_at_once_delivers_twice_at_the_same_time() {
    let test = TestQueue::new(&["duplicate-at-once=1"]).await;
    test.handler.hold();
    test.create(test.task("t")).await.unwrap();
    test.handler.wait_for(2).await;
    test.handler.let_go();
    test.idle(false).await;
    assert_eq!(test.results().await, ["answered", "answered"]);
    assert!(test.ids().await.is_empty());
}

#[tokio::test]
async fn delay_puts_the_start_off_once() {
    let test = TestQueue::new(&["delay=1:60s"]).await;
    let created = test.create(test.task("t")).await.unwrap();
    test.waits(1).await;
    assert!(test.handler.seen().is_empty());
    test.advance(60).await;
    let seen = test.handler.wait_for(1).await;
    let eta = micros(&created["scheduleTime"]) / 1_000_000;
    assert!(
        seen[0]
            .header("x-cloudtasks-tasketa")
            .starts_with(&eta.to_string())
    );
    test.idle(false).await;
    assert_eq!(test.history().await[0]["faults"], json!(["delay"]));
}

#[tokio::test]
async fn reorder_lets_the_next_task_go_first() {
    let test = TestQueue::new(&["reorder=1"]).await;
    test.tell_queue("pause").await;
    for id in ["a", "b", "c", "d"] {
        test.create(test.task(id)).await.unwrap();
    }
    let one = json!({ "rateLimits": { "maxConcurrentDispatches": 1 } });
    test.patch(QUEUE, one).await.unwrap();
    test.tell_queue("resume").await;
    let seen = test.handler.wait_for(4).await;
    let order: Vec<_> = seen
        .iter()
        .map(|it| it.header("x-cloudtasks-taskname"))
        .collect();
    assert_eq!(order[0], "b");
    assert_ne!(order, ["a", "b", "c", "d"]);
    test.idle(false).await;
}

#[tokio::test]
async fn reorder_lets_a_lonely_task_go_after_a_second() {
    let test = TestQueue::new(&["reorder=1"]).await;
    test.create(test.task("t")).await.unwrap();
    test.waits(1).await;
    assert!(test.handler.seen().is_empty());
    test.advance(1).await;
    test.handler.wait_for(1).await;
    test.idle(false).await;
}

#[tokio::test]
async fn lose_answer_delivers_and_retries() {
    let test = TestQueue::new(&["lose-answer=1"]).await;
    test.tell_queue("pause").await;
    test.create(test.task("t")).await.unwrap();
    test.run("t").await.unwrap();
    test.landed(1).await;
    assert_eq!(test.results().await, ["answer-lost"]);
    assert_eq!(test.history().await[0]["status"], 200);
    assert_eq!(counts(&test.task_named("t").await.unwrap()), (1, 0));
    test.set_faults(&[]).await;
    test.run("t").await.unwrap();
    let seen = test.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskpreviousresponse"), "0");
    test.idle(false).await;
    test.is_past("t").await;
}

#[tokio::test]
async fn cut_breaks_the_connection_and_retries() {
    let test = TestQueue::new(&["cut=1:3"]).await;
    test.tell_queue("pause").await;
    let task = test.task_of("t", json!({ "body": crate::support::base64("a body") }));
    test.create(task).await.unwrap();
    test.run("t").await.unwrap();
    test.until_results(|results| results == ["cut"]).await;
    test.idle(false).await;
    assert_eq!(counts(&test.task_named("t").await.unwrap()).0, 1);
}

#[tokio::test]
async fn overlap_gives_the_handler_up_and_leaves_it_running() {
    let test = TestQueue::new(&["overlap=1:5s"]).await;
    test.tell_queue("pause").await;
    test.handler.hold();
    test.create(test.task("t")).await.unwrap();
    test.run("t").await.unwrap();
    test.handler.wait_for(1).await;
    test.advance(5).await;
    test.landed(1).await;
    assert_eq!(test.results().await, ["timed-out"]);
    let status = test.last_status("t").await;
    assert_eq!(status, "DEADLINE_EXCEEDED(4): HTTP status code 504");
    let left = format!("{QUEUE_NAME}: 1 calls still run after their answer was given up");
    assert_eq!(test.busy(false).await, [left]);
    test.set_faults(&[]).await;
    test.run("t").await.unwrap();
    let seen = test.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskpreviousresponse"), "504");
    test.handler.let_go();
    test.idle(false).await;
    test.is_past("t").await;
}
