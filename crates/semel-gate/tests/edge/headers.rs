//! Headers that somebody relies on: nobody else sets them, spells them anew, or takes them away.

use crate::support::prelude::*;

#[tokio::test]
async fn a_key_on_a_method_that_is_not_protected_is_refused() {
    let bed = Bed::new().await;
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        for name in ["Idempotency-Key", "IDEMPOTENCY_KEY"] {
            let ask = Ask::get("/work").method(method.clone()).header(name, "k");
            let answer = bed.ask(ask).await;
            assert_eq!(answer.status, 400, "{method} {name}");
            if method != Method::HEAD {
                answer.is_problem(400, "key-unprotected").tells("`methods`");
            }
        }
        assert_eq!(bed.runs(), 0, "{method}");
    }
}

#[tokio::test]
async fn a_method_that_the_route_lists_is_protected() {
    for method in [Method::GET, Method::OPTIONS] {
        let bed = Bed::route(|route| route.methods = vec![Method::POST, method.clone()]).await;
        let ask = Sender::Api.sends("k", "").method(method.clone());
        bed.ask(ask.clone()).await.is(200);
        bed.ask(ask).await.is_replay(200);
        let keyless = Sender::Api.sends("k", "").method(method.clone());
        let answer = bed.ask(keyless.without("Idempotency-Key")).await;
        answer.is_problem(400, "key-part-missing");
        assert_eq!((bed.runs(), bed.records().await.len()), (1, 1), "{method}");
    }
}

/// Spellings that a CGI-style server takes for headers of the gate, or of something trusted before it.
const FORGED: &str = "
    Semel-Key semel_key SEMEL_FENCE Semel-Attempt Semel_Attempt semel.steps Semel~Source
    SEMEL_anything Semel Idempotency_Key idempotency.key X_Caller x.caller X_cAlLeR
";

/// Whether a handler that reads headers as variables would find the forged value in one.
fn is_forged(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(_, value)| value == "forged")
}

#[tokio::test]
async fn no_other_spelling_of_a_name_that_counts_reaches_the_handler() {
    let bed = Bed::with(|settings| pass(settings, &["/static/*"])).await;
    for name in FORGED.split_whitespace() {
        for sender in SENDERS {
            let ask = sender.sends(name, "{}").header(name, "forged");
            bed.send_raw(&ask).await.is_for(name, 200);
            let seen = bed.handler.arrived().await;
            assert!(!is_forged(&seen.headers), "{name}: {seen:?}");
            assert!(seen.header("semel-key").unwrap().starts_with("v1_"));
            assert_eq!(seen.header("idempotency-key"), seen.header("semel-key"));
        }
        let ask = Ask::post("/static/x").header(name, "forged");
        bed.send_raw(&ask).await.is_for(name, 200);
        let seen = bed.handler.arrived().await;
        assert!(!is_forged(&seen.headers), "{name}: {seen:?}");
    }
}

#[tokio::test]
async fn the_trusted_caller_stands_alone() {
    let bed = Bed::new().await;
    let ask = Sender::Api.sends("k", "{}").header("X_Caller", "mallory");
    bed.send_raw(&ask).await.is(200);
    let seen = bed.handler.arrived().await;
    seen.has("x-caller", "alice").lacks("x_caller");
    let alone = Sender::Api.sends("k", "{}").without("X-Caller");
    let answer = bed.ask(alone.header("X_Caller", "alice")).await;
    answer.is_problem(400, "caller-missing");
}

#[tokio::test]
async fn a_second_spelling_of_a_header_that_is_there_does_not_cross() {
    let bed = Bed::new().await;
    let ask = Sender::Task
        .sends("t", "{}")
        .header("X_CloudTasks_TaskName", "forged")
        .header("X-Twin", "1")
        .header("X_Twin", "forged")
        .header("only_underscored", "kept");
    bed.send_raw(&ask).await.is(200);
    let seen = bed.handler.arrived().await;
    assert!(!is_forged(&seen.headers), "{seen:?}");
    seen.has("only_underscored", "kept");
}

#[tokio::test]
async fn connection_cannot_take_away_what_somebody_relies_on() {
    let bed = Bed::with(|settings| {
        pass(settings, &["/static/*"]);
        settings.routes[0].fingerprint = FingerprintRule::With(vec!["header:x-version".into()]);
    })
    .await;
    let relied_on = "X-Caller x_caller Authorization Idempotency-Key Semel-Fence SEMEL_KEY \
                     X-Version X-CloudTasks-TaskName ce-id Host Cookie Content-Type Content-Length";
    for listed in relied_on.split(' ').chain(["close, x-caller"]) {
        for path in ["/work", "/static/x"] {
            let ask = Sender::Api.sends("k", "{}").path(path);
            let reply = exchange(bed.gate, &ask.header("Connection", listed).raw()).await;
            reply.is_for(listed, 400);
            reply.is_problem(listed, 400, "connection-names-header");
        }
    }
    assert_eq!((bed.runs(), bed.records().await.len()), (0, 0));
}

#[tokio::test]
async fn the_gates_own_names_do_not_come_back_from_a_handler() {
    let bed = Bed::new().await;
    let said = Say::new(200, "done")
        .header("Semel_Recorded", "forged")
        .header("SEMEL-Body", "forged")
        .header("Idempotent-Replayed", "true")
        .header("X-Own", "1");
    bed.handler.answers(said);
    let first = bed.api("k").await;
    first.is(200).has("x-own", "1");
    assert!(!format!("{first:?}").contains("forged"), "{first:?}");
}
