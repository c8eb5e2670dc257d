use super::*;
use tempfile::TempDir;

impl TestQueue {
    /// The same handler, and a broker that was started anew.
    async fn restarted(self, directory: &TempDir) -> Self {
        self.broker.stop().await;
        Self {
            broker: Broker::in_directory(directory.path()).await,
            ..self
        }
    }
}

#[tokio::test]
async fn a_restart_in_a_directory_keeps_everything() {
    let directory = TempDir::new().unwrap();
    let broker = Broker::in_directory(directory.path()).await;
    let test = TestQueue::of(broker, json!({})).await;
    test.tell_queue("pause").await;
    for id in ["named", "tried", "gone"] {
        test.create(test.task(id)).await.unwrap();
    }
    test.delete_task("gone").await.unwrap();
    test.create_many(1100, &test.task("")).await;
    test.handler.answer_next(&[500]);
    test.run("tried").await.unwrap();
    test.landed(1).await;
    let tried = test.task_named("tried").await.unwrap();

    let test = test.restarted(&directory).await;
    assert_eq!(test.queue().await.unwrap()["state"], "PAUSED");
    assert_eq!(test.task_named("tried").await.unwrap(), tried);
    test.is_past("gone").await;
    let again = test.create(test.task("named")).await;
    refused(again, "ALREADY_EXISTS", "Requested entity already exists");
    test.tell_queue("resume").await;
    let mut seen = test.handler.seen().len();
    while seen < 1103 {
        test.advance(1).await;
        test.landed(seen).await;
        seen = test.handler.wait_for(1103.min(seen + 1)).await.len();
    }
    test.idle(false).await;
    assert!(test.ids().await.is_empty());
    assert_eq!(test.handler.seen().len(), 1103);
}

#[tokio::test]
async fn the_end_of_an_old_dispatch_is_not_that_of_a_new_task_of_its_name() {
    let test = TestQueue::new(&[]).await;
    test.handler.hold();
    let host = test.handler.url.trim_start_matches("http://");
    let task = json!({
        "name": format!("{QUEUE_NAME}/tasks/t"),
        "appEngineHttpRequest": { "appEngineRouting": { "host": host } },
        "dispatchDeadline": "86400s",
    });
    test.create(task).await.unwrap();
    test.handler.wait_for(1).await;
    test.delete_task("t").await.unwrap();
    test.advance(2 * 3600).await;
    test.create(test.later("t")).await.unwrap();
    test.handler.let_go();
    test.landed(1).await;
    assert_eq!(test.ids().await, ["t"]);
    assert!(test.task_named("t").await.is_ok());
}
