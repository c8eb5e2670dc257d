//! What comes behind a body is no way around what stands before it.

use crate::http2;
use crate::support::prelude::*;
use http::{HeaderMap, HeaderName, HeaderValue};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// All of these names, with the same value.
fn map(names: &'static str) -> HeaderMap {
    let named = |name| {
        let value = HeaderValue::from_static("told");
        (HeaderName::from_static(name), value)
    };
    names.split(' ').map(named).collect()
}

fn names(headers: &HeaderMap) -> Vec<&str> {
    let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn trailers_that_somebody_could_take_for_headers_do_not_cross() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let handler = http2::handler(move |request: Request<Incoming>| {
        let tell = tell.clone();
        async move {
            let got = request.into_body().collect().await.unwrap();
            tell.send(got.trailers().cloned().unwrap_or_default())
                .unwrap();
            let said = "grpc-status semel-recorded semel_body idempotent-replayed";
            let body = Full::new(Bytes::from("done"));
            let body = body.with_trailers(async move { Some(Ok(map(said))) });
            let answer = Response::builder().header("idempotent-replayed", "true");
            answer.body(body).unwrap()
        }
    })
    .await;
    let bed = Bed::with(|settings| {
        settings.routes[0].upstream = upstream(handler);
        settings.routes[0].upstream.h2c = true;
        pass(settings, &["/static/*"]);
    })
    .await;
    let sent = "x-checksum semel-key semel_fence idempotency-key x-caller x_caller authorization \
                x-http-method-override x-original-url x_rewrite_url x-forwarded-for";
    let body = Full::new(Bytes::from("{}")).with_trailers(async { Some(Ok(map(sent))) });
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let request = Request::post(format!("http://{}/static/x", bed.gate));
    let asked = client.request(request.body(Box::pin(body)).unwrap());
    let answer = within("a reply", asked).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers().get("idempotent-replayed"), None);
    let got = answer.into_body().collect().await.unwrap();
    assert_eq!(names(got.trailers().unwrap()), ["grpc-status"]);
    let heard = within("a request", told.recv()).await.unwrap();
    assert_eq!(names(&heard), ["x-checksum"]);
}
