use super::*;

#[tokio::test]
async fn duplicate_pushes_once_more_after_success() {
    let (setup, handler) = Setup::pushing(&["duplicate=1@billing"], json!({})).await;
    setup.publish(&["a"]).await;
    let seen = handler.wait_for(2).await;
    setup.idle(false).await;
    assert_eq!(handler.seen().len(), 2);
    assert_eq!(seen[0].body, seen[1].body);
    let history = setup.history().await;
    assert!(
        history
            .iter()
            .all(|it| it["status"] == 200 && it["success"] == true)
    );
    assert_eq!(history[0]["faults"], json!(["duplicate"]));
}

#[tokio::test]
async fn duplicate_at_once_pushes_twice_at_the_same_time() {
    let (setup, handler) = Setup::pushing(&["duplicate-at-once=1@orders"], json!({})).await;
    handler.hold();
    setup.publish(&["a"]).await;
    handler.wait_for(2).await;
    assert_eq!(setup.results().await, ["running", "running"]);
    handler.let_go();
    setup.idle(false).await;
    assert_eq!(handler.seen().len(), 2);
}

/// Publishes; after a dispatch with this result, without faults any more, all is well.
async fn recovers(fault: &str, result: &str, pushes: usize) {
    let (setup, handler) = Setup::pushing(&[fault], json!({})).await;
    setup.publish(&["a"]).await;
    setup
        .until_results(|all| all.iter().any(|it| it == result))
        .await;
    setup.set_faults(&[]).await;
    setup.advance(60).await;
    handler.wait_for(pushes).await;
    setup.idle(false).await;
}

#[tokio::test]
async fn a_lost_answer_is_followed_by_another_push() {
    recovers("lose-answer=1", "answer-lost", 2).await;
}

#[tokio::test]
async fn a_cut_connection_is_followed_by_another_push() {
    recovers("cut=1:3", "cut", 1).await;
}

#[tokio::test]
async fn an_overlapping_push_runs_while_the_first_still_does() {
    let (setup, handler) = Setup::pushing(&["overlap=1:2s"], json!({})).await;
    handler.hold();
    setup.publish(&["a"]).await;
    handler.wait_for(1).await;
    setup.set_faults(&[]).await;
    setup.advance(2).await;
    setup
        .until_results(|all| all.iter().any(|it| it == "timed-out"))
        .await;
    setup.advance(1).await;
    handler.wait_for(2).await;
    handler.let_go();
    setup.idle(false).await;
}

#[tokio::test]
async fn pulled_messages_are_doubled_delayed_and_unheard() {
    let setup = Setup::faulty(&["duplicate-at-once=1"], json!({})).await;
    setup.publish(&["a"]).await;
    let both = setup.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&both), ["a", "a"]);
    assert_ne!(both[0]["ackId"], both[1]["ackId"]);
    setup.ack(&both).await.unwrap();
    setup.idle(true).await;

    setup.set_faults(&["delay=1:5s"]).await;
    setup.publish(&["b"]).await;
    assert!(setup.pull(SUBSCRIPTION).await.is_empty());
    setup.advance(5).await;
    let late = setup.wait_pull(SUBSCRIPTION).await;
    setup.ack(&late).await.unwrap();
    setup.idle(true).await;

    setup.set_faults(&["lose-answer=1"]).await;
    setup.publish(&["c"]).await;
    let unheard = setup.pull(SUBSCRIPTION).await;
    setup.ack(&unheard).await.unwrap();
    let history = setup.history().await;
    let last = history.last().unwrap();
    assert_eq!(
        (&last["result"], &last["status"]),
        (&json!("answer-lost"), &json!(200))
    );
    setup.set_faults(&[]).await;
    setup.advance(10).await;
    let again = setup.wait_pull(SUBSCRIPTION).await;
    assert_eq!(ids(&again), ids(&unheard));
}

#[tokio::test]
async fn a_pulled_message_is_overtaken_and_another_one_overlaps() {
    let setup = Setup::faulty(&["reorder=1"], json!({})).await;
    setup.publish(&["a", "b", "c", "d"]).await;
    let received = setup.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&received), ["b", "a", "d", "c"]);
    setup.ack(&received).await.unwrap();
    setup.set_faults(&["overlap=1:3s"]).await;
    setup.publish(&["e"]).await;
    let first = setup.pull(SUBSCRIPTION).await;
    setup.modify(&first, 600).await.unwrap();
    setup.advance(3).await;
    let second = setup.wait_pull(SUBSCRIPTION).await;
    assert_eq!(ids(&second), ids(&first));
    setup.ack(&first).await.unwrap();
    setup.idle(true).await;
}
