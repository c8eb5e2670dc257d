use super::*;
use crate::history::DispatchResult as Noted;

const DONE: Noted = Noted::Answered {
    status: 200,
    success: true,
};

#[tokio::test]
async fn duplicate_delivers_once_more_after_a_success() {
    let desk = Desk::open(&["duplicate=1"]).await;
    desk.create(desk.task("t")).await.unwrap();
    desk.landed(2).await;
    desk.idle().await;
    let seen = desk.handler.seen();
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
    let history = desk.history();
    assert_eq!(desk.results(), [DONE, DONE]);
    assert!(
        history
            .iter()
            .all(|it| it.attempt == 1 && it.faults == ["duplicate"])
    );
}

#[tokio::test]
async fn duplicate_does_nothing_to_a_failure() {
    let desk = Desk::open(&["duplicate=1"]).await;
    desk.pause().await;
    desk.handler.answer_next(&[500]);
    desk.create(desk.task("t")).await.unwrap();
    desk.run("t").await.unwrap();
    desk.landed(1).await;
    assert_eq!(desk.handler.seen().len(), 1);
}

#[tokio::test]
async fn duplicate_at_once_delivers_twice_at_the_same_time() {
    let desk = Desk::open(&["duplicate-at-once=1"]).await;
    desk.handler.hold();
    desk.create(desk.task("t")).await.unwrap();
    desk.handler.wait_for(2).await;
    desk.handler.let_go();
    desk.idle().await;
    assert_eq!(desk.results(), [DONE, DONE]);
    assert!(desk.ids().await.is_empty());
}

#[tokio::test]
async fn delay_puts_the_start_off_once() {
    let desk = Desk::open(&["delay=1:60s"]).await;
    let created = desk.create(desk.task("t")).await.unwrap();
    desk.waits(1).await;
    assert!(desk.handler.seen().is_empty());
    desk.context.clock.advance(Duration::from_secs(60));
    let seen = desk.handler.wait_for(1).await;
    let eta = created.schedule_time.unwrap().seconds.to_string();
    assert!(seen[0].header("x-cloudtasks-tasketa").starts_with(&eta));
    desk.idle().await;
    assert_eq!(desk.history()[0].faults, ["delay"]);
}

#[tokio::test]
async fn reorder_lets_the_next_task_go_first() {
    let desk = Desk::open(&["reorder=1"]).await;
    desk.pause().await;
    for id in ["a", "b", "c", "d"] {
        desk.create(desk.task(id)).await.unwrap();
    }
    let queue = Queue {
        rate_limits: Some(RateLimits {
            max_concurrent_dispatches: 1,
            ..RateLimits::default()
        }),
        ..Queue::default()
    };
    let request = crate::proto::tasks::UpdateQueueRequest {
        queue: Some(Queue {
            name: QUEUE.into(),
            ..queue
        }),
        update_mask: None,
    };
    desk.tasks
        .update_queue(Request::new(request))
        .await
        .unwrap();
    desk.resume().await;
    let seen = desk.handler.wait_for(4).await;
    let order: Vec<_> = seen
        .iter()
        .map(|it| it.header("x-cloudtasks-taskname"))
        .collect();
    assert_eq!(order[0], "b");
    assert_ne!(order, ["a", "b", "c", "d"]);
    desk.idle().await;
}

#[tokio::test]
async fn reorder_lets_a_lonely_task_go_after_a_second() {
    let desk = Desk::open(&["reorder=1"]).await;
    desk.create(desk.task("t")).await.unwrap();
    desk.waits(1).await;
    assert!(desk.handler.seen().is_empty());
    desk.context.clock.advance(Duration::from_secs(1));
    desk.handler.wait_for(1).await;
    desk.idle().await;
}

#[tokio::test]
async fn lose_answer_delivers_and_retries() {
    let desk = Desk::open(&["lose-answer=1"]).await;
    desk.pause().await;
    desk.create(desk.task("t")).await.unwrap();
    desk.run("t").await.unwrap();
    desk.landed(1).await;
    assert_eq!(desk.results(), [Noted::AnswerLost { status: 200 }]);
    let task = desk.get("t").await.unwrap();
    assert_eq!((task.dispatch_count, task.response_count), (1, 0));
    desk.context.faults.replace(Vec::new());
    desk.run("t").await.unwrap();
    let seen = desk.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskpreviousresponse"), "0");
    desk.idle().await;
    refused(desk.get("t").await, Code::NotFound, PAST);
}

#[tokio::test]
async fn cut_breaks_the_connection_and_retries() {
    let desk = Desk::open(&["cut=1:3"]).await;
    desk.pause().await;
    let request = HttpRequest {
        body: "a body".into(),
        ..HttpRequest::default()
    };
    desk.create(desk.task_of("t", request)).await.unwrap();
    desk.run("t").await.unwrap();
    desk.until("not cut", || desk.results() == [Noted::Cut])
        .await;
    desk.until("still on the way", || desk.tasks.busy().is_empty())
        .await;
    assert_eq!(desk.get("t").await.unwrap().dispatch_count, 1);
}

#[tokio::test]
async fn overlap_gives_the_handler_up_and_leaves_it_running() {
    let desk = Desk::open(&["overlap=1:5s"]).await;
    desk.pause().await;
    desk.handler.hold();
    desk.create(desk.task("t")).await.unwrap();
    desk.run("t").await.unwrap();
    desk.handler.wait_for(1).await;
    desk.context.clock.advance(Duration::from_secs(5));
    desk.landed(1).await;
    assert_eq!(desk.results(), [Noted::TimedOut]);
    let status = desk
        .get("t")
        .await
        .unwrap()
        .last_attempt
        .unwrap()
        .response_status;
    assert_eq!(
        status.unwrap().message,
        "DEADLINE_EXCEEDED(4): HTTP status code 504"
    );
    assert_eq!(
        desk.tasks.busy(),
        [format!(
            "{QUEUE}: 1 calls still run after their answer was given up"
        )]
    );
    desk.context.faults.replace(Vec::new());
    desk.run("t").await.unwrap();
    let seen = desk.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskpreviousresponse"), "504");
    desk.handler.let_go();
    desk.idle().await;
    refused(desk.get("t").await, Code::NotFound, PAST);
}
