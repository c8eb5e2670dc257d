use super::*;
use std::time::Duration;
use tokio::sync::mpsc;

type Groups = mpsc::UnboundedReceiver<Vec<Pending<u32, u32>>>;

/// A batcher whose groups the test writes by hand: a lane is busy until its group is answered.
fn by_hand(lanes: usize) -> (Arc<Batcher<u32, u32>>, Groups) {
    let (sender, groups) = mpsc::unbounded_channel();
    let write = move |group: Vec<Pending<u32, u32>>| {
        let (mut shown, mut answers) = (Vec::new(), Vec::new());
        for pending in group {
            let (copy, answered) = Pending::new(pending.item);
            shown.push(copy);
            answers.push((pending, answered));
        }
        sender.send(shown).unwrap();
        async move {
            for (pending, answered) in answers {
                pending.answer(answer(answered).await);
            }
        }
    };
    let limits = Limits {
        lanes,
        items_max: 3,
    };
    (
        Arc::new(Batcher::start(limits, |item| item % 100, write)),
        groups,
    )
}

fn submit(batcher: &Arc<Batcher<u32, u32>>, item: u32) -> tokio::task::JoinHandle<u32> {
    let batcher = Arc::clone(batcher);
    tokio::spawn(async move { batcher.submit_here(item).await.unwrap() })
}

fn items(group: &[Pending<u32, u32>]) -> Vec<u32> {
    group.iter().map(|pending| pending.item).collect()
}

fn answer_all(group: Vec<Pending<u32, u32>>) {
    for pending in group {
        let answer = pending.item + 1000;
        pending.answer(Ok(answer));
    }
}

/// Lets every task run until it waits.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

#[tokio::test]
async fn what_arrives_during_a_write_shares_the_next_group() {
    let (batcher, mut groups) = by_hand(1);
    let first = submit(&batcher, 1);
    let group = groups.recv().await.unwrap();
    assert_eq!(items(&group), [1]);
    let others: Vec<_> = [2, 3, 4, 5].map(|item| submit(&batcher, item)).into();
    settle().await;
    assert!(groups.try_recv().is_err(), "the only lane is busy");

    answer_all(group);
    let group = groups.recv().await.unwrap();
    assert_eq!(items(&group), [2, 3, 4], "at most three");
    answer_all(group);
    answer_all(groups.recv().await.unwrap());
    assert_eq!(first.await.unwrap(), 1001);
    for (other, expected) in others.into_iter().zip(1002..) {
        assert_eq!(other.await.unwrap(), expected);
    }
}

#[tokio::test]
async fn one_key_is_never_twice_in_a_group_and_keeps_its_order() {
    let (batcher, mut groups) = by_hand(1);
    submit(&batcher, 9);
    let group = groups.recv().await.unwrap();
    for item in [107, 207, 8, 307] {
        submit(&batcher, item);
        settle().await;
    }
    answer_all(group);
    for expected in [vec![107, 8], vec![207], vec![307]] {
        let group = groups.recv().await.unwrap();
        assert_eq!(items(&group), expected);
        answer_all(group);
    }
}

#[tokio::test]
async fn lanes_write_at_the_same_time() {
    let (batcher, mut groups) = by_hand(2);
    submit(&batcher, 1);
    let one = groups.recv().await.unwrap();
    submit(&batcher, 2);
    let two = groups.recv().await.unwrap();
    submit(&batcher, 3);
    settle().await;
    assert!(groups.try_recv().is_err(), "both lanes are busy");
    answer_all(two);
    assert_eq!(items(&groups.recv().await.unwrap()), [3]);
    answer_all(one);
}

#[tokio::test]
async fn submitter_that_hangs_up_hands_its_lane_on() {
    let (batcher, mut groups) = by_hand(1);
    let gone = submit(&batcher, 1);
    let group = groups.recv().await.unwrap();
    let waiting = submit(&batcher, 2);
    settle().await;
    gone.abort();
    let next = tokio::time::timeout(Duration::from_secs(5), groups.recv()).await;
    answer_all(next.expect("the lane is free").unwrap());
    assert_eq!(waiting.await.unwrap(), 1002);
    drop(group);
}

#[tokio::test]
async fn writer_that_panics_answers_unavailable_and_frees_its_lane() {
    let write = |group: Vec<Pending<u32, u32>>| async move {
        assert!(group.iter().all(|pending| pending.item != 13), "unlucky");
        answer_all(group);
    };
    let limits = Limits {
        lanes: 1,
        items_max: 8,
    };
    let batcher = Batcher::start(limits, |item| *item, write);
    let error = batcher.submit(13).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    assert_eq!(batcher.submit(1).await, Ok(1001));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_item_of_a_storm_is_answered_once() {
    let limits = Limits {
        lanes: 2,
        items_max: 16,
    };
    let write = |group: Vec<Pending<u32, u32>>| async move {
        yield_now().await;
        answer_all(group);
    };
    let batcher = Arc::new(Batcher::start(limits, |item| item % 100, write));
    let storm: Vec<_> = (0..2000).map(|item| submit(&batcher, item)).collect();
    for (item, answer) in (0..).zip(storm) {
        assert_eq!(answer.await.unwrap(), item + 1000);
    }
}
