use super::*;
use prost_types::FieldMask;
use tonic::Code;

fn message(data: usize) -> wire::PubsubMessage {
    wire::PubsubMessage {
        data: vec![b'x'; data].into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn what_is_not_there_and_what_is_there_already_is_said_in_productions_words() {
    let bed = Bed::with(&[], |_| {}).await;
    let missing = wire::GetTopicRequest {
        topic: "projects/p/topics/none".into(),
    };
    let refused = bed
        .pubsub
        .get_topic(Request::new(missing))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assert_eq!(refused.message(), "Resource not found (resource=none).");
    let again = bed.subscribe(SUBSCRIPTION, |_| {}).await.unwrap_err();
    assert_eq!(again.code(), Code::AlreadyExists);
    assert_eq!(
        again.message(),
        "Resource already exists in the project (resource=billing)."
    );
    let nowhere = |it: &mut wire::Subscription| it.topic = "projects/p/topics/none".into();
    let refused = bed
        .subscribe("projects/p/subscriptions/other", nowhere)
        .await;
    assert_eq!(refused.unwrap_err().code(), Code::NotFound);
    let unnamed = bed
        .subscribe("projects/p/subscriptions/a", |_| {})
        .await
        .unwrap_err();
    assert_eq!(
        unnamed.message(),
        "Invalid resource name given (name=projects/p/subscriptions/a). Refer to \
         https://cloud.google.com/pubsub/docs/admin#resource_names for more information."
    );
}

#[tokio::test]
async fn a_subscription_is_completed_with_what_is_usual() {
    let bed = Bed::new(&[]).await;
    let change = |it: &mut wire::Subscription| {
        it.dead_letter_policy = Some(wire::DeadLetterPolicy {
            dead_letter_topic: "projects/p/topics/dead".into(),
            max_delivery_attempts: 0,
        });
        it.retry_policy = Some(wire::RetryPolicy::default());
    };
    let made = bed.subscribe(SUBSCRIPTION, change).await.unwrap();
    assert_eq!(made.ack_deadline_seconds, 10);
    assert_eq!(made.message_retention_duration, span(604_800));
    assert_eq!(made.expiration_policy.unwrap().ttl, span(2_678_400));
    assert_eq!(made.dead_letter_policy.unwrap().max_delivery_attempts, 5);
    let retry = made.retry_policy.unwrap();
    assert_eq!(
        (retry.minimum_backoff, retry.maximum_backoff),
        (span(10), span(600))
    );
    assert_eq!(made.state, wire::subscription::State::Active as i32);
}

#[tokio::test]
async fn settings_out_of_range_are_refused() {
    let bed = Bed::new(&[]).await;
    let wrong: [fn(&mut wire::Subscription); 9] = [
        |it| it.ack_deadline_seconds = 9,
        |it| it.ack_deadline_seconds = 601,
        |it| it.message_retention_duration = span(599),
        |it| it.message_retention_duration = span(32 * 24 * 3600),
        |it| it.filter = "region = eu".into(),
        |it| {
            it.dead_letter_policy = Some(wire::DeadLetterPolicy {
                dead_letter_topic: "projects/p/topics/dead".into(),
                max_delivery_attempts: 4,
            });
        },
        |it| {
            it.retry_policy = Some(wire::RetryPolicy {
                minimum_backoff: span(20),
                maximum_backoff: span(10),
            });
        },
        |it| it.push_config.get_or_insert_default().push_endpoint = "not a url".into(),
        |it| {
            it.enable_exactly_once_delivery = true;
            it.push_config.get_or_insert_default().push_endpoint = "http://127.0.0.1:1/".into();
        },
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        let refused = bed.subscribe(SUBSCRIPTION, change).await;
        assert_eq!(
            refused.unwrap_err().code(),
            Code::InvalidArgument,
            "{number}"
        );
    }
}

#[tokio::test]
async fn messages_beyond_the_limits_are_refused() {
    let bed = Bed::new(&[]).await;
    let attributes = |count: usize, key: usize, value: usize| wire::PubsubMessage {
        attributes: (0..count)
            .map(|n| (format!("{n:0key$}"), "v".repeat(value)))
            .collect(),
        ..Default::default()
    };
    let keyed = wire::PubsubMessage {
        ordering_key: "k".repeat(1025),
        ..message(1)
    };
    for (why, messages) in [
        ("none", vec![]),
        ("empty", vec![message(0)]),
        ("large", vec![message(10_000_001)]),
        ("many", vec![message(1); 1001]),
        ("attributes", vec![attributes(101, 1, 1)]),
        ("key", vec![attributes(1, 257, 1)]),
        ("value", vec![attributes(1, 1, 1025)]),
        ("ordering key", vec![keyed]),
    ] {
        let refused = bed.publish_messages(messages).await;
        assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument, "{why}");
    }
    let most = vec![attributes(100, 256, 1024), message(9_000_000)];
    assert_eq!(bed.publish_messages(most).await.unwrap().len(), 2);
}

#[tokio::test]
async fn an_update_changes_what_its_mask_names() {
    let bed = Bed::with(&[], |_| {}).await;
    let update = |paths: &[&str]| wire::UpdateSubscriptionRequest {
        subscription: Some(wire::Subscription {
            name: SUBSCRIPTION.into(),
            ack_deadline_seconds: 77,
            labels: [("a".to_owned(), "b".to_owned())].into(),
            ..Default::default()
        }),
        update_mask: Some(FieldMask {
            paths: paths.iter().map(|it| (*it).to_owned()).collect(),
        }),
    };
    let change = |paths: &[&str]| bed.pubsub.update_subscription(Request::new(update(paths)));
    let changed = change(&["ack_deadline_seconds"])
        .await
        .unwrap()
        .into_inner();
    assert_eq!(changed.ack_deadline_seconds, 77);
    assert!(changed.labels.is_empty());
    assert_eq!(
        change(&["filter"]).await.unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(change(&[]).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let bed = Bed::new(&[]).await;
    for n in 0..5 {
        bed.topic(&format!("projects/p/topics/page{n}")).await;
        let name = format!("projects/p/subscriptions/page{n}");
        bed.subscribe(&name, |_| {}).await.unwrap();
    }
    let mut token = String::new();
    let mut names = Vec::new();
    loop {
        let request = wire::ListTopicsRequest {
            project: "projects/p".into(),
            page_size: 4,
            page_token: token,
        };
        let page = bed.pubsub.list_topics(Request::new(request)).await.unwrap();
        let page = page.into_inner();
        names.extend(page.topics.into_iter().map(|topic| topic.name));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(names.len(), 6);
    let request = wire::ListTopicSubscriptionsRequest {
        topic: TOPIC.into(),
        page_size: 2,
        page_token: String::new(),
    };
    let page = bed
        .pubsub
        .list_topic_subscriptions(Request::new(request))
        .await;
    let page = page.unwrap().into_inner();
    assert_eq!(page.subscriptions.len(), 2);
    assert!(!page.next_page_token.is_empty());
    let request = wire::ListSubscriptionsRequest {
        project: "projects/q".into(),
        ..Default::default()
    };
    let page = bed
        .pubsub
        .list_subscriptions(Request::new(request))
        .await
        .unwrap();
    assert!(page.into_inner().subscriptions.is_empty());
}

#[tokio::test]
async fn a_deleted_topic_leaves_its_subscriptions_what_they_have() {
    let bed = Bed::with(&[], |_| {}).await;
    bed.publish(&["a"]).await;
    let request = wire::DeleteTopicRequest {
        topic: TOPIC.into(),
    };
    bed.pubsub
        .delete_topic(Request::new(request))
        .await
        .unwrap();
    let request = wire::GetSubscriptionRequest {
        subscription: SUBSCRIPTION.into(),
    };
    let shown = bed
        .pubsub
        .get_subscription(Request::new(request))
        .await
        .unwrap();
    assert_eq!(shown.into_inner().topic, "_deleted-topic_");
    assert_eq!(texts(&bed.pull(SUBSCRIPTION).await), ["a"]);
    // A topic of the same name is another one.
    bed.topic(TOPIC).await;
    bed.publish(&["b"]).await;
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
}

#[tokio::test]
async fn a_detached_subscription_has_nothing_and_gets_nothing() {
    let bed = Bed::with(&[], |_| {}).await;
    bed.publish(&["a"]).await;
    let request = wire::DetachSubscriptionRequest {
        subscription: SUBSCRIPTION.into(),
    };
    bed.pubsub
        .detach_subscription(Request::new(request))
        .await
        .unwrap();
    let refused = bed.try_pull(SUBSCRIPTION, true).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    bed.publish(&["b"]).await;
    assert!(bed.pubsub.busy(true).is_empty());
}

#[tokio::test]
async fn a_reset_leaves_nothing() {
    let bed = Bed::with(&[], |_| {}).await;
    bed.publish(&["a"]).await;
    assert_eq!(bed.pubsub.busy(true), [SUBSCRIPTION]);
    assert!(bed.pubsub.busy(false).is_empty());
    bed.pubsub.reset().await.unwrap();
    assert!(bed.pubsub.busy(true).is_empty());
    let refused = bed.try_pull(SUBSCRIPTION, true).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    bed.topic(TOPIC).await;
    bed.subscribe(SUBSCRIPTION, |_| {}).await.unwrap();
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
}
