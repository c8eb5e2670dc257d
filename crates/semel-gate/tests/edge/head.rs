//! HEAD runs what GET runs.

use crate::support::prelude::*;

/// A gate that passes all but these methods of its route.
async fn protecting(methods: &[Method]) -> Bed {
    Bed::with(|settings| {
        settings.routes[0].methods = methods.to_vec();
        pass(settings, &["/*"]);
    })
    .await
}

#[tokio::test]
async fn head_does_not_lead_around_a_protected_get() {
    let bed = protecting(&[Method::GET]).await;
    let head = |path: &str| Ask::get(path).method(Method::HEAD);
    assert_eq!(bed.ask(head("/work")).await.status, 405);
    for alike in ["/work/", "/Work", "/work%20"] {
        assert_eq!(bed.ask(head(alike)).await.status, 400, "{alike}");
    }
    assert_eq!(bed.runs(), 0);
    bed.handler.answers(Say::new(204, ""));
    assert_eq!(bed.ask(head("/elsewhere")).await.status, 204);
    // A POST is another matter.
    bed.ask(Ask::post("/work")).await.is(200);
    assert_eq!(bed.runs(), 2);
}

#[tokio::test]
async fn a_head_that_the_route_lists_is_protected() {
    let bed = protecting(&[Method::GET, Method::HEAD]).await;
    bed.handler.answers(Say::new(204, ""));
    let ask = Sender::Api.sends("k", "").method(Method::HEAD);
    bed.ask(ask.clone()).await.is(204);
    bed.ask(ask).await.is_replay(204);
    assert_eq!((bed.runs(), bed.records().await.len()), (1, 1));
}
