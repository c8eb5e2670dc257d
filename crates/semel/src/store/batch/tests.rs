use super::*;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::sync::mpsc;

type Groups = mpsc::UnboundedReceiver<Vec<Pending<u32, u32>>>;

/// A batcher whose groups the test writes by hand: a lane is busy until its group is answered.
fn by_hand(lanes: usize) -> (Arc<Batcher<u32, u32>>, Groups) {
    let (batcher, groups) = by_hand_eager(lanes);
    (Arc::new(batcher), groups)
}

fn by_hand_eager(lanes: usize) -> (Batcher<u32, u32>, Groups) {
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
    (Batcher::start(limits, |item| item % 100, write), groups)
}

fn submit(batcher: &Arc<Batcher<u32, u32>>, item: u32) -> tokio::task::JoinHandle<u32> {
    let batcher = Arc::clone(batcher);
    tokio::spawn(async move { batcher.submit(item).await.unwrap() })
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

#[tokio::test(start_paused = true)]
async fn sparing_batcher_opens_a_lane_for_half_a_group_or_for_a_slow_one() {
    let (batcher, mut groups) = by_hand_eager(2);
    let batcher = Arc::new(batcher.sparing());
    submit(&batcher, 1);
    let one = groups.recv().await.unwrap();
    submit(&batcher, 2);
    settle().await;
    assert!(
        groups.try_recv().is_err(),
        "one is left to the lane at work"
    );
    submit(&batcher, 3);
    let two = groups.recv().await.unwrap();
    assert_eq!(items(&two), [2, 3], "half a group opens a lane");
    answer_all(two);
    settle().await;

    submit(&batcher, 4);
    settle().await;
    assert!(groups.try_recv().is_err(), "the second lane has closed");
    tokio::time::advance(LANE_PATIENCE * 2).await;
    submit(&batcher, 5);
    assert_eq!(items(&groups.recv().await.unwrap()), [4, 5]);
    answer_all(one);
}

#[tokio::test]
async fn lone_caller_has_the_lane_to_itself_and_hands_it_on() {
    let (batcher, mut groups) = by_hand(1);
    let lane = batcher.alone().await.expect("nobody is there");
    assert!(batcher.alone().await.is_none(), "the lane is taken");
    let waiting = submit(&batcher, 2);
    settle().await;
    assert!(groups.try_recv().is_err(), "the lane is taken");
    drop(lane);
    let group = tokio::time::timeout(Duration::from_secs(5), groups.recv()).await;
    let group = group.expect("the lane is handed on").unwrap();
    assert!(batcher.alone().await.is_none(), "the lane is taken");
    answer_all(group);
    assert_eq!(waiting.await.unwrap(), 1002);
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
async fn every_item_of_a_storm_is_answered_once_and_lanes_are_never_exceeded() {
    for sparing in [false, true] {
        let limits = Limits {
            lanes: 2,
            items_max: 16,
        };
        let at_work = Arc::new(AtomicUsize::new(0));
        let write = move |group: Vec<Pending<u32, u32>>| {
            let at_work = Arc::clone(&at_work);
            async move {
                let lanes = at_work.fetch_add(1, Ordering::SeqCst) + 1;
                assert!(lanes <= 2, "{lanes} lanes at work");
                yield_now().await;
                at_work.fetch_sub(1, Ordering::SeqCst);
                answer_all(group);
            }
        };
        let batcher = Batcher::start(limits, |item| item % 100, write);
        let batcher = if sparing { batcher.sparing() } else { batcher };
        let batcher = Arc::new(batcher);
        let storm: Vec<_> = (0..5000).map(|item| submit(&batcher, item)).collect();
        for (item, answer) in (0..).zip(storm) {
            assert_eq!(answer.await.unwrap(), item + 1000);
        }
    }
}

#[test]
fn a_runtime_that_ends_lets_go_of_what_waits() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.build().unwrap();
    let (batcher, mut groups) = by_hand(1);
    let _never_answered = runtime.block_on(async {
        submit(&batcher, 1);
        let group = groups.recv().await.unwrap();
        submit(&batcher, 2);
        settle().await;
        group
    });
    let waiting = || batcher.shared.queue().waiting.len();
    assert_eq!(waiting(), 1);
    drop(runtime);
    assert_eq!(waiting(), 0);
}
