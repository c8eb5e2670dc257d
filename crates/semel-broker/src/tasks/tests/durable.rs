use super::*;
use crate::faults::Faults;
use crate::proto::tasks::queue::State;
use tempfile::TempDir;

fn context_on(storage: Storage) -> Arc<Context> {
    let faults = Faults::new(1, Vec::new());
    let issuer = "http://127.0.0.1:1".to_owned();
    Arc::new(Context::open(storage, issuer, faults, 100).unwrap())
}

/// The same handler, and a broker that was started anew.
fn restarted(desk: Desk, storage: Storage) -> Desk {
    let handler = desk.handler.clone();
    drop(desk);
    let context = context_on(storage);
    Desk {
        tasks: Tasks::open(Arc::clone(&context), None).unwrap(),
        context,
        handler,
    }
}

#[tokio::test]
async fn a_restart_in_a_directory_keeps_everything() {
    let directory = TempDir::new().unwrap();
    let storage = Storage::open(directory.path()).unwrap();
    let desk = Desk::with(context_on(storage.clone()), Queue::default()).await;
    desk.pause().await;
    desk.create(desk.task("named")).await.unwrap();
    desk.create(desk.task("tried")).await.unwrap();
    desk.create(desk.task("gone")).await.unwrap();
    desk.delete("gone").await.unwrap();
    desk.create_many(1100, &desk.task("")).await;
    desk.handler.answer_next(&[500]);
    desk.run("tried").await.unwrap();
    desk.landed(1).await;
    let tried = desk.get("tried").await.unwrap();

    let desk = restarted(desk, storage);
    assert_eq!(desk.queue().await.unwrap().state(), State::Paused);
    assert_eq!(desk.get("tried").await.unwrap(), tried);
    refused(desk.get("gone").await, Code::NotFound, PAST);
    let again = desk.create(desk.task("named")).await;
    refused(
        again,
        Code::AlreadyExists,
        "Requested entity already exists",
    );
    desk.resume().await;
    desk.context.clock.advance(Duration::from_secs(1));
    let mut seen = desk.handler.seen().len();
    while seen < 1103 {
        desk.landed(seen).await;
        desk.context.clock.advance(Duration::from_secs(1));
        seen = desk.handler.wait_for(1103.min(seen + 1)).await.len();
    }
    desk.idle().await;
    assert!(desk.ids().await.is_empty());
    assert_eq!(desk.handler.seen().len(), 1103);
}

#[tokio::test]
async fn a_broker_that_dies_in_a_dispatch_delivers_again() {
    let storage = Storage::in_memory();
    let desk = Desk::with(context_on(storage.clone()), Queue::default()).await;
    desk.handler.hold();
    desk.create(desk.task("t")).await.unwrap();
    desk.handler.wait_for(1).await;
    let handler = desk.handler.clone();
    let context = context_on(storage);
    let second = Desk {
        tasks: Tasks::open(Arc::clone(&context), None).unwrap(),
        context,
        handler,
    };
    let seen = second.handler.wait_for(2).await;
    assert_eq!(seen[1].header("x-cloudtasks-taskretrycount"), "0");
    second.handler.let_go();
    second.idle().await;
    refused(second.get("t").await, Code::NotFound, PAST);
}

#[tokio::test]
async fn what_a_deleted_queue_left_behind_is_taken_away() {
    let storage = Storage::in_memory();
    let desk = Desk::with(context_on(storage.clone()), Queue::default()).await;
    desk.create(desk.later("t")).await.unwrap();
    // As if the broker had died between the queue's row and its tasks'.
    let mut batch = Batch::default();
    batch.delete(Table::Queues, &rows::queue_key(QUEUE));
    storage.commit(batch).await.unwrap();
    let desk = restarted(desk, storage.clone());
    refused(desk.queue().await, Code::NotFound, NO_QUEUE);
    let mut looked = 0;
    while !storage.scan(Table::Tasks, &[], None, 1).unwrap().is_empty() {
        looked += 1;
        assert!(looked < 10_000, "the task is still there");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_dropped_broker_sends_nothing_more() {
    let storage = Storage::in_memory();
    let desk = Desk::with(context_on(storage), Queue::default()).await;
    desk.create(desk.later("t")).await.unwrap();
    let (clock, handler) = (desk.context.clock.clone(), desk.handler.clone());
    let context = Arc::downgrade(&desk.context);
    drop(desk);
    clock.advance(Duration::from_secs(48 * 3600));
    let mut looked = 0;
    while context.upgrade().is_some() {
        looked += 1;
        assert!(looked < 10_000, "something still holds it");
        tokio::task::yield_now().await;
    }
    assert!(handler.seen().is_empty());
}

#[tokio::test]
async fn a_reset_forgets_everything_and_nothing_comes_back() {
    let desk = Desk::open(&[]).await;
    desk.create(desk.later("used")).await.unwrap();
    desk.delete("used").await.unwrap();
    desk.handler.hold();
    desk.handler.answer_next(&[500]);
    desk.create(desk.task("t")).await.unwrap();
    desk.handler.wait_for(1).await;
    desk.tasks.reset().await.unwrap();
    assert!(desk.tasks.busy().is_empty());
    refused(desk.queue().await, Code::NotFound, NO_QUEUE);
    desk.create_queue("q", Queue::default()).await.unwrap();
    desk.create(desk.later("used")).await.unwrap();
    desk.handler.let_go();
    let mut changed = desk.tasks.changed();
    while desk.results()[0] == crate::history::DispatchResult::Running {
        changed.changed().await.unwrap();
    }
    refused(desk.get("t").await, Code::NotFound, NOT_FOUND);
    assert_eq!(desk.ids().await, ["used"]);
    assert_eq!(
        desk.context
            .storage
            .scan(Table::Tasks, &[], None, 10)
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_caller_who_hangs_up_changes_nothing() {
    let desk = Desk::open(&[]).await;
    let mut create = Box::pin(desk.create(desk.task("t")));
    let polled = std::future::poll_fn(|context| {
        std::task::Poll::Ready(create.as_mut().poll(context).is_ready())
    });
    polled.await;
    drop(create);
    desk.handler.wait_for(1).await;
    desk.idle().await;
}

#[tokio::test]
async fn sequence_numbers_begin_anew_after_a_reset() {
    let desk = Desk::open(&[]).await;
    let sequence = |id: &str| {
        let stored = rows::task(&desk.context.storage, QUEUE, id).unwrap();
        stored.unwrap().sequence
    };
    desk.create(desk.later("a")).await.unwrap();
    desk.create(desk.later("b")).await.unwrap();
    assert_eq!((sequence("a"), sequence("b")), (0, 1));
    desk.tasks.reset().await.unwrap();
    desk.create_queue("q", Queue::default()).await.unwrap();
    desk.create(desk.later("c")).await.unwrap();
    assert_eq!(sequence("c"), 0);
}

#[tokio::test]
async fn what_a_restart_finds_does_not_change_the_dice() {
    let mut sequences = Vec::new();
    for left in [true, false] {
        let storage = Storage::in_memory();
        let desk = Desk::with(context_on(storage.clone()), Queue::default()).await;
        for id in ["a", "b", "c"] {
            desk.create(desk.later(id)).await.unwrap();
            if !left {
                desk.delete(id).await.unwrap();
            }
        }
        desk.purge().await;
        let desk = restarted(desk, storage.clone());
        desk.create(desk.later("d")).await.unwrap();
        let stored = rows::task(&storage, QUEUE, "d").unwrap().unwrap();
        sequences.push(stored.sequence);
    }
    assert_eq!(sequences[0], sequences[1]);
    assert!(sequences[0] > 2, "{sequences:?}");
}

#[tokio::test]
async fn a_queue_that_begins_while_an_old_one_is_cleared_away_keeps_its_tasks() {
    let directory = TempDir::new().unwrap();
    let storage = Storage::open(directory.path()).unwrap();
    let mut batch = Batch::default();
    for number in 0..20_500 {
        let id = format!("left-{number}");
        rows::put_task(
            &mut batch,
            QUEUE,
            &id,
            &crate::proto::tasks::StoredTask::default(),
        );
    }
    storage.commit(batch).await.unwrap();
    let desk = Desk::with(context_on(storage.clone()), Queue::default()).await;
    desk.create(desk.later("new")).await.unwrap();
    let prefix = rows::task_key(QUEUE, "left-");
    while !storage
        .scan(Table::Tasks, &prefix, None, 1)
        .unwrap()
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(desk.ids().await, ["new"]);
}

#[tokio::test]
async fn the_end_of_an_old_dispatch_is_not_that_of_a_new_task_of_its_name() {
    let desk = Desk::open(&[]).await;
    desk.handler.hold();
    let hour = Duration::from_secs(3600);
    let day = prost_types::Duration {
        seconds: 24 * 3600,
        nanos: 0,
    };
    let host = desk.handler.url.trim_start_matches("http://").to_owned();
    let routing = crate::proto::tasks::AppEngineRouting {
        host,
        ..Default::default()
    };
    let request = crate::proto::tasks::AppEngineHttpRequest {
        app_engine_routing: Some(routing),
        ..Default::default()
    };
    let task = Task {
        name: name("t"),
        message_type: Some(MessageType::AppEngineHttpRequest(Box::new(request))),
        dispatch_deadline: Some(day),
        ..Task::default()
    };
    desk.create(task).await.unwrap();
    desk.handler.wait_for(1).await;
    desk.delete("t").await.unwrap();
    desk.context.clock.advance(hour * 2);
    desk.create(desk.later("t")).await.unwrap();
    desk.handler.let_go();
    desk.landed(1).await;
    assert_eq!(desk.ids().await, ["t"]);
    assert!(desk.get("t").await.is_ok());
}
