use super::*;
use crate::handler::Handler;
use crate::history::DispatchResult as EndedDelivery;
use crate::proto::pubsub::push_config::{AuthenticationMethod, NoWrapper, OidcToken, Wrapper};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

fn push_to(handler: &Handler) -> wire::PushConfig {
    wire::PushConfig {
        push_endpoint: format!("{}/push?a=1", handler.url),
        ..Default::default()
    }
}

async fn bed_with(faults: &[&str], change: impl FnOnce(&mut wire::Subscription)) -> (Bed, Handler) {
    let handler = Handler::start().await;
    let bed = Bed::with(faults, |it| {
        it.push_config = Some(push_to(&handler));
        change(it);
    })
    .await;
    (bed, handler)
}

#[tokio::test]
async fn a_message_is_pushed_until_it_is_accepted() {
    let (bed, handler) = bed_with(&[], |_| {}).await;
    handler.answer_next(&[503, 203, 302, 204]);
    let published = bed.publish(&["hello"]).await;
    let seen = handler.wait_for(4).await;
    bed.idle(false).await;
    assert_eq!(handler.seen().len(), 4);
    let json: serde_json::Value = serde_json::from_slice(&seen[0].body).unwrap();
    assert_eq!(json["message"]["data"], "aGVsbG8=");
    assert_eq!(json["message"]["messageId"], published[0]);
    assert_eq!(json["subscription"], SUBSCRIPTION);
    assert!(json.get("deliveryAttempt").is_none());
    assert_eq!(seen[0].path, "/push?a=1");
    assert_eq!(seen[0].header("content-type"), "application/json");
    assert!(seen[0].header("user-agent").starts_with("APIs-Google"));
    assert!(seen.iter().all(|it| it.body == seen[0].body));
    let history = bed.history();
    let attempts: Vec<u32> = history.iter().map(|it| it.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    let last = EndedDelivery::Answered {
        status: 204,
        success: true,
    };
    assert_eq!(history[3].result, last);
}

#[tokio::test]
async fn a_handler_that_is_late_is_asked_again() {
    let (bed, handler) = bed_with(&[], |it| {
        it.dead_letter_policy = Some(wire::DeadLetterPolicy {
            dead_letter_topic: TOPIC.into(),
            max_delivery_attempts: 5,
        });
    })
    .await;
    handler.hold();
    bed.publish(&["a"]).await;
    handler.wait_for(1).await;
    bed.advance(11);
    bed.wait_history(|all| {
        all.first()
            .is_some_and(|it| it.result == EndedDelivery::TimedOut)
    })
    .await;
    bed.advance(1);
    let seen = handler.wait_for(2).await;
    let json: serde_json::Value = serde_json::from_slice(&seen[1].body).unwrap();
    assert_eq!(json["deliveryAttempt"], 2);
    handler.let_go();
    bed.idle(false).await;
}

#[tokio::test]
async fn a_retry_policy_pauses_longer_than_the_push_backoff() {
    let (bed, handler) = bed_with(&[], |it| {
        it.retry_policy = Some(wire::RetryPolicy {
            minimum_backoff: span(100),
            maximum_backoff: span(600),
        });
    })
    .await;
    handler.answer_next(&[500]);
    bed.publish(&["a"]).await;
    bed.wait_history(|all| all.iter().any(|it| it.took_us.is_some()))
        .await;
    let before = bed.context.clock.now();
    bed.advance(90);
    assert_eq!(handler.seen().len(), 1);
    bed.advance(11);
    handler.wait_for(2).await;
    bed.idle(false).await;
    let second = crate::clock::Time(bed.history()[1].at_us);
    assert!(second.since(before) >= Duration::from_secs(99));
}

#[tokio::test]
async fn messages_of_one_key_are_pushed_one_at_a_time() {
    let (bed, handler) = bed_with(&[], |it| it.enable_message_ordering = true).await;
    handler.hold();
    bed.publish_keyed(&["a1", "a2", "a3"], "a").await;
    bed.publish_keyed(&["b1"], "b").await;
    handler.wait_for(2).await;
    let running = bed.history();
    assert_eq!(running.len(), 2, "{running:?}");
    handler.let_go();
    bed.idle(false).await;
    let data: Vec<String> = handler
        .seen()
        .iter()
        .map(|it| serde_json::from_slice::<serde_json::Value>(&it.body).unwrap())
        .filter(|it| it["message"]["orderingKey"] == "a")
        .map(|it| it["message"]["data"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(data, ["YTE=", "YTI=", "YTM="]);
}

#[tokio::test]
async fn a_push_carries_a_token_for_its_endpoint() {
    let handler = Handler::start().await;
    let bed = Bed::new(&[]).await;
    let push = |audience: &str| wire::PushConfig {
        authentication_method: Some(AuthenticationMethod::OidcToken(OidcToken {
            service_account_email: "who@p.iam.gserviceaccount.com".into(),
            audience: audience.into(),
        })),
        wrapper: Some(Wrapper::NoWrapper(NoWrapper {
            write_metadata: true,
        })),
        ..push_to(&handler)
    };
    bed.subscribe(SUBSCRIPTION, |it| it.push_config = Some(push("")))
        .await
        .unwrap();
    let published = bed.publish(&["raw"]).await;
    let seen = handler.wait_for(1).await.remove(0);
    assert_eq!(seen.body, "raw");
    assert_eq!(seen.header("x-goog-pubsub-message-id"), published[0]);
    let token = seen
        .header("authorization")
        .strip_prefix("Bearer ")
        .unwrap();
    let claims = URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1).unwrap())
        .unwrap();
    let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["aud"], push("").push_endpoint);
    assert_eq!(claims["email"], "who@p.iam.gserviceaccount.com");
    bed.idle(false).await;
}

#[tokio::test]
async fn a_subscription_may_change_from_pull_to_push_and_back() {
    let handler = Handler::start().await;
    let bed = Bed::with(&[], |_| {}).await;
    bed.publish(&["a"]).await;
    let change = |push_config| wire::ModifyPushConfigRequest {
        subscription: SUBSCRIPTION.into(),
        push_config,
    };
    let to_push = change(Some(push_to(&handler)));
    bed.pubsub
        .modify_push_config(Request::new(to_push))
        .await
        .unwrap();
    handler.wait_for(1).await;
    bed.idle(false).await;
    let to_pull = change(Some(wire::PushConfig::default()));
    bed.pubsub
        .modify_push_config(Request::new(to_pull))
        .await
        .unwrap();
    bed.publish(&["b"]).await;
    assert_eq!(texts(&bed.pull(SUBSCRIPTION).await), ["b"]);
    assert_eq!(handler.seen().len(), 1);
}

#[tokio::test]
async fn many_messages_are_all_pushed() {
    let (bed, handler) = bed_with(&[], |_| {}).await;
    let many: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    bed.publish(&many).await;
    handler.wait_for(300).await;
    bed.idle(false).await;
    assert_eq!(handler.seen().len(), 300);
}
