//! The method and path of the request line are the only ones.

use crate::support::prelude::*;

/// `/work` is protected for PUT; everything else goes to the same handler as it is.
fn put_only(settings: &mut Settings) {
    settings.routes[0].methods = vec![Method::PUT];
    pass(settings, &["/*"]);
}

const METHOD: &str =
    "X-HTTP-Method-Override X-HTTP-Method X-Method-Override x_http_method_override X.HTTP.Method";
const PATH: &str = "X-Original-URL X-Rewrite-URL X-Original-URI x_original_url X.Rewrite.URL";

#[tokio::test]
async fn a_passed_request_cannot_pretend_to_be_a_protected_one() {
    let bed = Bed::with(put_only).await;
    for path in ["/work", "/work/", "/Work", "/work%20", "/elsewhere"] {
        for method in [Method::POST, Method::GET] {
            for name in METHOD.split(' ') {
                let ask = Ask::post(path).method(method.clone()).header(name, "PUT");
                bed.ask(ask).await.is_problem(400, "method-override");
            }
            for name in PATH.split(' ') {
                let ask = Ask::post(path).method(method.clone()).header(name, "/work");
                bed.ask(ask).await.is_problem(400, "path-override");
            }
        }
    }
    assert_eq!(bed.runs(), 0);
    bed.ask(Ask::post("/work/")).await.is(200);
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_protected_request_cannot_pretend_to_be_another_one() {
    let bed = Bed::new().await;
    let methods = METHOD.split(' ');
    let methods = methods.map(|name| (name, "DELETE", "method-override"));
    let paths = PATH.split(' ');
    let paths = paths.map(|name| (name, "/other", "path-override"));
    for (name, value, code) in methods.chain(paths) {
        for sender in [Sender::Api, Sender::Task] {
            let ask = sender.sends("k", "{}").header(name, value);
            bed.ask(ask).await.is_problem(400, code);
        }
    }
    assert_eq!((bed.runs(), bed.records().await.len()), (0, 0));
    let kept = Sender::Api.sends("k", "{}").header("X-Forwarded-Uri", "/w");
    bed.send_raw(&kept).await.is(200);
}
