//! The handshake of CloudEvents webhooks.

use crate::support::{Answer, Ask, Bed, Sender};
use http::Method;
use semel_gate::settings::Source;

async fn bed(origins: &[&str]) -> Bed {
    let origins = origins.iter().map(|&origin| origin.into()).collect();
    Bed::route(|route| {
        route.sources = vec![Source::CloudEvents];
        route.webhook_origins = origins;
    })
    .await
}

fn handshake(origin: &str) -> Ask {
    let ask = Ask::get("/work").method(Method::OPTIONS);
    ask.header("WebHook-Request-Origin", origin)
}

fn is_granted(answer: &Answer) -> bool {
    answer.header("webhook-allowed-origin").is_some()
}

#[tokio::test]
async fn an_origin_that_the_route_names_may_deliver() {
    let bed = bed(&["eventgrid.azure.net"]).await;
    let answer = bed.ask(handshake("eventgrid.azure.net")).await;
    answer.is(200);
    let allowed = answer.header("webhook-allowed-origin");
    assert_eq!(allowed, Some("eventgrid.azure.net"));
    assert_eq!(answer.header("allow"), Some("POST"));
    assert_eq!(answer.header("webhook-allowed-rate"), None);
    let rated = handshake("eventgrid.azure.net").header("WebHook-Request-Rate", "120");
    let answer = bed.ask(rated).await;
    assert_eq!(answer.header("webhook-allowed-rate"), Some("*"));
    super::left_nothing(&bed, "a handshake").await;
    bed.ask(Sender::Event.sends("e1", "{}")).await.is(200);
}

#[tokio::test]
async fn others_may_not() {
    for origins in [&["eventgrid.azure.net"][..], &[]] {
        let bed = bed(origins).await;
        let twice =
            handshake("eventgrid.azure.net").header("WebHook-Request-Origin", "evil.example");
        let asks = [
            handshake("evil.example"),
            handshake("eventgrid.azure.net.evil.example"),
            handshake("EVENTGRID.azure.net"),
            handshake("*"),
            handshake(""),
            twice,
        ];
        for ask in asks {
            let answer = bed.ask(ask).await;
            answer.is_problem(403, "webhook-origin");
            assert!(!is_granted(&answer));
        }
        super::left_nothing(&bed, "a refused handshake").await;
    }
}

#[tokio::test]
async fn it_is_answered_where_only_posts_are_taken() {
    let bed = Bed::route(|route| {
        route.sources = vec![Source::CloudEvents];
        route.methods = vec![Method::POST];
        route.webhook_origins = vec!["a.example".into()];
    })
    .await;
    bed.ask(handshake("a.example")).await.is(200);
    let other = handshake("a.example").path("/elsewhere");
    bed.ask(other).await.is_problem(404, "unknown-path");
}

#[tokio::test]
async fn routes_without_events_have_no_handshake() {
    let bed = Bed::route(|route| route.sources = vec![Source::Api]).await;
    // A client's OPTIONS is the handler's to answer.
    let answer = bed.ask(handshake("a.example")).await;
    answer.is(200);
    assert!(!is_granted(&answer));
    bed.handler.arrived().await.is(&Method::OPTIONS, "/work");
}
