use super::*;
use tempfile::TempDir;

impl Setup {
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
    let setup = Setup::of(broker, json!({})).await;
    setup.tell_queue("pause").await;
    for id in ["named", "tried", "gone"] {
        setup.create(setup.task(id)).await.unwrap();
    }
    setup.delete_task("gone").await.unwrap();
    setup.create_many(1100, &setup.task("")).await;
    setup.handler.answer_next(&[500]);
    setup.run("tried").await.unwrap();
    setup.landed(1).await;
    let tried = setup.task_named("tried").await.unwrap();

    let setup = setup.restarted(&directory).await;
    assert_eq!(setup.queue().await.unwrap()["state"], "PAUSED");
    assert_eq!(setup.task_named("tried").await.unwrap(), tried);
    setup.is_past("gone").await;
    let again = setup.create(setup.task("named")).await;
    refused(again, "ALREADY_EXISTS", "Requested entity already exists");
    setup.tell_queue("resume").await;
    let mut seen = setup.handler.seen().len();
    while seen < 1103 {
        setup.advance(1).await;
        setup.landed(seen).await;
        seen = setup.handler.wait_for(1103.min(seen + 1)).await.len();
    }
    setup.idle(false).await;
    assert!(setup.ids().await.is_empty());
    assert_eq!(setup.handler.seen().len(), 1103);
}

#[tokio::test]
async fn the_end_of_an_old_dispatch_is_not_that_of_a_new_task_of_its_name() {
    let setup = Setup::new(&[]).await;
    setup.handler.hold();
    let host = setup.handler.url.trim_start_matches("http://");
    let task = json!({
        "name": format!("{QUEUE_NAME}/tasks/t"),
        "appEngineHttpRequest": { "appEngineRouting": { "host": host } },
        "dispatchDeadline": "86400s",
    });
    setup.create(task).await.unwrap();
    setup.handler.wait_for(1).await;
    setup.delete_task("t").await.unwrap();
    setup.advance(2 * 3600).await;
    setup.create(setup.later("t")).await.unwrap();
    setup.handler.let_go();
    setup.landed(1).await;
    assert_eq!(setup.ids().await, ["t"]);
    assert!(setup.task_named("t").await.is_ok());
}
