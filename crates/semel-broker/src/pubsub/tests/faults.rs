use super::*;
use crate::handler::Handler;
use crate::history::DispatchResult as EndedDelivery;

async fn pushing(faults: &[&str]) -> (Bed, Handler) {
    let handler = Handler::start().await;
    let bed = Bed::with(faults, |it| {
        it.push_config = Some(wire::PushConfig {
            push_endpoint: handler.url.clone(),
            ..Default::default()
        });
    })
    .await;
    (bed, handler)
}

fn ends(bed: &Bed) -> Vec<EndedDelivery> {
    bed.history().into_iter().map(|it| it.result).collect()
}

fn ok() -> EndedDelivery {
    EndedDelivery::Answered {
        status: 200,
        success: true,
    }
}

#[tokio::test]
async fn duplicate_pushes_once_more_after_success() {
    let (bed, handler) = pushing(&["duplicate=1@billing"]).await;
    bed.publish(&["a"]).await;
    let seen = handler.wait_for(2).await;
    bed.idle(false).await;
    assert_eq!(handler.seen().len(), 2);
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!(ends(&bed), [ok(), ok()]);
    assert_eq!(bed.history()[0].faults, ["duplicate"]);
}

#[tokio::test]
async fn duplicate_at_once_pushes_twice_at_the_same_time() {
    let (bed, handler) = pushing(&["duplicate-at-once=1@orders"]).await;
    handler.hold();
    bed.publish(&["a"]).await;
    handler.wait_for(2).await;
    assert_eq!(ends(&bed), [EndedDelivery::Running, EndedDelivery::Running]);
    handler.let_go();
    bed.idle(false).await;
    assert_eq!(handler.seen().len(), 2);
}

#[tokio::test]
async fn a_lost_answer_is_followed_by_another_push() {
    let (bed, handler) = pushing(&["lose-answer=1"]).await;
    bed.publish(&["a"]).await;
    handler.wait_for(1).await;
    let lost = |all: &[Dispatch]| {
        all.iter()
            .any(|it| it.result == EndedDelivery::AnswerLost { status: 200 })
    };
    bed.wait_history(lost).await;
    bed.context.faults.replace(Vec::new());
    bed.advance(60);
    handler.wait_for(2).await;
    bed.idle(false).await;
}

#[tokio::test]
async fn a_cut_connection_is_followed_by_another_push() {
    let (bed, handler) = pushing(&["cut=1:3"]).await;
    bed.publish(&["a"]).await;
    bed.wait_history(|all| all.iter().any(|it| it.result == EndedDelivery::Cut))
        .await;
    bed.context.faults.replace(Vec::new());
    bed.advance(60);
    handler.wait_for(1).await;
    bed.idle(false).await;
}

#[tokio::test]
async fn an_overlapping_push_runs_while_the_first_still_does() {
    let (bed, handler) = pushing(&["overlap=1:2s"]).await;
    handler.hold();
    bed.publish(&["a"]).await;
    handler.wait_for(1).await;
    bed.context.faults.replace(Vec::new());
    bed.advance(2);
    bed.wait_history(|all| all.iter().any(|it| it.result == EndedDelivery::TimedOut))
        .await;
    bed.advance(1);
    handler.wait_for(2).await;
    handler.let_go();
    bed.idle(false).await;
}

#[tokio::test]
async fn pulled_messages_are_doubled_delayed_and_unheard() {
    let bed = Bed::with(&["duplicate-at-once=1"], |_| {}).await;
    bed.publish(&["a"]).await;
    let both = bed.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&both), ["a", "a"]);
    assert_ne!(both[0].ack_id, both[1].ack_id);
    bed.ack(&both).await.unwrap();
    bed.idle(true).await;

    bed.context
        .faults
        .replace(vec!["delay=1:5s".parse().unwrap()]);
    bed.publish(&["b"]).await;
    assert!(bed.pull(SUBSCRIPTION).await.is_empty());
    bed.advance(5);
    let late = bed.wait_pull(SUBSCRIPTION).await;
    bed.ack(&late).await.unwrap();
    bed.idle(true).await;

    bed.context
        .faults
        .replace(vec!["lose-answer=1".parse().unwrap()]);
    bed.publish(&["c"]).await;
    let unheard = bed.pull(SUBSCRIPTION).await;
    bed.ack(&unheard).await.unwrap();
    assert_eq!(
        ends(&bed).last(),
        Some(&EndedDelivery::AnswerLost { status: 200 })
    );
    bed.context.faults.replace(Vec::new());
    bed.advance(10);
    let again = bed.wait_pull(SUBSCRIPTION).await;
    assert_eq!(ids(&again), ids(&unheard));
}

#[tokio::test]
async fn a_pulled_message_is_overtaken_and_another_one_overlaps() {
    let bed = Bed::with(&["reorder=1"], |_| {}).await;
    bed.publish(&["a", "b", "c", "d"]).await;
    let received = bed.pull(SUBSCRIPTION).await;
    assert_eq!(texts(&received), ["b", "a", "d", "c"]);
    bed.ack(&received).await.unwrap();
    bed.context
        .faults
        .replace(vec!["overlap=1:3s".parse().unwrap()]);
    bed.publish(&["e"]).await;
    let first = bed.pull(SUBSCRIPTION).await;
    bed.modify(&first, 600).await.unwrap();
    bed.advance(3);
    let second = bed.wait_pull(SUBSCRIPTION).await;
    assert_eq!(ids(&second), ids(&first));
    bed.ack(&first).await.unwrap();
    bed.idle(true).await;
}
