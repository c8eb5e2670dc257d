use super::*;

#[tokio::test]
async fn duplicate_pushes_once_more_after_success() {
    let (test, handler) = TestTopic::pushing(&["duplicate=1@billing"], json!({})).await;
    test.publish(&["a"]).await;
    let seen = handler.wait_for(2).await;
    test.idle(false).await;
    assert_eq!(handler.seen().len(), 2);
    assert_eq!(seen[0].body, seen[1].body);
    let history = test.history().await;
    assert!(
        history
            .iter()
            .all(|it| it["status"] == 200 && it["success"] == true)
    );
    assert_eq!(history[0]["faults"], json!(["duplicate"]));
}

#[tokio::test]
async fn duplicate_at_once_pushes_twice_at_the_same_time() {
    let (test, handler) = TestTopic::pushing(&["duplicate-at-once=1@orders"], json!({})).await;
    handler.hold();
    test.publish(&["a"]).await;
    handler.wait_for(2).await;
    assert_eq!(test.results().await, ["running", "running"]);
    handler.let_go();
    test.idle(false).await;
    assert_eq!(handler.seen().len(), 2);
}

/// Publishes; after a dispatch with this result, without faults any more, all is well.
async fn recovers(fault: &str, result: &str, pushes: usize) {
    let (test, handler) = TestTopic::pushing(&[fault], json!({})).await;
    test.publish(&["a"]).await;
    test.until_any(result).await;
    test.set_faults(&[]).await;
    test.advance(60).await;
    handler.wait_for(pushes).await;
    test.idle(false).await;
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
    let (test, handler) = TestTopic::pushing(&["overlap=1:2s"], json!({})).await;
    handler.hold();
    test.publish(&["a"]).await;
    handler.wait_for(1).await;
    test.set_faults(&[]).await;
    test.advance(2).await;
    test.until_any("timed-out").await;
    test.advance(1).await;
    handler.wait_for(2).await;
    handler.let_go();
    test.idle(false).await;
}

#[tokio::test]
async fn pulled_messages_are_doubled_delayed_and_unheard() {
    let test = TestTopic::faulty(&["duplicate-at-once=1"], json!({})).await;
    test.publish(&["a"]).await;
    let both = test.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&both), ["a", "a"]);
    assert_ne!(both[0]["ackId"], both[1]["ackId"]);
    test.ack(&both).await.unwrap();
    test.idle(true).await;

    test.set_faults(&["delay=1:5s"]).await;
    test.publish(&["b"]).await;
    assert!(test.pull(SUBSCRIPTION).await.is_empty());
    test.advance(5).await;
    let late = test.wait_pull(SUBSCRIPTION).await;
    test.ack(&late).await.unwrap();
    test.idle(true).await;

    test.set_faults(&["lose-answer=1"]).await;
    test.publish(&["c"]).await;
    let unheard = test.pull(SUBSCRIPTION).await;
    test.ack(&unheard).await.unwrap();
    let history = test.history().await;
    let last = history.last().unwrap();
    assert_eq!(last["result"], "answer-lost");
    assert_eq!(last["status"], 200);
    test.set_faults(&[]).await;
    test.advance(10).await;
    let again = test.wait_pull(SUBSCRIPTION).await;
    assert_eq!(ids(&again), ids(&unheard));
}

#[tokio::test]
async fn a_pulled_message_is_overtaken_and_another_one_overlaps() {
    let test = TestTopic::faulty(&["reorder=1"], json!({})).await;
    test.publish(&["a", "b", "c", "d"]).await;
    let received = test.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&received), ["b", "a", "d", "c"]);
    test.ack(&received).await.unwrap();
    test.set_faults(&["overlap=1:3s"]).await;
    test.publish(&["e"]).await;
    let first = test.pull(SUBSCRIPTION).await;
    test.modify(&first, 600).await.unwrap();
    test.advance(3).await;
    let second = test.wait_pull(SUBSCRIPTION).await;
    assert_eq!(ids(&second), ids(&first));
    test.ack(&first).await.unwrap();
    test.idle(true).await;
}
