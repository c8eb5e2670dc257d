//! Steps, told as behaviours.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use bytes::Bytes;
use semel::protocol::{Acted, Ending, InDoubt, State};
use semel::store::StoreExt;
use semel::work::{Failure, Work};
use semel::{Ended, Outcome, Run, Semel, Settings};
use std::sync::{Arc, Mutex};
use support::{Flaky, Said, Trouble, assert_failed, assert_ran, key, payload};

/// What really happened, in order.
#[derive(Clone, Default)]
struct World(Arc<Mutex<Vec<String>>>);

impl World {
    async fn act(&self, what: &str) -> Result<Bytes, Failure> {
        self.0.lock().unwrap().push(what.to_owned());
        Ok(format!("{what} done").into())
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn setting() -> (Flaky, Semel, World) {
    let store = Flaky::new();
    let settings = Settings {
        shared_cache: std::time::Duration::ZERO,
        ..Settings::default()
    };
    let semel = Semel::with_settings(Arc::new(store.clone()), settings);
    (store, semel, World::default())
}

fn work() -> Work {
    Work::new(key(1), payload())
}

/// Charge, ship, mail; dies after so many steps.
fn three_steps(world: &World, dies_after: usize) -> impl FnOnce(Run) -> Said + use<> {
    let world = world.clone();
    move |run| {
        Box::pin(async move {
            for (i, name) in ["charge", "ship", "mail"].into_iter().enumerate() {
                if i == dies_after {
                    return Err(Failure::in_doubt("killed"));
                }
                run.step(name, |_| world.act(name)).await?;
            }
            Ok(Outcome::ok("all done"))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_killed_after_step_two_resumes_at_step_three() {
    let (_, semel, world) = setting();
    let ended = semel.run(work(), three_steps(&world, 2)).await.unwrap();
    assert_failed(&ended, State::Waiting);
    assert_eq!(world.seen(), ["charge", "ship"]);
    assert_ran(&semel.run(work(), three_steps(&world, 3)).await.unwrap());
    assert_eq!(world.seen(), ["mail"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_incarnation_runs_all_its_steps_again() {
    let (_, semel, world) = setting();
    for _ in 0..2 {
        assert_ran(&semel.run(work(), three_steps(&world, 3)).await.unwrap());
        assert_eq!(world.seen(), ["charge", "ship", "mail"]);
        assert_eq!(semel.forget(&key(1)).await.unwrap(), Acted::Applied);
    }
}

#[tokio::test(start_paused = true)]
async fn a_redriven_run_keeps_the_steps_it_has_done() {
    let (_, semel, world) = setting();
    let work = || work().in_doubt(InDoubt::Park);
    let ended = semel.run(work(), three_steps(&world, 2)).await.unwrap();
    assert_failed(&ended, State::Parked);
    assert_eq!(semel.redrive(&key(1), "").await.unwrap(), Acted::Applied);
    assert_ran(&semel.run(work(), three_steps(&world, 3)).await.unwrap());
    assert_eq!(world.seen(), ["charge", "ship", "mail"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_in_doubt_is_parked_or_repeated_by_policy() {
    for (policy, state, repeated) in [
        (InDoubt::Park, State::Parked, 1),
        (InDoubt::Retry, State::Waiting, 2),
    ] {
        let (_, semel, world) = setting();
        let work = || work().in_doubt(policy);
        let half = |world: World| {
            move |run: Run| async move {
                run.step("charge", |_| async move {
                    world.act("charge").await?;
                    Err(Failure::retryable("the answer was lost"))
                })
                .await?;
                Ok(Outcome::ok("never"))
            }
        };
        let ended = semel.run(work(), half(world.clone())).await.unwrap();
        assert_failed(&ended, State::Waiting);
        let ended = semel.run(work(), half(world.clone())).await.unwrap();
        assert_failed(&ended, state);
        assert_eq!(world.seen().len(), repeated);
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_name_used_twice_is_refused() {
    let (_, semel, world) = setting();
    let ended = semel.run(work(), {
        let world = world.clone();
        |run| async move {
            run.step("charge", |_| world.act("charge")).await?;
            run.step("charge", |_| world.act("charge again")).await?;
            Ok(Outcome::ok("never"))
        }
    });
    let Ended::Ran(recorded) = ended.await.unwrap() else {
        panic!("not settled")
    };
    assert_eq!(recorded.ending, Ending::Failed);
    let message = String::from_utf8(recorded.outcome.body_bytes().to_vec()).unwrap();
    assert!(
        message.contains("step name \"charge\" was used twice"),
        "{message}"
    );
    assert!(message.contains("redrive"), "{message}");
    assert_eq!(world.seen(), ["charge"]);
}

#[tokio::test(start_paused = true)]
async fn a_bad_step_name_is_refused_with_its_name() {
    let (_, semel, world) = setting();
    let ended = semel.run(work(), |run| async move {
        run.step("", |_| world.act("nothing")).await?;
        Ok(Outcome::ok("never"))
    });
    let Ended::Ran(recorded) = ended.await.unwrap() else {
        panic!("not settled")
    };
    let message = String::from_utf8(recorded.outcome.body_bytes().to_vec()).unwrap();
    assert!(
        message.contains("step name \"\" must have 1 to 255 bytes"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_key_is_the_same_in_every_run() {
    let (store, semel, _) = setting();
    let keys = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..2 {
        let keys = Arc::clone(&keys);
        let ended = semel.run(work(), move |run| async move {
            run.step("charge", |step| async move {
                keys.lock().unwrap().push(step.key);
                Err(Failure::retryable("again, please"))
            })
            .await?;
            Ok(Outcome::ok("never"))
        });
        assert_failed(&ended.await.unwrap(), State::Waiting);
    }
    let record = store.look(&key(1)).await.unwrap().unwrap();
    let expected = key(1).step(record.born, "charge");
    assert_eq!(*keys.lock().unwrap(), [expected; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_record_is_lost_leaves_the_run_in_doubt() {
    let (store, semel, world) = setting();
    let ended = semel.run(work().in_doubt(InDoubt::Park), move |run| async move {
        let planner = store.clone();
        run.step("charge", |_| async move {
            planner.plan([Trouble::Down, Trouble::Down, Trouble::Down]);
            world.act("charge").await
        })
        .await?;
        Ok(Outcome::ok("never"))
    });
    assert!(matches!(ended.await.unwrap(), Ended::Failed(f) if f.state == State::Parked));
}

#[tokio::test(start_paused = true)]
async fn a_step_outlives_a_store_that_is_away_for_a_moment() {
    let (store, semel, world) = setting();
    let seen = world.clone();
    let ended = semel.run(work(), move |run| async move {
        let planner = store.clone();
        planner.plan([Trouble::Down, Trouble::AnswerLost]);
        run.step("charge", |_| async move {
            planner.plan([Trouble::AnswerLost, Trouble::Down]);
            world.act("charge").await
        })
        .await?;
        Ok(Outcome::ok("done"))
    });
    assert_ran(&ended.await.unwrap());
    assert_eq!(seen.seen(), ["charge"]);
}
