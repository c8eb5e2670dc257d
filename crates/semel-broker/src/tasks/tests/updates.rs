use super::*;
use crate::proto::tasks::queue::State;
use crate::proto::tasks::{HttpTarget, UpdateQueueRequest, UriOverride};
use prost_types::FieldMask;

async fn update(desk: &Desk, queue: Queue, paths: Option<&[&str]>) -> Result<Queue, Status> {
    let name = if queue.name.is_empty() {
        QUEUE.into()
    } else {
        queue.name.clone()
    };
    let mask = |paths: &[&str]| FieldMask {
        paths: paths.iter().map(|it| (*it).to_owned()).collect(),
    };
    let request = UpdateQueueRequest {
        queue: Some(Queue { name, ..queue }),
        update_mask: paths.map(mask),
    };
    let updated = desk.tasks.update_queue(Request::new(request)).await;
    updated.map(tonic::Response::into_inner)
}

fn rate(per_second: f64, concurrent: i32) -> Queue {
    Queue {
        rate_limits: Some(RateLimits {
            max_dispatches_per_second: per_second,
            max_burst_size: 0,
            max_concurrent_dispatches: concurrent,
        }),
        ..Queue::default()
    }
}

fn rates_of(queue: &Queue) -> (f64, i32, i32) {
    let rates = queue.rate_limits.unwrap();
    (
        rates.max_dispatches_per_second,
        rates.max_burst_size,
        rates.max_concurrent_dispatches,
    )
}

async fn configured() -> Desk {
    let queue = Queue {
        retry_config: Some(RetryConfig {
            max_attempts: 5,
            max_backoff: secs(10),
            ..RetryConfig::default()
        }),
        ..rate(10.0, 5)
    };
    Desk::with(Context::for_test(&[]), queue).await
}

#[tokio::test]
async fn only_masked_fields_change() {
    let desk = configured().await;
    let paths = ["rate_limits.max_dispatches_per_second"];
    let updated = update(&desk, rate(100.0, 7), Some(&paths)).await.unwrap();
    assert_eq!(rates_of(&updated), (100.0, 20, 5));
    assert_eq!(updated.retry_config.unwrap().max_attempts, 5);
    assert_eq!(desk.queue().await.unwrap(), updated);
}

#[tokio::test]
async fn a_masked_message_is_replaced_whole() {
    let desk = configured().await;
    let updated = update(&desk, rate(100.0, 0), Some(&["rate_limits"]))
        .await
        .unwrap();
    assert_eq!(rates_of(&updated), (100.0, 20, 1000));
    assert_eq!(updated.retry_config.unwrap().max_attempts, 5);
}

#[tokio::test]
async fn without_a_mask_everything_is_replaced() {
    let desk = configured().await;
    let updated = update(&desk, rate(100.0, 0), None).await.unwrap();
    assert_eq!(rates_of(&updated), (100.0, 20, 1000));
    assert_eq!(updated.retry_config.unwrap().max_attempts, 100);
}

#[tokio::test]
async fn an_empty_mask_changes_nothing() {
    let desk = configured().await;
    let before = desk.queue().await.unwrap();
    let updated = update(&desk, rate(100.0, 0), Some(&[])).await.unwrap();
    assert_eq!(updated, before);
}

#[tokio::test]
async fn a_missing_queue_is_created() {
    let desk = Desk::open(&[]).await;
    let named = |id: &str| Queue {
        name: format!("{PARENT}/queues/{id}"),
        ..rate(10.0, 5)
    };
    let whole = update(&desk, named("whole"), None).await.unwrap();
    assert_eq!(rates_of(&whole), (10.0, 10, 5));
    assert_eq!(whole.state(), State::Running);
    let paths = ["rate_limits.max_concurrent_dispatches"];
    let masked = update(&desk, named("masked"), Some(&paths)).await.unwrap();
    assert_eq!(rates_of(&masked), (500.0, 100, 5));
    desk.delete_queue().await.unwrap();
    let message =
        "The queue cannot be created because a queue with this name existed too recently.";
    refused(
        update(&desk, Queue::default(), None).await,
        Code::FailedPrecondition,
        message,
    );
}

#[tokio::test]
async fn state_and_purge_time_are_not_for_setting() {
    let desk = configured().await;
    desk.pause().await;
    let wanted = Queue {
        state: State::Running.into(),
        purge_time: Some(prost_types::Timestamp::default()),
        ..rate(10.0, 5)
    };
    let paths = ["state", "purge_time", "name", "rate_limits.max_burst_size"];
    for paths in [None, Some(paths.as_slice())] {
        let updated = update(&desk, wanted.clone(), paths).await.unwrap();
        assert_eq!(updated.state(), State::Paused);
        assert_eq!(updated.purge_time, None);
        assert_eq!(rates_of(&updated).1, 10);
    }
}

#[tokio::test]
async fn updates_are_refused_as_recorded() {
    let desk = configured().await;
    let invalid = Code::InvalidArgument;
    let bogus = update(&desk, Queue::default(), Some(&["rate_limits.bogus"])).await;
    refused(bogus, invalid, "Invalid mask: rate_limits.bogus");
    let message = "RateLimits.maxDispatchesPerSecond must be less than or equal to 500.";
    refused(update(&desk, rate(501.0, 0), None).await, invalid, message);
    let retry = Queue {
        retry_config: Some(RetryConfig {
            min_backoff: secs(11),
            ..RetryConfig::default()
        }),
        ..Queue::default()
    };
    let above = update(&desk, retry, Some(&["retry_config.min_backoff"])).await;
    let message = "RetryConfig.minBackoff must be less than or equal to RetryConfig.maxBackoff.";
    refused(above, invalid, message);
    let host = |host: &str| Queue {
        http_target: Some(HttpTarget {
            uri_override: Some(UriOverride {
                host: Some(host.into()),
                ..UriOverride::default()
            }),
            ..HttpTarget::default()
        }),
        ..Queue::default()
    };
    let outside = update(&desk, host("http://x"), Some(&["state"])).await;
    refused(
        outside,
        invalid,
        "Error in parsing HttpTarget. Invalid Host.",
    );
    update(&desk, host("example.net"), Some(&["http_target"]))
        .await
        .unwrap();
    let target = Queue {
        http_target: Some(HttpTarget::default()),
        ..Queue::default()
    };
    let emptied = update(&desk, target, Some(&["http_target.uri_override.host"])).await;
    refused(
        emptied,
        invalid,
        "Error in parsing HttpTarget. Invalid uri_override.",
    );
    let nobody = UpdateQueueRequest::default();
    let nobody = desk.tasks.update_queue(Request::new(nobody)).await;
    refused(
        nobody,
        invalid,
        "Invalid resource field value in the request.",
    );
}
