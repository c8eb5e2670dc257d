//! What concerns both services: waiting, a fresh start.

use super::*;

#[tokio::test]
async fn who_waits_is_told_when_both_services_are_done() {
    let test = Arc::new(TestAdmin::new(&[]));
    let [tasks, pubsub] = &test.fakes;
    tasks.set(&["task a: retry"]);
    pubsub.set(&["message 1"]);
    let waiter = Arc::clone(&test);
    let waiting = tokio::spawn(async move {
        let body = r#"{"timeout":"20s"}"#;
        waiter.json(Method::POST, "/_semel/wait-idle", body).await
    });
    tokio::task::yield_now().await;
    tasks.set(&[]);
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    pubsub.set(&[]);
    let quiet = waiting.await.unwrap();
    assert_eq!(quiet["idle"], true);
    assert!(quiet["waited_ms"].as_u64().unwrap() < 10_000);
}

#[tokio::test(start_paused = true)]
async fn work_that_goes_from_one_service_to_the_other_is_not_overlooked() {
    let test = TestAdmin::new(&[]);
    let [tasks, pubsub] = &test.fakes;
    pubsub.set(&["a push whose handler creates a task"]);
    // The tasks are looked at first, and there are none; when Pub/Sub is looked at, the task is there and the push done.
    *pubsub.hands_over.lock().unwrap() = Some(Arc::clone(tasks));
    let (status, problem) = test.refused(Method::POST, "/_semel/wait-idle", "").await;
    assert_eq!((status, &problem["busy"]), (504, &json!(["handed over"])));
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_told_what_is_left() {
    let test = TestAdmin::new(&[]);
    let path = "/_semel/wait-idle";
    test.fakes[0].set(&["task a: retry", "waits for pull"]);
    let (status, problem) = test.refused(Method::POST, path, "").await;
    assert_eq!((status, &problem["retry_is_safe"]), (504, &json!(true)));
    assert_eq!(problem["busy"], json!(["task a: retry"]));
    assert_eq!(problem["idle"], false);
    test.fakes[0].set(&["waits for pull"]);
    let quiet = test.json(Method::POST, path, "").await;
    assert_eq!(quiet, json!({ "idle": true, "waited_ms": 0 }));
    let pull = r#"{"pull":true,"timeout":"1ms"}"#;
    assert_eq!(test.refused(Method::POST, path, pull).await.0, 504);
    for body in [r#"{"timeout":30}"#, r#"{"timeouts":"1s"}"#, "no"] {
        assert_eq!(test.refused(Method::POST, path, body).await.0, 400);
    }
}

#[tokio::test]
async fn a_reset_brings_the_beginning_back() {
    let test = TestAdmin::new(&["reorder=1"]);
    test.fakes[1].set(&["a"]);
    test.dispatches(&["a"]);
    test.context.faults.replace(Vec::new());
    test.json(Method::POST, "/_semel/reset", "").await;
    let page = test.json(Method::GET, "/_semel/", "").await;
    assert_eq!(page["counts"]["tasks"], 0);
    assert_eq!(page["faults"]["faults"], json!(["reorder=1"]));
    let history = test.json(Method::GET, "/_semel/history", "").await;
    assert!(ids(&history).is_empty());
    assert_eq!(*test.start.made.lock().unwrap(), 1);

    let start = FakeProvisioner {
        fails: true,
        ..FakeProvisioner::default()
    };
    let test = TestAdmin::with(&[], start, Guard::default());
    let (status, problem) = test.refused(Method::POST, "/_semel/reset", "").await;
    assert_eq!((status, &problem["retry_is_safe"]), (500, &json!(true)));
    assert!(problem["error"].as_str().unwrap().contains("no room"));
}
