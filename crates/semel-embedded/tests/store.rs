//! What the embedded store does beyond the suite that every store passes.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use bytes::Bytes;
use common::{NOON, RETENTION, claim, grant, is_replayed, key, letter, open, place};
use common::{settings, settle};
use semel::clock::{ManualClock, Time};
use semel::letter::{Letter, Mark, Marked, Put};
use semel::protocol::{Acted, Claimed, Fence, Held, InDoubt, Owner, State, StepBegun};
use semel::store::{Cursor, Letters, Page, StoreExt};
use semel::{Error, Store};
use semel_embedded::EmbeddedStore;
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn everything_is_still_there_after_a_reopen() {
    let (_home, directory) = place();
    let store = open(&directory).unwrap();
    settle(&store, 1).await;
    let lease = grant(&store, 2).await;
    assert_eq!(store.step_begin(&lease, "charge").await, Ok(StepBegun::Run));
    let charged = Bytes::from_static(b"charged");
    let held = store.step_complete(&lease, "charge", &charged).await;
    assert_eq!(held, Ok(Held::Applied(State::Running)));
    assert_eq!(store.put(&letter(1)).await, Ok(Put::Applied));
    drop(store);

    let store = open(&directory).unwrap();
    is_replayed(&store, 1).await;
    let memo = StepBegun::Memo {
        fence: lease.fence,
        result: charged,
    };
    assert_eq!(store.step_begin(&lease, "charge").await, Ok(memo));
    assert_eq!(store.get(&letter(1).id).await, Ok(Some(letter(1))));
    assert_eq!(store.put(&letter(1)).await, Ok(Put::Already));
}

#[tokio::test]
async fn a_second_open_is_refused_and_says_what_to_do() {
    let (_home, directory) = place();
    let store = open(&directory).unwrap();
    let Err(Error::Unavailable(why)) = open(&directory) else {
        panic!("opened twice");
    };
    for word in [
        directory.to_str().unwrap(),
        "PostgreSQL",
        "Redis",
        "nothing was changed",
    ] {
        assert!(why.contains(word), "{why}");
    }
    drop(store);
    drop(open(&directory).unwrap());
}

#[cfg(unix)]
#[tokio::test]
async fn the_directory_is_for_this_user_alone() {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    let (_home, directory) = place();
    drop(open(&directory).unwrap());
    let mode = directory.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);

    std::fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    let error = open(&directory).unwrap_err();
    assert!(
        matches!(&error, Error::Invalid(why) if why.contains("chmod o-w")),
        "{error}"
    );
}

#[tokio::test]
async fn a_directory_of_something_else_is_left_alone() {
    let (home, _) = place();
    std::fs::write(home.path().join("thesis.tex"), "chapter 1").unwrap();
    let error = open(home.path()).unwrap_err();
    assert!(
        matches!(&error, Error::Invalid(why) if why.contains("thesis.tex")),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn an_interrupted_creation_is_begun_anew() {
    let (_home, directory) = place();
    let half = directory.join("data.new").join("keyspaces");
    std::fs::create_dir_all(half).unwrap();
    settle(&open(&directory).unwrap(), 1).await;
}

#[tokio::test]
async fn an_emptied_store_is_not_taken_for_a_new_one() {
    let (_home, directory) = place();
    settle(&open(&directory).unwrap(), 1).await;
    std::fs::remove_dir_all(directory.join("data")).unwrap();
    let error = open(&directory).unwrap_err();
    assert!(matches!(error, Error::Corrupt(_)), "{error}");
}

#[tokio::test]
async fn a_settled_key_does_not_run_early_when_the_time_is_set_back() {
    let (_home, directory) = place();
    let clock = Arc::new(ManualClock::at(NOON));
    let store = EmbeddedStore::open(&directory, settings(&clock)).unwrap();
    settle(&store, 1).await;
    clock.set_wall(Time(NOON.0 - 3_600_000_000));
    is_replayed(&store, 1).await;
    settle(&store, 2).await;
    drop(store);

    // Reopened while the time of day is an hour behind, and right again later.
    let clock = Arc::new(ManualClock::at(Time(NOON.0 - 3_600_000_000)));
    let store = EmbeddedStore::open(&directory, settings(&clock)).unwrap();
    clock.advance(RETENTION - Duration::from_secs(1));
    is_replayed(&store, 1).await;
    is_replayed(&store, 2).await;
    clock.set_wall(NOON.plus(RETENTION));
    clock.advance(HOUR);
    grant(&store, 1).await;
}

#[tokio::test]
async fn a_sweep_takes_the_steps_along() {
    let (_home, directory) = place();
    let clock = Arc::new(ManualClock::at(NOON));
    let store = Arc::new(EmbeddedStore::open(&directory, settings(&clock)).unwrap());
    let mut runs = tokio::task::JoinSet::new();
    for n in 0..5_000 {
        let store = Arc::clone(&store);
        runs.spawn(async move {
            let lease = grant(&*store, n).await;
            if n % 100 == 0 {
                assert_eq!(store.step_begin(&lease, "charge").await, Ok(StepBegun::Run));
            }
        });
    }
    runs.join_all().await;
    clock.advance(RETENTION * 2);
    let young = grant(&*store, 9_999).await;

    let (mut removed, mut after) = (0, None);
    loop {
        let swept = store.sweep(after.as_ref()).await.unwrap();
        removed += swept.removed;
        after = swept.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(removed, 5_000);
    assert_eq!(records(&*store).await, vec![young.key]);

    // A key that was swept is a new piece of work, steps and all.
    let lease = grant(&*store, 100).await;
    assert_eq!(store.step_begin(&lease, "charge").await, Ok(StepBegun::Run));
}

async fn records(store: &dyn Store) -> Vec<semel::Key> {
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let Page { items, next } = store.list(None, after.as_ref(), 7).await.unwrap();
        assert!(items.len() <= 7);
        keys.extend(items.into_iter().map(|(key, _)| key));
        match next {
            Some(next) => after = Some(next),
            None => return keys,
        }
    }
}

#[tokio::test]
async fn letters_stay_in_order_across_closing_and_a_reopen() {
    let (_home, directory) = place();
    let store = open(&directory).unwrap();
    for n in 0..10 {
        assert_eq!(store.put(&letter(n)).await, Ok(Put::Applied));
    }
    for n in [9, 3] {
        let closed = store.mark(&letter(n).id, Mark::Closed).await;
        assert_eq!(closed, Ok(Marked::Applied));
    }
    drop(store);
    let store = open(&directory).unwrap();
    assert_eq!(store.put(&letter(9)).await, Ok(Put::Closed));
    let next = Letter {
        fence: Fence(2),
        ..letter(3)
    };
    assert_eq!(store.put(&next).await, Ok(Put::Applied));

    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = Letters::list(&store, after.as_ref(), 4).await.unwrap();
        ids.extend(page.items.into_iter().map(|head| head.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let expected: Vec<_> = [0, 1, 2, 4, 5, 6, 7, 8, 3].map(|n| letter(n).id).into();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let (_home, directory) = place();
    let store = open(&directory).unwrap();
    let cursor = Cursor(Bytes::from_static(b"elsewhere"));
    for answer in [
        Store::list(&store, None, Some(&cursor), 1).await.map(drop),
        Letters::list(&store, Some(&cursor), 1).await.map(drop),
        store.sweep(Some(&cursor)).await.map(drop),
    ] {
        assert!(matches!(answer, Err(Error::Invalid(_))), "{answer:?}");
    }
}

#[tokio::test]
async fn of_many_claims_at_once_one_is_granted() {
    let (_home, directory) = place();
    let store = Arc::new(open(&directory).unwrap());
    for (n, in_doubt) in [(1, InDoubt::Retry), (2, InDoubt::Park)] {
        let mut claims = tokio::task::JoinSet::new();
        for _ in 0..256 {
            let store = Arc::clone(&store);
            let claim = semel::protocol::Claim {
                in_doubt,
                ..claim(n)
            };
            claims.spawn(async move { store.claim(&claim).await.unwrap() });
        }
        let answers = claims.join_all().await;
        let count = |is: fn(&&Claimed) -> bool| answers.iter().filter(is).count();
        assert_eq!(count(|answer| matches!(answer, Claimed::Granted(_))), 1);
        assert_eq!(count(|answer| matches!(answer, Claimed::Busy { .. })), 255);
    }
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_granted_again() {
    let (_home, directory) = place();
    let store = open(&directory).unwrap();
    let claim = semel::protocol::Claim {
        owner: Owner([5; 16]),
        ..claim(1)
    };
    let first = store.claim(&claim).await;
    assert!(matches!(first, Ok(Claimed::Granted(_))));
    assert_eq!(store.claim(&claim).await, first);
    // The same with the caller gone before it could hear.
    drop(tokio::time::timeout(Duration::ZERO, store.claim(&claim)).await);
    assert_eq!(store.claim(&claim).await, first);
}

#[tokio::test]
async fn fences_rise_across_forget_and_reopen() {
    let (_home, directory) = place();
    let clock = Arc::new(ManualClock::at(NOON));
    let store = EmbeddedStore::open(&directory, settings(&clock)).unwrap();
    settle(&store, 1).await;
    let before = store.look(&key(1)).await.unwrap().unwrap().fence;
    assert_eq!(store.forget(&key(1)).await, Ok(Acted::Applied));
    drop(store);
    let earlier = Arc::new(ManualClock::at(Time(1)));
    let store = EmbeddedStore::open(&directory, settings(&earlier)).unwrap();
    assert!(grant(&store, 1).await.fence > before);
}
