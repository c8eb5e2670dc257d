//! What became of a piece of work, by whatever name somebody has for it.

use crate::support::prelude::*;

/// A gate whose tasks are named by their order.
async fn orders() -> Bed {
    Bed::route(|route| keyed_by(route, "/order_id")).await
}

/// What is found, and that it is one piece of work.
async fn found(bed: &Bed, query: &str) -> Value {
    let said = bed.look(&format!("/find?{query}")).await;
    assert_eq!(said.status, 200, "{said:?}");
    let works = said.json["works"].as_array().unwrap();
    assert_eq!(works.len(), 1, "{query}: {said:?}");
    works[0].clone()
}

async fn finds_nothing(bed: &Bed, query: &str) {
    let said = bed.look(&format!("/find?{query}")).await;
    said.is(200, &json!({"works": [], "deliveries": [], "letters": []}));
}

#[tokio::test]
async fn work_is_found_by_parts_names_traces_and_its_key() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let bed = orders().await;
    let task = Sender::Task.sends("t-17", r#"{"order_id": "A-1"}"#);
    let task = task.header("traceparent", &format!("00-{TRACE}-b7ad6b7169203331-01"));
    let reply = bed.ask(task.clone()).await;
    bed.ask(task).await.is_replay(200);
    let key = bed.key().await.to_string();
    assert_eq!(reply.header("semel-key"), Some(&*key));
    let task_name = "projects/shop/locations/eu/queues/orders/tasks/t-17";
    for query in [
        "route=work&part=order_id=A-1",
        "route=work&part=%2Forder_id=A-1",
        &format!("q={key}"),
        "q=A-1",
        "q=order_id=A-1",
        "q=t-17",
        &format!("q={task_name}"),
        &format!("q={TRACE}"),
    ] {
        let work = found(&bed, query).await;
        assert_eq!(work["key"], *key, "{query}");
        assert_eq!(work["record"]["state"], "succeeded");
        assert_eq!(work["record"]["label"]["parts"]["order_id"], "A-1");
        let outcomes: Vec<_> = work["deliveries"].as_array().unwrap().iter().collect();
        let outcomes: Vec<_> = outcomes.iter().map(|it| &it["outcome"]).collect();
        assert_eq!(outcomes, ["ran", "replayed"]);
    }
    finds_nothing(&bed, "route=work&part=order_id=A-2").await;
    finds_nothing(&bed, "q=nonsense").await;
}

#[tokio::test]
async fn a_number_and_a_text_are_both_tried() {
    for payload in [r#"{"order_id": 7}"#, r#"{"order_id": "7"}"#] {
        let bed = orders().await;
        bed.ask(Sender::Task.sends("t1", payload)).await.is(200);
        let work = found(&bed, "route=work&part=order_id=7").await;
        assert_eq!(work["key"], bed.key().await.to_string());
    }
}

#[tokio::test]
async fn a_value_is_one_value_whatever_stands_in_it() {
    let bed = orders().await;
    bed.ask(Sender::Task.sends("t1", r#"{"order_id": 7}"#))
        .await
        .is(200);
    // As text these are another order's name; as JSON they are more than one value.
    for value in ["7,%22z%22:1", "7,%22value%22:7", "7%7D", "7%207"] {
        finds_nothing(&bed, &format!("route=work&part=order_id={value}")).await;
    }
    let text = r#"7,\"z\":1"#;
    let task = Sender::Task.sends("t2", &format!(r#"{{"order_id": "{text}"}}"#));
    bed.ask(task).await.is(200);
    found(&bed, "route=work&part=order_id=7,%22z%22:1").await;
}

#[tokio::test]
async fn a_clients_key_is_found_with_its_caller() {
    let bed = Bed::new().await;
    bed.api("key-1").await.is(200);
    let work = found(&bed, "idempotency_key=key-1&caller=alice").await;
    assert_eq!(work["key"], bed.key().await.to_string());
    let quoted = found(&bed, "idempotency_key=%22key-1%22&caller=alice").await;
    assert_eq!(quoted["key"], work["key"]);
    finds_nothing(&bed, "idempotency_key=key-1&caller=bob").await;
    finds_nothing(&bed, "idempotency_key=key-1&caller=alice&method=PUT").await;
    let said = bed.look("/find?idempotency_key=key-1").await;
    said.refused(400, "whose request?");
}

#[tokio::test]
async fn a_letter_is_found_by_the_names_of_its_task_and_trace() {
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    let bed = Bed::route(|route| route.final_statuses = vec![422..=422]).await;
    bed.handler.says(422);
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    let task = Sender::Task.sends("t-bad", "{}");
    let task = task.header("traceparent", &parent);
    bed.ask(task).await.is(200);
    let letter = bed.letter().await;
    // Another gate on the same store remembers nothing of it.
    let other = Bed::on(Arc::clone(&bed.store), Handler::start().await, |_| {}).await;
    for text in ["t-bad", TRACE, &TRACE.to_uppercase(), &parent] {
        let work = found(&other, &format!("q={text}")).await;
        assert_eq!(work["letters"][0]["id"], *letter, "{text}");
        assert_eq!(work["record"]["state"], "failed");
        assert_eq!(work["deliveries"], json!([]));
    }
}

#[tokio::test]
async fn what_is_forgotten_is_not_remembered_either() {
    let bed = orders().await;
    bed.ask(Sender::Task.sends("t1", r#"{"order_id": "A-1"}"#))
        .await
        .is(200);
    let key = bed.key().await;
    bed.forget(key).await.led("succeeded", "absent");
    finds_nothing(&bed, &format!("q={key}")).await;
    finds_nothing(&bed, "q=t1").await;
    let told = bed.admin("/deliveries").await;
    assert!(!told.text().contains("A-1"), "{}", told.text());
}

#[tokio::test]
async fn what_cannot_be_asked_is_told() {
    let bed = orders().await;
    for (query, error) in [
        ("", "nothing is asked for"),
        ("q=a&idempotency_key=b", "several things"),
        ("part=order_id=A-1", "which route"),
        ("route=nowhere&part=a=1", "there is no route"),
        ("route=work&part=other=1", "other parts"),
        ("route=work&part=nonsense", "NAME=VALUE"),
        ("color=red", "not something to find by"),
    ] {
        bed.look(&format!("/find?{query}"))
            .await
            .refused(400, error);
    }
}

#[tokio::test]
async fn with_an_index_another_gate_finds_work_by_its_names() {
    let bed = Bed::with(|settings| settings.index = true).await;
    let task = Sender::Task.sends("t-42", "{}");
    let task = task.header(
        "traceparent",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    );
    bed.ask(task).await.is(200);
    let key = bed.key().await;
    let other = Bed::on(Arc::clone(&bed.store), Handler::start().await, |_| {}).await;
    let indexed = async || {
        let said = other.look("/find?q=t-42").await;
        said.json["works"][0]["key"] == key.to_string()
    };
    until("the name is in the index", indexed).await;
    let trace = found(&other, "q=0af7651916cd43dd8448eb211c80319c").await;
    assert_eq!(trace["record"]["state"], "succeeded");
    bed.forget(key).await.led("succeeded", "absent");
    finds_nothing(&other, "q=t-42").await;
}

#[tokio::test]
async fn without_an_index_only_the_gate_that_took_it_knows_its_name() {
    let bed = Bed::new().await;
    bed.task("t-43").await.is(200);
    let other = Bed::on(Arc::clone(&bed.store), Handler::start().await, |_| {}).await;
    found(&bed, "q=t-43").await;
    finds_nothing(&other, "q=t-43").await;
}
