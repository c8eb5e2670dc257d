//! What is shown and changed: the history, faults, the clock.

use super::*;

#[tokio::test]
async fn the_history_is_shown_in_parts() {
    let test = TestAdmin::new(&[]);
    test.dispatches(&["a", "b", "a"]);
    let show = async |query: &str| {
        let path = format!("/_semel/history{query}");
        test.json(Method::GET, &path, "").await
    };
    let all = show("").await;
    assert_eq!(ids(&all), ["a", "b", "a"]);
    assert_eq!(all["let_go"], 0);
    assert_eq!(all["dispatches"][0]["result"], "timed-out");
    let first = show("?limit=2").await;
    assert_eq!((ids(&first), &first["next"]), (vec!["a", "b"], &json!(1)));
    let rest = show("?after=1&limit=2").await;
    assert_eq!((ids(&rest), &rest["next"]), (vec!["a"], &json!(2)));
    let none = show("?after=2").await;
    assert!(ids(&none).is_empty() && none["next"] == json!(2));
    assert_eq!(ids(&show("?resource=q&id=b").await), ["b"]);
    assert_eq!(ids(&show(&format!("?resource={QUEUE}&id=")).await).len(), 3);
    for query in ["?limit=0", "?limit=x", "?ressource=q", "?limit=10001"] {
        let path = format!("/_semel/history{query}");
        assert_eq!(test.refused(Method::GET, &path, "").await.0, 400);
    }
}

#[tokio::test]
async fn the_history_can_be_taken_away() {
    let test = TestAdmin::new(&[]);
    let many: Vec<_> = (0..2500).map(|it| it.to_string()).collect();
    test.dispatches(&many.iter().map(String::as_str).collect::<Vec<_>>());
    let export = async |query: &str| {
        let path = format!("/_semel/history.jsonl{query}");
        let (status, text) = test.ask(Method::GET, &path, "").await;
        assert_eq!(status, 200);
        let lines = text.lines().map(|it| serde_json::from_str(it).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let lines = export("").await;
    assert_eq!(lines.len(), 2500);
    assert!(
        (0..)
            .zip(&lines)
            .all(|(place, it)| it["number"] == json!(place))
    );
    assert_eq!(export("?limit=1001").await.len(), 1001);
    assert_eq!(export("?id=7").await.len(), 1);
    let (status, _) = test.ask(Method::DELETE, "/_semel/history", "").await;
    assert_eq!(status, 204);
    assert!(export("").await.is_empty());
    let left = test.json(Method::GET, "/_semel/history", "").await;
    assert_eq!(left["let_go"], 2500);
}

#[tokio::test]
async fn faults_are_replaced_added_and_taken_away() {
    let test = TestAdmin::new(&["reorder=1"]);
    let path = "/_semel/faults";
    let put = r#"{"faults":["duplicate=0.05"]}"#;
    let shown = test.json(Method::PUT, path, put).await;
    assert_eq!(shown, json!({ "seed": 1, "faults": ["duplicate=0.05"] }));
    let add = r#"{"faults":["cut=1:3@q","delay=1:2s"]}"#;
    test.json(Method::POST, path, add).await;
    let shown = test.json(Method::GET, path, "").await;
    let all = json!(["duplicate=0.05", "cut=1:3@q", "delay=1:2000ms"]);
    assert_eq!(shown["faults"], all);
    assert_eq!(test.context.faults.plan(&[QUEUE], 1, 1).cut, Some(3));
    // All or nothing.
    let bad = r#"{"faults":["reorder=1","explode=1","cut=x"]}"#;
    let (status, problem) = test.refused(Method::POST, path, bad).await;
    assert_eq!(status, 400);
    let error = problem["error"].as_str().unwrap();
    assert!(error.contains("explode") && error.contains("cut=x"));
    let typo = r#"{"faults":[],"fault":1}"#;
    assert_eq!(test.refused(Method::PUT, path, typo).await.0, 400);
    assert_eq!(test.refused(Method::PUT, path, "").await.0, 400);
    let shown = test.json(Method::GET, path, "").await;
    assert_eq!(shown["faults"], all);
    let shown = test.json(Method::DELETE, path, "").await;
    assert_eq!(shown["faults"], json!([]));
}

#[tokio::test]
async fn the_clock_is_put_forward() {
    let test = TestAdmin::new(&[]);
    let path = "/_semel/clock/advance";
    let day = 86_400_000;
    let shown = test.json(Method::POST, path, r#"{"by":"7d"}"#).await;
    assert_eq!(shown["ahead_ms"], 7 * day);
    test.json(Method::POST, path, r#"{"seconds":3}"#).await;
    let shown = test.json(Method::GET, "/_semel/clock", "").await;
    assert_eq!(shown["ahead_ms"], 7 * day + 3000);
    let now: jiff::Timestamp = shown["now"].as_str().unwrap().parse().unwrap();
    assert_eq!(now.as_microsecond(), shown["now_us"].as_i64().unwrap());
    for body in [
        "",
        "{}",
        r#"{"by":"1h","seconds":1}"#,
        r#"{"by":"soon"}"#,
        r#"{"seconds":-1}"#,
        r#"{"seconds":999999999999}"#,
        r#"{"by":"1h","back":true}"#,
    ] {
        assert_eq!(test.refused(Method::POST, path, body).await.0, 400);
    }
    let shown = test.json(Method::GET, "/_semel/clock", "").await;
    assert_eq!(shown["ahead_ms"], 7 * day + 3000);
}
