use super::*;
use crate::proto::rpc::{ErrorInfo, Status as RpcStatus};
use crate::proto::tasks::queue::State;
use crate::proto::tasks::{ListQueuesRequest, ListQueuesResponse};
use prost::Message;

async fn list(
    desk: &Desk,
    size: i32,
    token: &str,
    filter: &str,
) -> Result<ListQueuesResponse, Status> {
    let request = ListQueuesRequest {
        parent: PARENT.into(),
        filter: filter.into(),
        page_size: size,
        page_token: token.into(),
    };
    let list = desk.tasks.list_queues(Request::new(request)).await;
    list.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn a_queue_has_the_recorded_defaults() {
    let desk = Desk::open(&[]).await;
    let queue = desk.queue().await.unwrap();
    let rates = queue.rate_limits.unwrap();
    assert_eq!(rates.max_dispatches_per_second, 500.0);
    assert_eq!(
        (rates.max_burst_size, rates.max_concurrent_dispatches),
        (100, 1000)
    );
    let retry = queue.retry_config.unwrap();
    assert_eq!((retry.max_attempts, retry.max_doublings), (100, 16));
    assert_eq!(retry.max_retry_duration, None);
    assert_eq!(retry.min_backoff.unwrap().nanos, 100_000_000);
    assert_eq!(retry.max_backoff, secs(3600));
    assert_eq!(queue.state(), State::Running);
    assert_eq!(queue.purge_time, None);
}

fn rate(max_dispatches_per_second: f64, max_concurrent_dispatches: i32) -> Queue {
    Queue {
        rate_limits: Some(RateLimits {
            max_dispatches_per_second,
            max_concurrent_dispatches,
            max_burst_size: 0,
        }),
        ..Queue::default()
    }
}

fn retry(change: impl FnOnce(&mut RetryConfig)) -> Queue {
    let mut retry = RetryConfig::default();
    change(&mut retry);
    Queue {
        retry_config: Some(retry),
        ..Queue::default()
    }
}

#[tokio::test]
async fn wrong_rates_are_refused_in_productions_words() {
    let desk = Desk::open(&[]).await;
    for (queue, problem) in [
        (
            rate(501.0, 0),
            "maxDispatchesPerSecond must be less than or equal to 500.",
        ),
        (rate(-1.0, 0), "maxDispatchesPerSecond cannot be negative."),
        (
            rate(0.0, 5001),
            "maxConcurrentDispatches must be less than or equal to 5000.",
        ),
        (rate(0.0, -1), "maxConcurrentDispatches cannot be negative."),
    ] {
        let message = format!("RateLimits.{problem}");
        refused(
            desk.create_queue("other", queue).await,
            Code::InvalidArgument,
            &message,
        );
    }
}

#[tokio::test]
async fn wrong_retries_are_refused_in_productions_words() {
    let desk = Desk::open(&[]).await;
    let half = prost_types::Duration {
        seconds: 30,
        nanos: 900_000_000,
    };
    let above = |it: &mut RetryConfig| (it.min_backoff, it.max_backoff) = (secs(2), secs(1));
    for (queue, problem) in [
        (
            retry(|it| it.max_attempts = -2),
            "maxAttempts must be greater or equal to -1.",
        ),
        (
            retry(|it| it.max_doublings = -1),
            "maxDoublings cannot be negative.",
        ),
        (
            retry(|it| it.min_backoff = secs(-1)),
            "minBackoff cannot be negative.",
        ),
        (
            retry(|it| it.max_backoff = secs(-1)),
            "maxBackoff cannot be negative.",
        ),
        (
            retry(|it| it.max_retry_duration = secs(-1)),
            "max_retry_duration.seconds cannot be negative.",
        ),
        (
            retry(|it| it.max_retry_duration = Some(half)),
            "max_retry_duration.nanos cannot be set.",
        ),
        (
            retry(above),
            "minBackoff must be less than or equal to RetryConfig.maxBackoff.",
        ),
    ] {
        let message = format!("RetryConfig.{problem}");
        refused(
            desk.create_queue("other", queue).await,
            Code::InvalidArgument,
            &message,
        );
    }
}

#[tokio::test]
async fn a_sampling_ratio_is_a_share() {
    let desk = Desk::open(&[]).await;
    let sampling = |sampling_ratio| Queue {
        stackdriver_logging_config: Some(crate::proto::tasks::StackdriverLoggingConfig {
            sampling_ratio,
        }),
        ..Queue::default()
    };
    for wrong in [1.5, -0.5, f64::NAN] {
        let message = "sampling_ratio must be between 0.0 and 1.0.";
        let created = desk.create_queue("other", sampling(wrong)).await;
        refused(created, Code::InvalidArgument, message);
    }
    let none = desk.create_queue("zero", sampling(0.0)).await.unwrap();
    assert_eq!(none.stackdriver_logging_config, None);
    let some = desk.create_queue("some", sampling(0.25)).await.unwrap();
    assert_eq!(
        some.stackdriver_logging_config.unwrap().sampling_ratio,
        0.25
    );
}

#[tokio::test]
async fn names_are_refused_with_the_recorded_details() {
    let desk = Desk::open(&[]).await;
    let get = |name: &str| {
        let name = name.to_owned();
        let tasks = desk.tasks.clone();
        async move {
            tasks
                .get_queue(Request::new(GetQueueRequest { name }))
                .await
        }
    };
    refused(
        get(&format!("{PARENT}/queues/unknown")).await,
        Code::NotFound,
        NO_QUEUE,
    );
    let empty = get("").await.unwrap_err();
    let details = RpcStatus::decode(empty.details()).unwrap().details;
    assert_eq!(
        details[0].type_url,
        "type.googleapis.com/google.rpc.ErrorInfo"
    );
    let info = ErrorInfo::decode(details[0].value.as_slice()).unwrap();
    assert_eq!(info.reason, "RESOURCE_PROJECT_INVALID");
    assert_eq!(
        info.metadata["method"],
        "google.cloud.tasks.v2.CloudTasks.GetQueue"
    );
    let unroutable = get("not-a-valid-name").await.unwrap_err();
    assert_eq!(
        RpcStatus::decode(unroutable.details())
            .unwrap()
            .details
            .len(),
        3
    );
    let refusal = desk
        .create_queue("not_valid", Queue::default())
        .await
        .unwrap_err();
    assert!(
        refusal
            .message()
            .starts_with("Queue ID \"not_valid\" can contain only letters")
    );
}

#[tokio::test]
async fn a_queue_is_created_once_and_where_it_is_said_to_be() {
    let desk = Desk::open(&[]).await;
    let again = desk.create_queue("q", Queue::default()).await;
    refused(again, Code::AlreadyExists, "Queue already exists");
    let request = CreateQueueRequest {
        parent: "projects/p/locations/other".into(),
        queue: Some(Queue {
            name: QUEUE.into(),
            ..Queue::default()
        }),
    };
    let elsewhere = desk.tasks.create_queue(Request::new(request)).await;
    let message = format!("{QUEUE} must begin with projects/p/locations/other.");
    refused(elsewhere, Code::InvalidArgument, &message);
}

#[tokio::test]
async fn a_deleted_queues_name_rests_for_three_days() {
    let desk = Desk::open(&[]).await;
    desk.create(desk.later("t")).await.unwrap();
    desk.delete_queue().await.unwrap();
    refused(desk.queue().await, Code::NotFound, NO_QUEUE);
    refused(desk.delete_queue().await, Code::NotFound, NOT_FOUND);
    refused(desk.create(desk.task("t")).await, Code::NotFound, NO_QUEUE);
    refused(desk.get("t").await, Code::NotFound, NOT_FOUND);
    let message =
        "The queue cannot be created because a queue with this name existed too recently.";
    let recreated = desk.create_queue("q", Queue::default()).await;
    refused(recreated, Code::FailedPrecondition, message);
    desk.context
        .clock
        .advance(Duration::from_secs(3 * 24 * 3600));
    desk.create_queue("q", Queue::default()).await.unwrap();
    assert!(desk.ids().await.is_empty());
}

#[tokio::test]
async fn queues_are_listed_by_name_in_pages_and_filtered() {
    let desk = Desk::open(&[]).await;
    for id in ["c", "a", "b"] {
        desk.create_queue(id, Queue::default()).await.unwrap();
    }
    desk.pause().await;
    let short = |list: &ListQueuesResponse| {
        let names = list
            .queues
            .iter()
            .map(|it| names::short(&it.name).to_owned());
        names.collect::<Vec<_>>()
    };
    let first = list(&desk, 2, "", "").await.unwrap();
    assert_eq!(short(&first), ["a", "b"]);
    let second = list(&desk, 2, &first.next_page_token, "").await.unwrap();
    assert_eq!(short(&second), ["c", "q"]);
    let third = list(&desk, 2, &second.next_page_token, "").await.unwrap();
    assert!(third.queues.is_empty() && third.next_page_token.is_empty());
    assert_eq!(
        short(&list(&desk, 0, "", "state: PAUSED").await.unwrap()),
        ["q"]
    );
    let message = "ListQueuesRequest.pageSize cannot be negative.";
    refused(
        list(&desk, -1, "", "").await,
        Code::InvalidArgument,
        message,
    );
    refused(
        list(&desk, 0, "bogus", "").await,
        Code::InvalidArgument,
        "Invalid page_token",
    );
}

#[tokio::test]
async fn pausing_stops_dispatch_and_can_be_repeated() {
    let desk = Desk::open(&[]).await;
    for _ in 0..2 {
        assert_eq!(desk.pause().await.state(), State::Paused);
    }
    desk.create(desk.task("t")).await.unwrap();
    assert!(desk.tasks.busy().is_empty(), "a paused queue is idle");
    assert!(desk.handler.seen().is_empty());
    for _ in 0..2 {
        assert_eq!(desk.resume().await.state(), State::Running);
    }
    desk.handler.wait_for(1).await;
    desk.idle().await;
}

#[tokio::test]
async fn a_purge_deletes_what_is_there_and_uses_up_its_names() {
    let desk = Desk::open(&[]).await;
    desk.pause().await;
    desk.create(desk.task("a")).await.unwrap();
    desk.create(desk.task("")).await.unwrap();
    let purged = desk.purge().await;
    assert_eq!(purged.state(), State::Paused);
    assert!(purged.purge_time.is_some());
    desk.create(desk.later("b")).await.unwrap();
    assert_eq!(desk.ids().await, ["b"]);
    refused(desk.get("a").await, Code::NotFound, PAST);
    refused(
        desk.create(desk.task("a")).await,
        Code::AlreadyExists,
        USED_UP,
    );
    desk.resume().await;
    assert!(desk.tasks.busy().is_empty());
    assert!(desk.handler.seen().is_empty());
}

#[tokio::test]
async fn a_purge_works_through_many_pages() {
    let desk = Desk::open(&[]).await;
    desk.create_many(2500, &desk.later("")).await;
    desk.purge().await;
    assert!(desk.ids().await.is_empty());
}

#[tokio::test]
async fn no_more_are_on_the_way_than_the_queue_allows() {
    let queue = Queue {
        rate_limits: Some(RateLimits {
            max_concurrent_dispatches: 2,
            ..RateLimits::default()
        }),
        ..Queue::default()
    };
    let desk = Desk::with(Context::for_test(&[]), queue).await;
    desk.handler.hold();
    for _ in 0..5 {
        desk.create(desk.task("")).await.unwrap();
    }
    desk.handler.wait_for(2).await;
    assert_eq!(
        desk.tasks.busy()[0],
        format!("{QUEUE}: 2 dispatches on the way")
    );
    desk.handler.let_go();
    desk.idle().await;
    assert_eq!(desk.handler.seen().len(), 5);
}

#[tokio::test]
async fn beyond_a_burst_the_rate_holds() {
    let queue = Queue {
        rate_limits: Some(RateLimits {
            max_dispatches_per_second: 0.01,
            ..RateLimits::default()
        }),
        ..Queue::default()
    };
    let desk = Desk::with(Context::for_test(&[]), queue).await;
    for _ in 0..12 {
        desk.create(desk.task("")).await.unwrap();
    }
    desk.landed(10).await;
    assert_eq!(desk.handler.seen().len(), 10);
    desk.context.clock.advance(Duration::from_secs(100));
    desk.landed(11).await;
    assert_eq!(desk.handler.seen().len(), 11);
}
