//! Runs in doubt: how many there may be, how old work may get, and what is found out before the next run.

use super::*;
use semel::protocol::PARK_AFTER_ATTEMPTS;
use semel::slots::Slots;
use semel::work::{DOUBT_AGE_MIN, FailureKind};

/// Work whose runs act for 5 s, and 2 s after they were given up.
fn probed() -> Work {
    work()
        .in_doubt(InDoubt::Probe)
        .timeout(SECOND * 5)
        .margin(SECOND * 2)
        .duplicates(Duplicates::Reject)
}

/// From its claim on: the lease (10 s) in which it may begin, the timeout and the margin.
const ACTS: Duration = Duration::from_secs(17);

async fn doubtful(_: Run) -> Result<Outcome, Failure> {
    Err(Failure::in_doubt("the connection broke"))
}

/// What a run does that finds out first.
fn finds(found: Result<Option<&'static str>, Failure>) -> impl FnOnce(Run) -> Said {
    move |run| {
        Box::pin(async move {
            assert!(run.in_doubt(), "the run before was in doubt");
            match found? {
                Some(receipt) => Ok(Outcome::ok(receipt)),
                None => Ok(Outcome::ok("run again")),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn runs_in_doubt_are_limited_and_answered_failures_are_not() {
    let semel = one_process();
    let work = || work().max_in_doubt(2).doubt_age(SECOND * 60);
    let refused = |_| async { Err(Failure::retryable("the bank is closed")) };
    for _ in 0..5 {
        let ended = semel.run(work(), refused).await.unwrap();
        assert_failed(&ended, State::Waiting);
    }
    // An outage puts many runs in doubt.
    for _ in 0..5 {
        let ended = semel.run(work(), doubtful).await.unwrap();
        assert_failed(&ended, State::Waiting);
    }
    sleep(SECOND * 60).await;
    let ended = semel.run(work(), refused).await.unwrap();
    assert_failed(&ended, State::Waiting);
    let ended = semel.run(work(), doubtful).await.unwrap();
    assert_failed(&ended, State::Parked);
    assert_eq!(duplicate(&semel, work()).await, Ended::Parked);
}

#[tokio::test(start_paused = true)]
async fn work_in_doubt_is_given_ten_minutes_by_default() {
    let semel = one_process();
    let work = || work().max_in_doubt(1);
    for _ in 0..2 {
        let ended = semel.run(work(), doubtful).await.unwrap();
        assert_failed(&ended, State::Waiting);
        sleep(DOUBT_AGE_MIN / 2).await;
    }
    let ended = semel.run(work(), doubtful).await.unwrap();
    assert_failed(&ended, State::Parked);
}

/// Its caller knew, at most, what had happened when it began.
#[tokio::test(start_paused = true)]
async fn a_run_parks_only_if_the_first_doubt_was_old_when_it_began() {
    let semel = one_process();
    let work = || {
        let work = work().max_in_doubt(1).doubt_age(SECOND * 60);
        work.timeout(SECOND * 100)
    };
    let ended = semel.run(work(), doubtful).await.unwrap();
    assert_failed(&ended, State::Waiting);
    sleep(SECOND * 20).await;
    let long = |_| async {
        sleep(SECOND * 50).await;
        Err(Failure::in_doubt("the connection broke"))
    };
    let ended = semel.run(work(), long).await.unwrap();
    assert_failed(&ended, State::Waiting);
    let ended = semel.run(work(), doubtful).await.unwrap();
    assert_failed(&ended, State::Parked);
}

/// The same while it waited for a slot.
#[tokio::test(start_paused = true)]
async fn a_wait_before_the_claim_makes_no_doubt_old() {
    let (_, semel) = one_store();
    let (one, other) = (semel(), semel());
    let slots = Slots::new(1, 1);
    let long = Work::new(key(2), payload())
        .timeout(SECOND * 600)
        .slots(&slots);
    let (held, work) = (one.clone(), || {
        let work = work().max_in_doubt(1).doubt_age(SECOND * 60);
        work.duplicates(Duplicates::Wait(SECOND * 600))
    });
    let held = tokio::spawn(async move { held.run(long, slow(SECOND * 100)).await });
    tokio::task::yield_now().await;
    let waiting = work().slots(&slots);
    let waits = tokio::spawn(async move { one.run(waiting, doubtful).await });
    tokio::task::yield_now().await;
    let first = other.run(work(), doubtful).await.unwrap();
    assert_failed(&first, State::Waiting);
    let ended = waits.await.unwrap().unwrap();
    assert_failed(&ended, State::Waiting);
    assert_ran(&held.await.unwrap().unwrap());
    assert_failed(&other.run(work(), doubtful).await.unwrap(), State::Parked);
}

#[tokio::test(start_paused = true)]
async fn old_work_whose_caller_withdrew_it_is_not_parked() {
    let semel = one_process();
    let work = || work().park_after(Some(SECOND * 60));
    let withdrawn = |_| async {
        Err(Failure {
            kind: FailureKind::Withdrawn,
            ..Failure::not_started("this process is going down")
        })
    };
    for _ in 0..2 {
        let ended = semel.run(work(), withdrawn).await.unwrap();
        assert_failed(&ended, State::Waiting);
        sleep(SECOND * 60).await;
    }
    let unreachable = |_| async { Err(Failure::not_started("connection refused")) };
    let ended = semel.run(work(), unreachable).await.unwrap();
    assert_failed(&ended, State::Parked);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_remembered_for_as_long_as_its_sender_delivers() {
    let (store, semel) = one_store();
    let work = || {
        let work = work().retention(SECOND * 60);
        work.unfinished_retention(SECOND * 600)
    };
    let refused = |_| async { Err(Failure::retryable("the bank is closed")) };
    let ended = semel().run(work(), refused).await.unwrap();
    assert_failed(&ended, State::Waiting);
    let first = store.look(&key(1)).await.unwrap().unwrap();
    sleep(SECOND * 599).await;
    assert_ran(&semel().run(work(), succeed).await.unwrap());
    let last = store.look(&key(1)).await.unwrap().unwrap();
    assert_eq!((last.born, last.attempts), (first.born, 2));
    // The lease of the run that succeeded, and its retention.
    sleep(SECOND * 70).await;
    assert_eq!(store.look(&key(1)).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn old_work_whose_handler_cannot_be_reached_is_parked_whatever_its_runs() {
    let semel = one_process();
    let work = || work().park_after(Some(SECOND * 60));
    let unreachable = |_| async { Err(Failure::not_started("connection refused")) };
    for _ in 0..PARK_AFTER_ATTEMPTS {
        let ended = semel.run(work(), unreachable).await.unwrap();
        assert_failed(&ended, State::Waiting);
    }
    sleep(SECOND * 60).await;
    let ended = semel.run(work(), unreachable).await.unwrap();
    assert_failed(&ended, State::Parked);
    assert_eq!(duplicate(&semel, work()).await, Ended::Parked);
}

#[tokio::test(start_paused = true)]
async fn old_work_is_parked_after_enough_runs() {
    let semel = one_process();
    let work = || work().park_after(Some(SECOND * 60));
    let refused = |_| async { Err(Failure::retryable("the bank is closed")) };
    for _ in 1..PARK_AFTER_ATTEMPTS {
        let ended = semel.run(work(), refused).await.unwrap();
        assert_failed(&ended, State::Waiting);
        sleep(SECOND * 60).await;
    }
    let ended = semel.run(work(), refused).await.unwrap();
    assert_failed(&ended, State::Parked);
}

#[tokio::test(start_paused = true)]
async fn a_run_in_doubt_is_asked_about_once_it_acts_no_more() {
    let (store, semel) = one_store();
    assert_failed(
        &semel().run(probed(), doubtful).await.unwrap(),
        State::Waiting,
    );
    let not_yet = duplicate(&semel(), probed()).await;
    assert_eq!(not_yet, Ended::NotYet { retry_after: ACTS });
    sleep(ACTS).await;
    let found = semel().run(probed(), finds(Ok(Some("receipt 1")))).await;
    assert_eq!(outcome(found.unwrap()).1, Outcome::ok("receipt 1"));
    assert_eq!(store.look(&key(1)).await.unwrap().unwrap().doubts, 1);
}

#[tokio::test(start_paused = true)]
async fn what_never_happened_is_run_under_the_fence_of_who_asked() {
    let semel = one_process();
    assert_failed(
        &semel.run(probed(), doubtful).await.unwrap(),
        State::Waiting,
    );
    sleep(ACTS).await;
    let ran = semel.run(probed(), finds(Ok(None))).await;
    assert_eq!(outcome(ran.unwrap()).1, Outcome::ok("run again"));
}

#[tokio::test(start_paused = true)]
async fn who_could_not_find_out_tries_again_after_a_pause() {
    let semel = one_process();
    let pause = Backoff {
        first: SECOND,
        max: SECOND,
    };
    let work = || probed().backoff(pause).max_in_doubt(2);
    assert_failed(&semel.run(work(), doubtful).await.unwrap(), State::Waiting);
    sleep(ACTS).await;
    for _ in 0..4 {
        let failure = Failure::still_in_doubt("the bank does not answer");
        let ended = semel.run(work(), finds(Err(failure))).await.unwrap();
        assert_failed(&ended, State::Waiting);
        sleep(SECOND).await;
    }
    let failure = Failure::park("the bank answers nonsense");
    let ended = semel.run(work(), finds(Err(failure))).await.unwrap();
    assert_failed(&ended, State::Parked);

    assert_eq!(semel.redrive(&key(1), "").await.unwrap(), Acted::Applied);
    sleep(ACTS).await;
    assert_ran(&semel.run(work(), finds(Ok(None))).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_could_outlive_its_record_is_refused() {
    let work = probed().retention(SECOND * 16);
    let refused = one_process().run(work, must_not_run).await;
    assert!(matches!(refused, Err(Error::Invalid(why)) if why.contains("act")));
}
