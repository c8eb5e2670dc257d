//! Redirects: each one is a request like the first.

use super::*;

fn authorised(url: &str) -> OutgoingRequest {
    let mut call = call(url);
    let headers = &mut call.headers;
    headers.insert("authorization", "Bearer secret".parse().unwrap());
    headers.insert("content-type", "text/plain".parse().unwrap());
    headers.insert("x-mine", "1".parse().unwrap());
    call
}

#[tokio::test]
async fn a_post_goes_on_as_a_get_without_body() {
    let handler = Handler::start().await;
    let http_client = http_client();
    for code in [301, 302, 303, 307, 308] {
        let before = handler.seen().len();
        handler.redirect_next(code, "/next?x=1");
        let call = authorised(&format!("{}/first", handler.url));
        assert_eq!(http_client.deliver(call).await, status(200));
        let seen = handler.seen();
        let [first, next] = &seen[before..] else {
            panic!("{seen:?}");
        };
        assert_eq!((first.method.as_str(), &*first.path), ("POST", "/first"));
        assert_eq!((next.method.as_str(), &*next.path), ("GET", "/next?x=1"));
        assert!(next.body.is_empty());
        assert_eq!(next.header("content-type"), "");
        assert_eq!(next.header("x-mine"), "1");
        assert_eq!(next.header("authorization"), "Bearer secret");
    }
}

#[tokio::test]
async fn a_put_keeps_its_body() {
    let handler = Handler::start().await;
    handler.redirect_next(307, "next");
    let mut call = call(&format!("{}/a/first", handler.url));
    call.method = Method::PUT;
    assert_eq!(http_client().deliver(call).await, status(200));
    let next = &handler.seen()[1];
    assert_eq!((next.method.as_str(), &*next.path), ("PUT", "/a/next"));
    assert_eq!(next.body, "0123456789");
}

#[tokio::test]
async fn another_host_is_not_told_who_calls() {
    let (here, there) = (Handler::start().await, Handler::start().await);
    here.redirect_next(302, &format!("{}/there", there.url));
    there.redirect_next(302, &format!("{}/back", here.url));
    assert_eq!(
        http_client().deliver(authorised(&here.url)).await,
        status(200)
    );
    assert_eq!(here.seen()[0].header("authorization"), "Bearer secret");
    assert_eq!(there.seen()[0].header("authorization"), "");
    assert_eq!(here.seen()[1].header("authorization"), "");
}

#[tokio::test]
async fn a_redirect_to_a_forbidden_address_is_not_followed() {
    let handler = Handler::start().await;
    let http_client = http_client();
    for to in [
        "http://169.254.169.254/computeMetadata/v1/",
        "//169.254.169.254/",
        "http://2852039166/",
        "http://metadata.google.internal./",
        "https://[::ffff:a9fe:a9fe]/",
    ] {
        handler.redirect_next(302, to);
        let why = reason(http_client.deliver(call(&handler.url)).await);
        assert!(why.contains("never called"), "{to}: {why}");
    }
}

#[tokio::test]
async fn what_leads_nowhere_is_the_answer() {
    let handler = Handler::start().await;
    let http_client = http_client();
    for to in ["http://", "gopher://127.0.0.1/", "mailto:a@b"] {
        handler.redirect_next(302, to);
        let answer = http_client.deliver(call(&handler.url)).await;
        assert_eq!(answer, status(302), "{to}");
    }
    handler.answer_next(&[302, 304]);
    assert_eq!(http_client.deliver(call(&handler.url)).await, status(302));
    assert_eq!(http_client.deliver(call(&handler.url)).await, status(304));
    handler.redirect_next(300, "/next");
    assert_eq!(http_client.deliver(call(&handler.url)).await, status(300));
}

#[tokio::test]
async fn who_does_not_follow_gets_the_redirect() {
    let handler = Handler::start().await;
    handler.redirect_next(302, "/next");
    let mut call = call(&handler.url);
    call.redirects = Redirects::Answer;
    assert_eq!(http_client().deliver(call).await, status(302));
    assert_eq!(handler.seen().len(), 1);
}

#[tokio::test]
async fn a_circle_ends() {
    let handler = Handler::start().await;
    for _ in 0..10 {
        handler.redirect_next(302, "/again");
    }
    assert_eq!(http_client().deliver(call(&handler.url)).await, status(302));
    assert_eq!(handler.seen().len(), 1 + REDIRECTS_MAX);
}
