use super::*;

#[tokio::test]
async fn duplicate_delivers_once_more_after_a_success() {
    let setup = Setup::new(&["duplicate=1"]).await;
    setup.create(setup.task("t")).await.unwrap();
    setup.landed(2).await;
    setup.idle(false).await;
    let seen = setup.handler.seen();
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
    for dispatch in setup.history().await {
        assert_eq!(dispatch["attempt"], 1);
        assert_eq!(dispatch["faults"], json!(["duplicate"]));
        assert_eq!(
            (&dispatch["status"], &dispatch["success"]),
            (&json!(200), &json!(true))
        );
    }
}

#[tokio::test]
async fn duplicate_does_nothing_to_a_failure() {
    let setup = Setup::new(&["duplicate=1"]).await;
    setup.tell_queue("pause").await;
    setup.handler.answer_next(&[500]);
    setup.create(setup.task("t")).await.unwrap();
    setup.run("t").await.unwrap();
    setup.landed(1).await;
    assert_eq!(setup.handler.seen().len(), 1);
}

#[tokio::test]
async fn duplicate_at_once_delivers_twice_at_the_same_time() {
    let setup = Setup::new(&["duplicate-at-once=1"]).await;
    setup.handler.hold();
    setup.create(setup.task("t")).await.unwrap();
    setup.handler.wait_for(2).await;
    setup.handler.let_go();
    setup.idle(false).await;
    assert_eq!(setup.results().await, ["answered", "answered"]);
    assert!(setup.ids().await.is_empty());
}

#[tokio::test]
async fn delay_puts_the_start_off_once() {
    let setup = Setup::new(&["delay=1:60s"]).await;
    let created = setup.create(setup.task("t")).await.unwrap();
    setup.waits(1).await;
    assert!(setup.handler.seen().is_empty());
    setup.advance(60).await;
    let seen = setup.handler.wait_for(1).await;
    let eta = micros(&created["scheduleTime"]) / 1_000_000;
    assert!(
        seen[0]
            .header("x-cloudtasks-tasketa")
            .starts_with(&eta.to_string())
    );
    setup.idle(false).await;
    assert_eq!(setup.history().await[0]["faults"], json!(["delay"]));
}

#[tokio::test]
async fn reorder_lets_the_next_task_go_first() {
    let setup = Setup::new(&["reorder=1"]).await;
    setup.tell_queue("pause").await;
    for id in ["a", "b", "c", "d"] {
        setup.create(setup.task(id)).await.unwrap();
    }
    let one = json!({ "rateLimits": { "maxConcurrentDispatches": 1 } });
    setup.patch(QUEUE, one).await.unwrap();
    setup.tell_queue("resume").await;
    let seen = setup.handler.wait_for(4).await;
    let order: Vec<_> = seen
        .iter()
        .map(|it| it.header("x-cloudtasks-taskname"))
        .collect();
    assert_eq!(order[0], "b");
    assert_ne!(order, ["a", "b", "c", "d"]);
    setup.idle(false).await;
}

#[tokio::test]
async fn reorder_lets_a_lonely_task_go_after_a_second() {
    let setup = Setup::new(&["reorder=1"]).await;
    setup.create(setup.task("t")).await.unwrap();
    setup.waits(1).await;
    assert!(setup.handler.seen().is_empty());
    setup.advance(1).await;
    setup.handler.wait_for(1).await;
    setup.idle(false).await;
}

#[tokio::test]
async fn lose_answer_delivers_and_retries() {
    let setup = Setup::new(&["lose-answer=1"]).await;
    setup.tell_queue("pause").await;
    setup.create(setup.task("t")).await.unwrap();
    setup.run("t").await.unwrap();
    setup.landed(1).await;
    assert_eq!(setup.results().await, ["answer-lost"]);
    assert_eq!(setup.history().await[0]["status"], 200);
    assert_eq!(counts(&setup.task_named("t").await.unwrap()), (1, 0));
    setup.set_faults(&[]).await;
    setup.run("t").await.unwrap();
    let seen = setup.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskpreviousresponse"), "0");
    setup.idle(false).await;
    setup.is_past("t").await;
}

#[tokio::test]
async fn cut_breaks_the_connection_and_retries() {
    let setup = Setup::new(&["cut=1:3"]).await;
    setup.tell_queue("pause").await;
    let task = setup.task_of("t", json!({ "body": crate::support::base64("a body") }));
    setup.create(task).await.unwrap();
    setup.run("t").await.unwrap();
    setup.until_results(|results| results == ["cut"]).await;
    setup.idle(false).await;
    assert_eq!(counts(&setup.task_named("t").await.unwrap()).0, 1);
}

#[tokio::test]
async fn overlap_gives_the_handler_up_and_leaves_it_running() {
    let setup = Setup::new(&["overlap=1:5s"]).await;
    setup.tell_queue("pause").await;
    setup.handler.hold();
    setup.create(setup.task("t")).await.unwrap();
    setup.run("t").await.unwrap();
    setup.handler.wait_for(1).await;
    setup.advance(5).await;
    setup.landed(1).await;
    assert_eq!(setup.results().await, ["timed-out"]);
    let status = setup.last_status("t").await;
    assert_eq!(status, "DEADLINE_EXCEEDED(4): HTTP status code 504");
    let left = format!("{QUEUE_NAME}: 1 calls still run after their answer was given up");
    assert_eq!(setup.busy(false).await, [left]);
    setup.set_faults(&[]).await;
    setup.run("t").await.unwrap();
    let seen = setup.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskpreviousresponse"), "504");
    setup.handler.let_go();
    setup.idle(false).await;
    setup.is_past("t").await;
}
