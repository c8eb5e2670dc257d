//! `Semel::run`, told as behaviours. Time is tokio's, paused: nothing here waits for real.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;
#[path = "run/doubt.rs"]
mod doubt;

use semel::outcome::Body;
use semel::protocol::{Acted, Ending, Finding, InDoubt, Resolution, State};
use semel::store::StoreExt;
use semel::work::{Backoff, Completes, Duplicates, Failure, FailureKind, Work};
use semel::{Ended, Error, Fingerprint, Outcome, Run, Semel, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use support::{Flaky, SECOND, Said, Trouble, key, must_not_run, payload, succeed};
use support::{assert_busy, assert_failed, assert_ran, assert_replayed, duplicate};
use tokio::sync::oneshot;
use tokio::time::sleep;

fn work() -> Work {
    Work::new(key(1), payload())
        .lease(SECOND * 10)
        .timeout(SECOND * 600)
}

/// A store, and a way to run on it as one more process would.
fn one_store() -> (Flaky, impl Fn() -> Semel) {
    let store = Flaky::new();
    let shared = store.clone();
    (store, move || {
        Semel::with_settings(Arc::new(shared.clone()), Settings::default())
    })
}

/// The only process on its store.
fn one_process() -> Semel {
    one_store().1()
}

/// An effect that panics before it has become a future.
fn broken_before_it_began(_: Run) -> Said {
    panic!("the effect broke at once")
}

/// An effect that takes that long.
fn slow(by: Duration) -> impl FnOnce(Run) -> Said {
    move |_| {
        Box::pin(async move {
            sleep(by).await;
            Ok(Outcome::ok("slow"))
        })
    }
}

#[track_caller]
fn outcome(ended: Ended) -> (Ending, Outcome) {
    match ended {
        Ended::Ran(r) | Ended::Replayed(r) | Ended::Unrecorded(r) => (r.ending, r.outcome.clone()),
        other @ (Ended::Failed(_)
        | Ended::Unread
        | Ended::Busy { .. }
        | Ended::NotYet { .. }
        | Ended::Full { .. }
        | Ended::Parked
        | Ended::Mismatched
        | Ended::Stale) => panic!("no outcome: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn five_at_once_take_effect_once() {
    let (_, semel) = one_store();
    let (semel, effects) = (semel(), Arc::new(AtomicU32::new(0)));
    let deliveries: Vec<_> = (0..5)
        .map(|_| {
            let (semel, effects) = (semel.clone(), Arc::clone(&effects));
            tokio::spawn(async move {
                semel
                    .run(work(), move |_| async move {
                        effects.fetch_add(1, Ordering::SeqCst);
                        sleep(SECOND).await;
                        Ok(Outcome::ok("done"))
                    })
                    .await
            })
        })
        .collect();
    let mut ran = 0;
    for delivery in deliveries {
        let ended = delivery.await.unwrap().unwrap();
        ran += u32::from(matches!(ended, Ended::Ran(_)));
        assert_eq!(outcome(ended).1, Outcome::ok("done"));
    }
    assert_eq!((ran, effects.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_in_another_process_waits_for_the_running_one() {
    let (_, semel) = one_store();
    let (here, there) = (semel(), semel());
    let first = tokio::spawn(async move { here.run(work(), slow(SECOND * 3)).await });
    tokio::task::yield_now().await;
    assert_replayed(&duplicate(&there, work()).await);
    assert_ran(&first.await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_that_may_not_wait_hears_busy() {
    let (_, semel) = one_store();
    let (here, there) = (semel(), semel());
    let first = tokio::spawn({
        let here = here.clone();
        async move { here.run(work(), slow(SECOND * 3)).await }
    });
    tokio::task::yield_now().await;
    let reject = || work().duplicates(Duplicates::Reject);
    for semel in [here, there] {
        assert_busy(&duplicate(&semel, reject()).await);
    }
    assert!(first.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_attached_duplicate_with_another_payload_is_mismatched() {
    let semel = one_process();
    let first = tokio::spawn({
        let semel = semel.clone();
        async move { semel.run(work(), slow(SECOND)).await }
    });
    tokio::task::yield_now().await;
    let other = Work::new(key(1), Fingerprint::of(b"other"));
    assert_eq!(duplicate(&semel, other.clone()).await, Ended::Mismatched);
    assert!(first.await.unwrap().is_ok());
    assert_eq!(duplicate(&semel, other).await, Ended::Mismatched);
}

#[tokio::test(start_paused = true)]
async fn no_more_wait_for_one_run_than_may() {
    let (store, _) = one_store();
    let semel = Semel::with_settings(
        Arc::new(store),
        Settings {
            waiters_max: 1,
            ..Settings::default()
        },
    );
    let deliver = || {
        let semel = semel.clone();
        tokio::spawn(async move { semel.run(work(), slow(SECOND)).await.unwrap() })
    };
    let (first, second) = (deliver(), deliver());
    tokio::task::yield_now().await;
    assert_busy(&duplicate(&semel, work()).await);
    assert_ran(&first.await.unwrap());
    assert_replayed(&second.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_does_not_cancel_the_effect() {
    let semel = one_process();
    let (done, was_done) = oneshot::channel();
    let effect = |_: Run| async move {
        sleep(SECOND).await;
        done.send(()).unwrap();
        Ok(Outcome::ok("done"))
    };
    let caller = tokio::time::timeout(SECOND / 10, semel.run(work(), effect)).await;
    assert!(caller.is_err());
    was_done.await.unwrap();
    let again = duplicate(&semel, work()).await;
    assert_eq!(outcome(again).1, Outcome::ok("done"));
}

#[tokio::test(start_paused = true)]
async fn a_retryable_failure_runs_again_after_its_pause() {
    let semel = one_process();
    let work = || {
        work().backoff(Backoff {
            first: SECOND * 8,
            max: SECOND * 60,
        })
    };
    let failed = semel
        .run(work(), |_| async { Err(Failure::retryable("451")) })
        .await
        .unwrap();
    assert!(
        matches!(&failed, Ended::Failed(f) if f.state == State::Waiting && f.failure.outcome.body_bytes() == "451")
    );
    let Ended::NotYet { retry_after } = duplicate(&semel, work()).await else {
        panic!("ran too soon")
    };
    assert!(
        retry_after >= SECOND * 4 && retry_after <= SECOND * 8,
        "{retry_after:?}"
    );
    sleep(retry_after).await;
    let second = semel
        .run(work(), |run| async move {
            Ok(Outcome::ok(run.lease().attempt.to_string()))
        })
        .await;
    assert_eq!(outcome(second.unwrap()).1, Outcome::ok("2"));
}

#[tokio::test(start_paused = true)]
async fn work_that_used_up_its_attempts_is_parked_until_a_person_acts() {
    let semel = one_process();
    let work = || work().max_attempts(2);
    for state in [State::Waiting, State::Parked] {
        let failed = semel
            .run(work(), |_| async { Err(Failure::retryable("no")) })
            .await
            .unwrap();
        assert_failed(&failed, state);
    }
    assert_eq!(duplicate(&semel, work()).await, Ended::Parked);
    assert_eq!(semel.redrive(&key(1), "").await.unwrap(), Acted::Applied);
    assert_ran(&semel.run(work(), succeed).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_final_failure_is_replayed() {
    let (_, semel) = one_store();
    let failed = semel()
        .run(work(), |_| async {
            Err(Failure::final_failure("no such item"))
        })
        .await
        .unwrap();
    assert_eq!(outcome(failed).0, Ending::Failed);
    let again = duplicate(&semel(), work()).await;
    assert!(matches!(&again, Ended::Replayed(r) if r.outcome.body_bytes() == "no such item"));
}

#[tokio::test(start_paused = true)]
async fn doubt_parks_or_retries_by_policy() {
    let semel = one_process();
    let work = |n, in_doubt| {
        Work::new(key(n), payload())
            .in_doubt(in_doubt)
            .timeout(SECOND * 5)
    };
    let panics = |_: Run| async { panic!("the effect broke") };
    for (n, policy, state) in [
        (1, InDoubt::Park, State::Parked),
        (2, InDoubt::Retry, State::Waiting),
    ] {
        let ended = semel.run(work(n, policy), panics).await.unwrap();
        assert!(
            matches!(&ended, Ended::Failed(f) if f.state == state && f.failure.kind == FailureKind::InDoubt),
            "{ended:?}"
        );
        let ended = semel
            .run(work(n + 4, policy), broken_before_it_began)
            .await
            .unwrap();
        assert_failed(&ended, state);
        let ended = semel
            .run(work(n + 2, policy), slow(SECOND * 6))
            .await
            .unwrap();
        assert!(
            matches!(&ended, Ended::Failed(f) if f.state == state),
            "a timeout: {ended:?}"
        );
    }
    let how = Resolution::new(Finding::Succeeded(Outcome::ok("it did happen").encode()));
    assert_eq!(
        semel.resolve(&key(1), &how, "").await.unwrap(),
        Acted::Applied
    );
    let after = duplicate(&semel, work(1, InDoubt::Park)).await;
    assert_eq!(outcome(after).1, Outcome::ok("it did happen"));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_not_started_does_not_count() {
    let semel = one_process();
    for _ in 0..3 {
        let ended = semel
            .run(work().max_attempts(1), |_| async {
                Err(Failure::not_started("connection refused"))
            })
            .await;
        assert!(matches!(ended.unwrap(), Ended::Failed(f) if f.state == State::Waiting));
    }
    assert_ran(&semel.run(work().max_attempts(1), succeed).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_slow_effect_keeps_its_lease() {
    let (store, semel) = one_store();
    let (here, there) = (semel(), semel());
    let first = tokio::spawn(async move { here.run(work(), slow(SECOND * 300)).await });
    sleep(SECOND * 250).await;
    assert_eq!(
        duplicate(&there, work().duplicates(Duplicates::Reject))
            .await
            .clone(),
        busy(&store).await
    );
    assert_ran(&first.await.unwrap().unwrap());
}

async fn busy(store: &Flaky) -> Ended {
    let record = store.look(&key(1)).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempts), (State::Running, 1));
    Ended::Busy {
        retry_after: record.lease_until.since(store.now()),
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_an_operator_released_is_cancelled_and_stale() {
    let (_, semel) = one_store();
    let (here, there) = (semel(), semel());
    let (ended, was_cancelled) = oneshot::channel::<()>();
    let effect = |_: Run| async move {
        sleep(SECOND * 300).await;
        ended.send(()).unwrap();
        Ok(Outcome::ok("zombie"))
    };
    let zombie = tokio::spawn(async move { here.run(work(), effect).await });
    tokio::task::yield_now().await;
    sleep(SECOND).await;
    assert_eq!(there.release(&key(1), "").await.unwrap(), Acted::Applied);
    assert_ran(&there.run(work(), succeed).await.unwrap());
    assert_eq!(zombie.await.unwrap().unwrap(), Ended::Stale);
    assert!(
        was_cancelled.await.is_err(),
        "the effect of a stale run went on"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_grant_is_granted_again() {
    let (store, semel) = one_store();
    store.plan([Trouble::AnswerLost]);
    let ended = semel()
        .run(work(), |run| async move {
            Ok(Outcome::ok(run.lease().attempt.to_string()))
        })
        .await;
    assert_eq!(outcome(ended.unwrap()).1, Outcome::ok("1"));
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_after_its_lease_is_not_run() {
    let (store, semel) = one_store();
    store.plan([Trouble::Late(SECOND * 11)]);
    let error = semel().run(work(), must_not_run).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("nothing was run, a retry is safe"),
        "{error}"
    );
    assert_ran(&semel().run(work(), succeed).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_before_the_run_runs_nothing() {
    let (store, semel) = one_store();
    store.set_down(true);
    let error = semel().run(work(), must_not_run).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_goes_down_after_the_run_gets_the_record_later() {
    let (store, semel) = one_store();
    let down = store.clone();
    let effect = move |_: Run| async move {
        down.set_down(true);
        Ok(Outcome::ok("real answer"))
    };
    let ended = semel().run(work(), effect).await.unwrap();
    assert!(
        matches!(&ended, Ended::Unrecorded(r) if r.outcome == Outcome::ok("real answer")),
        "{ended:?}"
    );
    store.set_down(false);
    sleep(SECOND * 2).await;
    assert_eq!(
        outcome(duplicate(&semel(), work()).await).1,
        Outcome::ok("real answer")
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_completion_is_asked_for_again() {
    let (store, semel) = one_store();
    let planner = store.clone();
    let effect = move |_: Run| async move {
        planner.plan([Trouble::AnswerLost, Trouble::Down]);
        Ok(Outcome::ok("done"))
    };
    assert_ran(&semel().run(work(), effect).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_the_limit_is_a_success_without_a_body() {
    let (_, semel) = one_store();
    let large = vec![b'x'; Settings::default().answer_bytes_max + 1];
    let ended = semel()
        .run(work(), |_| async { Ok(Outcome::ok(large)) })
        .await
        .unwrap();
    assert_ran(&ended);
    let (ending, replayed) = outcome(duplicate(&semel(), work()).await);
    assert_eq!(
        (ending, replayed.status, replayed.body),
        (Ending::Succeeded, 200, Body::NotKept)
    );
}

#[tokio::test(start_paused = true)]
async fn a_settled_key_is_answered_from_memory_for_a_while() {
    let (store, semel) = one_store();
    let semel = semel();
    assert_ran(&semel.run(work(), succeed).await.unwrap());
    store.set_down(true);
    assert_replayed(&duplicate(&semel, work()).await);
    sleep(SECOND * 6).await;
    assert!(
        semel.run(work(), must_not_run).await.is_err(),
        "a shared store is asked again after 5 s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_key_runs_again_at_once() {
    let semel = one_process();
    for _ in 0..2 {
        assert_ran(&semel.run(work(), succeed).await.unwrap());
        assert_eq!(semel.forget(&key(1)).await.unwrap(), Acted::Applied);
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_handler_completes_its_word_alone_counts() {
    let (store, semel) = one_store();
    let work = || work().completes(Completes::Handler);
    let ended = semel().run(work(), succeed).await.unwrap();
    assert!(
        matches!(&ended, Ended::Failed(f) if f.state == State::Waiting),
        "answered without completing: {ended:?}"
    );
    let handler = store.clone();
    let effect = move |run: Run| async move {
        let stored = Outcome::ok("stored in the transaction").encode();
        drop(
            handler
                .complete(run.lease(), &stored, SECOND * 60)
                .await
                .unwrap(),
        );
        Err(Failure::retryable("committed, then answered 500"))
    };
    let ended = semel().run(work(), effect).await.unwrap();
    assert!(
        matches!(&ended, Ended::Ran(r) if r.outcome == Outcome::ok("stored in the transaction")),
        "{ended:?}"
    );
}

/// Its transaction did not record success, though it answered so: it may have acted by other means.
#[tokio::test(start_paused = true)]
async fn a_success_that_the_handler_did_not_complete_is_in_doubt() {
    for (policy, state) in [
        (InDoubt::Retry, State::Waiting),
        (InDoubt::Probe, State::Waiting),
        (InDoubt::Park, State::Parked),
    ] {
        let (store, semel) = one_store();
        let work = || work().completes(Completes::Handler).in_doubt(policy);
        let refused = |_| async { Err(Failure::retryable("the bank is closed")) };
        let ended = semel().run(work(), refused).await.unwrap();
        assert_failed(&ended, State::Waiting);
        let doubts = async || store.look(&key(1)).await.unwrap().unwrap().doubts;
        assert_eq!(doubts().await, 0, "it answered that it failed");
        let ended = semel().run(work(), succeed).await.unwrap();
        assert_failed(&ended, state);
        assert_eq!(doubts().await, 1, "it answered success under {policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_handler_completes_a_broken_run_is_not_in_doubt() {
    let (_, semel) = one_store();
    let work = || work().completes(Completes::Handler).in_doubt(InDoubt::Park);
    let cut = |_| async { Err(Failure::in_doubt("the connection broke")) };
    let ended = semel().run(work(), cut).await.unwrap();
    assert_failed(&ended, State::Waiting);
    let parked = semel()
        .run(work().completes(Completes::Run), cut)
        .await
        .unwrap();
    assert_failed(&parked, State::Parked);
}

#[tokio::test(start_paused = true)]
async fn bad_terms_are_refused_before_anything_is_claimed() {
    let (store, semel) = one_store();
    let error = semel()
        .run(work().retention(SECOND), must_not_run)
        .await
        .unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("lease 10s is longer than retention 1s"),
        "{message}"
    );
    assert!(message.contains("nothing was written"), "{message}");
    assert_eq!(store.look(&key(1)).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_hangs_does_not_hold_up_the_outcome() {
    let (store, semel) = one_store();
    let planner = store.clone();
    let effect = move |_: Run| async move {
        planner.plan([Trouble::Late(SECOND * 100)]);
        sleep(SECOND * 5).await;
        Ok(Outcome::ok("done"))
    };
    let begun = tokio::time::Instant::now();
    assert_ran(&semel().run(work(), effect).await.unwrap());
    assert!(begun.elapsed() < SECOND * 6, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_late_grant_is_renewed_before_it_lapses() {
    let (store, semel) = one_store();
    let (here, there) = (semel(), semel());
    let short = || work().lease(SECOND * 5);
    store.plan([Trouble::Late(SECOND * 4)]);
    let first = tokio::spawn(async move { here.run(short(), slow(SECOND * 30)).await });
    sleep(SECOND * 21 / 4).await;
    assert_busy(&duplicate(&there, short().duplicates(Duplicates::Reject)).await);
    assert_ran(&first.await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_was_lost_too_long_is_not_run() {
    let (store, semel) = one_store();
    store.plan([Trouble::LostLate(SECOND * 47 / 10)]);
    let short = work().lease(SECOND * 5);
    let error = semel().run(short, must_not_run).await.unwrap_err();
    assert!(error.to_string().contains("too late to use it"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_not_answered_ends_while_its_sender_listens() {
    let (store, semel) = one_store();
    store.plan([Trouble::Late(SECOND * 100)]);
    let begun = tokio::time::Instant::now();
    let error = semel().run(work(), must_not_run).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    assert!(begun.elapsed() <= SECOND * 5, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_nobody_heard_of_is_given_back() {
    let (store, semel) = one_store();
    store.plan([Trouble::LostLate(SECOND * 100)]);
    let parks = || work().in_doubt(InDoubt::Park);
    let error = semel().run(parks(), must_not_run).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    sleep(SECOND * 2).await;
    let record = store.look(&key(1)).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempts), (State::Waiting, 0));
    let ran = semel().run(parks(), succeed).await.unwrap();
    assert_ran(&ran);
}
