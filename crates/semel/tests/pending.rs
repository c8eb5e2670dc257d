//! Outcomes in hand, told as behaviours: the effect has run, and the store does not take what became of
//! it. Time is tokio's, paused: nothing here waits for real.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use semel::outcome::Body;
use semel::protocol::{Acted, Ending, InDoubt, State};
use semel::store::StoreExt;
use semel::work::{Completes, Failure, FailureKind, Work};
use semel::{Ended, Error, Fingerprint, Outcome, Paused, PendingOutcome, Run, Semel, Settings};
use std::sync::Arc;
use std::time::Duration;
use support::{Flaky, Refused, SECOND, Said, key, must_not_run, payload};
use support::{assert_busy, assert_ran, assert_replayed, duplicate};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

const LEASE: Duration = Duration::from_secs(30);

fn work(number: u8) -> Work {
    Work::new(key(number), payload()).lease(LEASE)
}

fn on(store: &Flaky) -> Semel {
    with(store, Settings::default())
}

fn with(store: &Flaky, settings: Settings) -> Semel {
    Semel::with_settings(Arc::new(store.clone()), settings)
}

fn denied() -> Error {
    Error::denied("permission denied for table rec")
}

/// An effect after which the store refuses this part of its calls.
fn then(
    store: &Flaky,
    part: Refused,
    error: Error,
    said: Result<Outcome, Failure>,
) -> impl FnOnce(Run) -> Said + use<> {
    let store = store.clone();
    move |_| {
        Box::pin(async move {
            store.refuse(part, &error);
            said
        })
    }
}

/// Runs work whose outcome the store then does not take.
async fn left_in_hand(semel: &Semel, store: &Flaky, number: u8, error: Error) {
    let charged = format!("charged {number}");
    let said = Ok(Outcome::ok(charged.clone()));
    let effect = then(store, Refused::Outcomes, error, said);
    is_pending(&semel.run(work(number), effect).await.unwrap(), &charged);
}

/// The store takes outcomes again, and soon it has them all.
async fn recorded(semel: &Semel, store: &Flaky) {
    store.take_again();
    timeout(SECOND * 2, semel.pending_recorded()).await.unwrap();
}

async fn state(store: &Flaky, number: u8) -> State {
    store.look(&key(number)).await.unwrap().unwrap().state
}

#[track_caller]
fn is_pending(ended: &Ended, body: &str) {
    let Ended::Unrecorded(recorded) = ended else {
        panic!("not pending: {ended:?}")
    };
    assert_eq!(recorded.outcome, Outcome::ok(body.to_owned()));
}

// === Whatever the store says ===

#[tokio::test(start_paused = true)]
async fn an_outcome_is_recorded_when_the_store_takes_it_whatever_it_said_before() {
    for error in [
        denied(),
        Error::unavailable("gone"),
        Error::corrupt("a row is damaged"),
        Error::bug("22P02"),
    ] {
        let store = Flaky::new();
        let semel = on(&store);
        left_in_hand(&semel, &store, 1, error.clone()).await;
        // Far beyond its lease: it is renewed meanwhile.
        sleep(LEASE * 3).await;
        assert_eq!(state(&store, 1).await, State::Running, "{error}");
        assert_busy(&duplicate(&on(&store), work(1)).await);

        recorded(&semel, &store).await;
        assert_eq!(state(&store, 1).await, State::Succeeded, "{error}");
        assert_replayed(&duplicate(&on(&store), work(1)).await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_recorded_after_its_lease_lapsed_in_silence() {
    let store = Flaky::new();
    let semel = on(&store);
    let down = store.clone();
    let effect = move |_: Run| async move {
        down.set_down(true);
        Ok(Outcome::ok("charged"))
    };
    is_pending(&semel.run(work(1), effect).await.unwrap(), "charged");
    sleep(LEASE * 10).await;
    store.set_down(false);
    timeout(SECOND * 2, semel.pending_recorded()).await.unwrap();
    assert_eq!(state(&store, 1).await, State::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_was_overtaken_is_not_called_recorded() {
    let store = Flaky::new();
    let semel = on(&store);
    left_in_hand(&semel, &store, 1, denied()).await;
    let operator = on(&store);
    assert_eq!(operator.release(&key(1), "").await.unwrap(), Acted::Applied);
    recorded(&semel, &store).await;
    assert_eq!(state(&store, 1).await, State::Waiting);
    assert_eq!(semel.pending(), []);
    let ended = semel
        .run(work(1), |_| async { Ok(Outcome::ok("again")) })
        .await
        .unwrap();
    assert_ran(&ended);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_given_up_when_nobody_would_remember_it() {
    let store = Flaky::new();
    let semel = on(&store);
    let work = work(1).retention(SECOND * 120);
    let said = Ok(Outcome::ok("charged"));
    let effect = then(&store, Refused::Outcomes, denied(), said);
    is_pending(&semel.run(work, effect).await.unwrap(), "charged");
    let begun = Instant::now();
    timeout(SECOND * 600, semel.pending_recorded())
        .await
        .unwrap();
    assert!(begun.elapsed() > SECOND * 100, "{:?}", begun.elapsed());
    assert_eq!(semel.paused(), None);
}

// === While it is in hand ===

#[tokio::test(start_paused = true)]
async fn duplicates_hear_what_is_in_hand_and_run_nothing() {
    let store = Flaky::new();
    let semel = on(&store);
    left_in_hand(&semel, &store, 1, denied()).await;
    for wait in [SECOND, LEASE * 2] {
        sleep(wait).await;
        let ended = duplicate(&semel, work(1)).await;
        is_pending(&ended, "charged 1");
    }
    let other = Work::new(key(1), Fingerprint::of(b"other"));
    assert_eq!(duplicate(&semel, other).await, Ended::Mismatched);
    assert_eq!(
        semel.pending(),
        [PendingOutcome {
            key: key(1),
            fence: store.look(&key(1)).await.unwrap().unwrap().fence,
            ending: Ending::Succeeded,
            status: 200,
        }]
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_more_is_claimed_while_the_store_denies_an_outcome() {
    let store = Flaky::new();
    let semel = on(&store);
    let settled = semel.run(work(9), |_| async { Ok(Outcome::ok("before")) });
    assert_ran(&settled.await.unwrap());
    left_in_hand(&semel, &store, 1, denied()).await;
    assert!(matches!(semel.paused(), Some(Paused::Denied(why)) if why.contains("permission")));
    let error = semel.run(work(2), must_not_run).await.unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("nothing was run")),
        "{error}"
    );
    assert_eq!(
        store.look(&key(2)).await.unwrap(),
        None,
        "nothing is claimed"
    );
    // A store that then cannot be reached either is not better off.
    store.refuse(Refused::Outcomes, &Error::unavailable("gone"));
    sleep(SECOND * 3).await;
    assert!(matches!(semel.paused(), Some(Paused::Denied(_))));

    recorded(&semel, &store).await;
    assert_eq!((semel.paused(), semel.pending_count()), (None, 0));
    let ended = semel.run(work(2), |_| async { Ok(Outcome::ok("now")) });
    assert_ran(&ended.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn settled_work_is_answered_from_memory_while_nothing_is_claimed() {
    let store = Flaky::new();
    let settings = Settings {
        shared_cache: LEASE,
        ..Settings::default()
    };
    let semel = with(&store, settings);
    let settled = semel.run(work(9), |_| async { Ok(Outcome::ok("before")) });
    assert_ran(&settled.await.unwrap());
    left_in_hand(&semel, &store, 1, denied()).await;
    assert_replayed(&duplicate(&semel, work(9)).await);
}

#[tokio::test(start_paused = true)]
async fn nothing_more_is_claimed_while_too_many_outcomes_wait() {
    let store = Flaky::new();
    let settings = Settings {
        pending_max: 2,
        ..Settings::default()
    };
    let semel = with(&store, settings);
    let away = || Error::unavailable("gone");
    for number in 1..=2 {
        assert_eq!(semel.paused(), None);
        left_in_hand(&semel, &store, number, away()).await;
    }
    assert_eq!(semel.paused(), Some(Paused::Full { outcomes: 2 }));
    let error = semel.run(work(3), must_not_run).await.unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("pending_max")),
        "{error}"
    );
    recorded(&semel, &store).await;
    assert_eq!(semel.paused(), None);
}

#[tokio::test(start_paused = true)]
async fn bodies_are_dropped_before_outcomes_are() {
    let store = Flaky::new();
    let settings = Settings {
        pending_bytes_max: 100,
        ..Settings::default()
    };
    let semel = with(&store, settings);
    let away = || Error::unavailable("gone");
    for (number, heard) in [(1, "x".repeat(60)), (2, "y".repeat(60))] {
        let effect = then(
            &store,
            Refused::Outcomes,
            away(),
            Ok(Outcome::ok(heard.clone())),
        );
        // The first sender hears all of it.
        is_pending(&semel.run(work(number), effect).await.unwrap(), &heard);
    }
    is_pending(&duplicate(&semel, work(1)).await, &"x".repeat(60));
    let Ended::Unrecorded(told) = duplicate(&semel, work(2)).await else {
        panic!("not pending")
    };
    assert_eq!(
        (told.outcome.status, &told.outcome.body),
        (200, &Body::NotKept)
    );
    recorded(&semel, &store).await;
    for (number, body) in [(1, Body::Kept("x".repeat(60).into())), (2, Body::NotKept)] {
        let record = store.look(&key(number)).await.unwrap().unwrap();
        assert_eq!(record.state, State::Succeeded);
        assert_eq!(Outcome::decode(&record.result.unwrap()).unwrap().body, body);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_in_hand_is_not_run_again_by_an_operator_and_heals_a_record_that_was_parked() {
    let store = Flaky::new();
    let semel = on(&store);
    let parks = || work(1).in_doubt(InDoubt::Park);
    let down = store.clone();
    let effect = move |_: Run| async move {
        down.set_down(true);
        Ok(Outcome::ok("charged"))
    };
    is_pending(&semel.run(parks(), effect).await.unwrap(), "charged");
    // Its lease lapses unheard, and another process comes by while this one still hears nothing.
    sleep(LEASE * 2).await;
    store.set_down(false);
    store.refuse(Refused::Outcomes, &Error::unavailable("gone"));
    let elsewhere = duplicate(&on(&store), parks()).await;
    assert_eq!(elsewhere, Ended::Parked);
    let error = semel.redrive(&key(1), "").await.unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("in hand")),
        "{error}"
    );
    recorded(&semel, &store).await;
    assert_eq!(state(&store, 1).await, State::Succeeded);
}

// === Failures ===

#[tokio::test(start_paused = true)]
async fn a_final_failure_is_kept_as_long_as_a_success() {
    let store = Flaky::new();
    let semel = on(&store);
    let said = Err(Failure::final_failure("no such card"));
    let effect = then(&store, Refused::Outcomes, denied(), said);
    let ended = semel.run(work(1), effect).await.unwrap();
    assert!(
        matches!(&ended, Ended::Unrecorded(r) if r.ending == Ending::Failed),
        "{ended:?}"
    );
    sleep(LEASE * 3).await;
    assert_eq!(duplicate(&semel, work(1)).await, ended);
    recorded(&semel, &store).await;
    assert_eq!(state(&store, 1).await, State::Failed);
}

#[tokio::test(start_paused = true)]
async fn what_a_lapse_says_as_well_is_said_until_the_lapse() {
    for kind in [
        FailureKind::Retryable,
        FailureKind::InDoubt,
        FailureKind::NotStarted,
        FailureKind::Withdrawn,
    ] {
        let store = Flaky::new();
        let semel = on(&store);
        let said = Err(Failure {
            kind,
            ..Failure::retryable("451")
        });
        let effect = then(&store, Refused::Outcomes, denied(), said);
        let ended = semel.run(work(1), effect).await.unwrap();
        assert!(
            matches!(&ended, Ended::Failed(f) if f.failure.kind == kind && f.state == State::Waiting),
            "{ended:?}"
        );
        // While the lease lasts, duplicates hear the same, and nothing is claimed.
        assert_eq!(duplicate(&semel, work(1)).await, ended);
        assert!(semel.paused().is_some());
        assert_eq!(semel.pending(), [], "nobody needs to hear of it");
        timeout(LEASE, semel.pending_recorded()).await.unwrap();
        assert_eq!(semel.paused(), None);
        assert_eq!(state(&store, 1).await, State::Running, "left to lapse");
        store.take_again();
        sleep(LEASE).await;
        let again = semel.run(work(1), |_| async { Ok(Outcome::ok("done")) });
        let again = again.await.unwrap();
        assert_ran(&again);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_over_the_limit_is_recorded_without_its_body() {
    let store = Flaky::new();
    let large = vec![b'x'; Settings::default().answer_bytes_max + 1];
    let fails = |kind, large: Vec<u8>| {
        let failure = Failure {
            kind,
            outcome: Outcome::new(422, large),
            after: None,
        };
        move |_: Run| async move { Err(failure) }
    };
    let effect = fails(FailureKind::Final, large.clone());
    let ended = on(&store).run(work(1), effect).await.unwrap();
    let Ended::Ran(recorded) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(
        (recorded.outcome.status, &recorded.outcome.body),
        (422, &Body::NotKept)
    );
    let effect = fails(FailureKind::Retryable, large);
    let ended = on(&store).run(work(2), effect).await.unwrap();
    assert!(matches!(&ended, Ended::Failed(f) if f.failure.outcome.body == Body::NotKept));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_the_store_does_not_take_is_left_out_and_the_outcome_is_recorded() {
    for said in [
        Ok(Outcome::ok("x".repeat(1000))),
        Err(Failure {
            outcome: Outcome::new(422, "x".repeat(1000)),
            ..Failure::final_failure("")
        }),
    ] {
        let store = Flaky::new();
        let error = Error::invalid("the outcome has 1000 bytes, the limit is 500");
        let effect = then(&store, Refused::OutcomesOver(500), error, said.clone());
        let ended = on(&store).run(work(1), effect).await.unwrap();
        let Ended::Ran(heard) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!(
            heard.outcome.body_bytes().len(),
            1000,
            "its sender hears all"
        );
        let again = duplicate(&on(&store), work(1)).await;
        assert!(
            matches!(&again, Ended::Replayed(r) if r.outcome.body == Body::NotKept),
            "{again:?}"
        );
    }
}

// === Where the handler completes ===

fn by_handler(number: u8) -> Work {
    work(number).completes(Completes::Handler)
}

/// An effect whose own transaction records success, or not, and after which no record can be read.
fn commits(store: &Flaky, does: bool, error: Error) -> impl FnOnce(Run) -> Said + use<> {
    let store = store.clone();
    move |run: Run| {
        Box::pin(async move {
            if does {
                let stored = Outcome::ok("committed").encode();
                let held = store.complete(run.lease(), &stored, SECOND * 600).await;
                assert!(held.is_ok());
            }
            store.refuse(Refused::Looks, &error);
            Ok(Outcome::ok("answered"))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_handler_completes_nothing_is_guessed_until_the_record_is_read() {
    for error in [Error::unavailable("gone"), denied()] {
        for does in [true, false] {
            let store = Flaky::new();
            let semel = on(&store);
            let effect = commits(&store, does, error.clone());
            let (to, mut uncompleted) = mpsc::unbounded_channel();
            let work = by_handler(1).reports_uncompleted(to);
            let ended = semel.run(work, effect).await.unwrap();
            assert_eq!(ended, Ended::Unread);
            sleep(LEASE * 2).await;
            assert!(uncompleted.is_empty(), "the record cannot be read");
            assert_eq!(duplicate(&semel, by_handler(1)).await, Ended::Unread);
            assert_eq!(semel.pending(), [], "the record knows it, if anybody does");
            assert_eq!(semel.paused().is_some(), matches!(error, Error::Denied(_)));

            recorded(&semel, &store).await;
            assert_eq!(uncompleted.recv().await.is_none(), does);
            if does {
                let ended = duplicate(&semel, by_handler(1)).await;
                assert!(
                    matches!(&ended, Ended::Replayed(r) if r.outcome == Outcome::ok("committed")),
                    "{ended:?}"
                );
            } else {
                // It did not commit, whatever it answered.
                let record = store.look(&key(1)).await.unwrap().unwrap();
                assert_eq!((record.state, record.doubts), (State::Waiting, 1));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_waits_hears_of_a_commit_that_came_after_the_lease() {
    let store = Flaky::new();
    let semel = on(&store);
    let work = by_handler(1).lease(SECOND * 2);
    let held = store.clone();
    let effect = move |run: Run| async move {
        // Its transaction holds the record, and commits only when the run was given up long ago.
        held.refuse(Refused::Outcomes, &Error::unavailable("held"));
        let lease = run.lease().clone();
        tokio::spawn(async move {
            sleep(SECOND * 5).await;
            held.take_again();
            let stored = Outcome::ok("committed").encode();
            drop(held.complete(&lease, &stored, SECOND * 600).await);
        });
        Err(Failure::in_doubt("it did not answer in time"))
    };
    let ended = semel.run(work, effect).await.unwrap();
    assert!(
        matches!(&ended, Ended::Ran(r) if r.outcome == Outcome::ok("committed")),
        "{ended:?}"
    );
}
