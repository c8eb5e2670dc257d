//! Requests that are refused before they are deliveries: counted, and logged with their sender's ids.

use crate::log_lines;
use crate::support::prelude::*;

/// A gate whose only route is `/seen`.
async fn seen() -> Bed {
    log_lines::listen();
    Bed::with(|settings| {
        let route = &mut settings.routes[0];
        route.path = "/seen".parse().unwrap();
        route.methods = vec![Method::POST];
        route.body_bytes_max = 100;
    })
    .await
}

#[tokio::test]
async fn each_has_a_line_with_its_senders_ids_and_is_counted() {
    let bed = seen().await;
    for (path, reason, status) in [
        ("/seen/", "ambiguous-path", 400),
        ("/Seen", "ambiguous-path", 400),
        ("/sene", "unknown-path", 404),
        ("/s%65%6een%zz", "ambiguous-path", 400),
    ] {
        let ask = Sender::Task.sends("lost-1", "{}").path(path);
        bed.ask(ask).await.is_problem(status, reason);
        let lines = log_lines::lines("path", path);
        assert_eq!(lines.len(), 1, "{path}: {lines:?}");
        assert_eq!(lines[0]["level"], "WARN");
        assert_eq!(lines[0]["outcome"], "turned-away");
        assert_eq!(lines[0]["reason"], reason);
        assert_eq!(lines[0]["status"], status);
        let ids = lines[0]["ids"].as_str().unwrap();
        assert!(ids.contains("x-cloudtasks-taskname=lost-1"), "{ids}");
    }
    bed.counts("semel_turned_away_total{reason=\"ambiguous-path\"} 3\n")
        .await;
    bed.counts("semel_turned_away_total{reason=\"unknown-path\"} 1\n")
        .await;
    assert_eq!((bed.runs(), bed.letters().await.len()), (0, 0));
}

#[tokio::test]
async fn a_method_and_a_size_too() {
    let bed = seen().await;
    let put = Sender::Task
        .sends("lost-2", "{}")
        .path("/seen")
        .method(Method::PUT);
    bed.ask(put).await.is_problem(405, "other-method");
    let large = Sender::Push.sends("lost-3", &"x".repeat(200)).path("/seen");
    bed.ask(large).await.is_problem(413, "body-too-large");
    for reason in ["other-method", "body-too-large"] {
        let lines = log_lines::lines("reason", reason);
        let named = |line: &&Value| line["path"] == "/seen" && line["method"].is_string();
        assert_eq!(lines.iter().filter(named).count(), 1, "{lines:?}");
        bed.counts(&format!(
            "semel_turned_away_total{{reason=\"{reason}\"}} 1\n"
        ))
        .await;
    }
}
