//! What a sweep removes, and what it leaves, as the database has it.

use crate::proxy::{Fate, Proxy};
use crate::raw::Raw;
use crate::support::{Aged, settings};
use bytes::Bytes;
use semel::letter::{Letter, LetterId, Put, Reason};
use semel::protocol::{Claim, Claimed, Fence, Held, Lease, State, StepBegun};
use semel::store::{Letters, StoreExt};
use semel::{Error, Fingerprint, Key, Store};
use semel_firestore::proto::value::ValueType;
use semel_firestore::{FirestoreSettings, FirestoreStore};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

async fn grant(store: &FirestoreStore, n: u8) -> Lease {
    let claim = Claim {
        lease: HOUR,
        retention: HOUR,
        ..Claim::new(Key::from_bytes([n; 32]), Fingerprint::of(&[n]))
    };
    let Claimed::Granted(lease) = store.claim(&claim).await.unwrap() else {
        panic!("not granted");
    };
    lease
}

async fn sweep(store: &FirestoreStore) -> u64 {
    let (mut after, mut removed) = (None, 0);
    loop {
        let swept = store.sweep(after.as_ref()).await.unwrap();
        removed += swept.removed;
        after = swept.next;
        if after.is_none() {
            return removed;
        }
    }
}

#[tokio::test]
async fn what_nothing_names_any_more_is_removed_and_nothing_else() {
    let Some(settings) = settings() else { return };
    let mut raw = Raw::open(&settings).await;
    let Aged(store) = Aged::connect(settings).await;
    let lease = grant(&store, 1).await;
    assert_eq!(store.step_begin(&lease, "charge").await, Ok(StepBegun::Run));
    let large = Bytes::from(vec![7; 1_000_000]);
    let done = store.complete(&lease, &large, 3 * HOUR).await;
    assert_eq!(done, Ok(Held::Applied(State::Succeeded)));
    raw.leave_part(&lease.key).await;
    assert_eq!(raw.count("semel_parts").await, 3);

    // A part may be about to be named; after an hour it is left behind.
    assert_eq!(sweep(&store).await, 0);
    assert_eq!(raw.count("semel_parts").await, 3);
    store.let_pass(2 * HOUR);
    assert_eq!(sweep(&store).await, 0);
    assert_eq!(raw.count("semel_parts").await, 2);
    assert_eq!(raw.count("semel_steps").await, 1);
    let kept = store.look(&lease.key).await.unwrap().unwrap().result;
    assert!(kept == Some(large), "the result is whole");

    // A day after its end, the record goes, and with it what it named.
    store.let_pass(30 * HOUR);
    assert_eq!(sweep(&store).await, 1);
    for collection in ["semel_records", "semel_parts", "semel_steps"] {
        assert_eq!(raw.count(collection).await, 0, "{collection}");
    }
}

async fn begins(store: &FirestoreStore) -> bool {
    store.sweep(None).await.unwrap().next.is_some()
}

/// A sweep a day, as it is shipped.
fn daily() -> Option<FirestoreSettings> {
    let mut settings = settings()?;
    settings.sweep_every = FirestoreSettings::new("shop-prod").sweep_every;
    Some(settings)
}

#[tokio::test]
async fn one_sweep_a_day_is_enough_for_all() {
    let Some(settings) = daily() else { return };
    let one = FirestoreStore::connect(settings.clone()).await.unwrap();
    let other = FirestoreStore::connect(settings).await.unwrap();
    sweep(&one).await;
    let before = other.calls();
    assert!(!begins(&other).await && !begins(&other).await && !begins(&one).await);
    assert_eq!(other.calls() - before, 1, "it reads when the next is due");
    other.let_pass(25 * HOUR);
    assert!(begins(&other).await);
}

#[tokio::test]
async fn sweep_that_is_left_goes_on_where_it_was() {
    let Some(mut settings) = daily() else { return };
    let proxy = Proxy::start(&mut settings).await;
    let one = FirestoreStore::connect(settings.clone()).await.unwrap();
    let other = FirestoreStore::connect(settings).await.unwrap();
    // Its turn is taken, although the answer is lost.
    proxy.next("/Commit", [Fate::AnswerLost]);
    let first = one.sweep(None).await.unwrap().next;
    assert_eq!(first.as_ref().unwrap().0, "s");
    // What goes wrong on the way costs no more than the window.
    proxy.always("/RunQuery", Fate::Refused(7, "Missing permissions."));
    one.sweep(first.as_ref()).await.unwrap_err();
    proxy.next("/RunQuery", []);
    assert!(!begins(&other).await, "it is still one's");
    let second = one.sweep(None).await.unwrap().next;
    assert_eq!(second.as_ref().unwrap().0, "p");
    // One is gone for a while, and the other goes on.
    other.let_pass(HOUR / 4);
    let third = other.sweep(None).await.unwrap().next;
    assert_eq!(third.as_ref().unwrap().0, "l");
    let lost = one.sweep(second.as_ref()).await.unwrap();
    assert_eq!(lost.next, None, "it is the other's now");
    assert_eq!(other.sweep(None).await.unwrap().next.unwrap().0, "i");
    assert!(!begins(&other).await, "it is the last window");
    other.let_pass(20 * HOUR);
    assert!(!begins(&other).await);
}

#[tokio::test]
async fn turn_that_makes_no_sense_or_is_removed_stops_no_sweep() {
    let Some(settings) = daily() else { return };
    let mut raw = Raw::open(&settings).await;
    for wrong in [
        ValueType::StringValue("soon".into()),
        ValueType::IntegerValue(1 << 62),
        ValueType::IntegerValue(-1),
    ] {
        let store = FirestoreStore::connect(settings.clone()).await.unwrap();
        raw.write_values("semel_index/sweep", &[("expires_at", wrong)])
            .await;
        assert!(begins(&store).await);
    }
    raw.delete("semel_index/sweep").await;
    let store = FirestoreStore::connect(settings).await.unwrap();
    sweep(&store).await;
    assert!(!begins(&store).await);
    // Whoever removes it has a sweep within the hour.
    raw.delete("semel_index/sweep").await;
    store.let_pass(HOUR);
    assert!(begins(&store).await);
}

#[tokio::test]
async fn what_somebody_else_put_among_the_records_stops_nobody() {
    let Some(settings) = settings() else { return };
    let mut raw = Raw::open(&settings).await;
    let store = FirestoreStore::connect(settings).await.unwrap();
    let lease = grant(&store, 1).await;
    let key = Key::from_bytes([0; 32]);
    for path in [
        "semel_records/! a.note".to_owned(),
        "semel_records/\u{1f4a5}".to_owned(),
        format!("semel_records/{key}"),
    ] {
        raw.write(&path, &[("state", "mine".to_owned())]).await;
    }
    let (mut after, mut listed) = (None, Vec::new());
    loop {
        let page = Store::list(&store, None, after.as_ref(), 1).await.unwrap();
        listed.extend(page.items.iter().map(|(key, _)| *key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, [lease.key]);
    store.let_pass(50 * HOUR);
    assert_eq!(sweep(&store).await, 1);
    assert_eq!(raw.count("semel_records").await, 3);
    // Whoever asks for it hears what is wrong with it.
    let error = store.look(&key).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt(_)), "{error}");
}

/// So many that a window ends among them.
#[tokio::test]
async fn sweep_goes_on_after_names_that_are_none_of_ours() {
    let Some(settings) = settings() else { return };
    let mut raw = Raw::open(&settings).await;
    let store = FirestoreStore::connect(settings).await.unwrap();
    for n in 0..300 {
        let path = format!("semel_records/!a.{n:05}");
        raw.write(&path, &[("state", "mine".to_owned())]).await;
    }
    grant(&store, 1).await;
    store.let_pass(50 * HOUR);
    assert_eq!(sweep(&store).await, 1);
}

#[tokio::test]
async fn parts_that_somebody_else_put_there_stop_no_sweep() {
    let Some(settings) = settings() else { return };
    let mut raw = Raw::open(&settings).await;
    let store = FirestoreStore::connect(settings).await.unwrap();
    for of in ["5", "semel_index/5", "semel_records/..", "a/b/c", ""] {
        let path = format!("semel_parts/of-{}", hex::encode(of));
        raw.write(&path, &[("of", of.to_owned())]).await;
    }
    let number = ValueType::IntegerValue(5);
    raw.write("semel_parts/none", &[]).await;
    raw.write_values("semel_parts/number", &[("of", number.clone())])
        .await;
    raw.write_values("semel_records/x", &[("part_id", number)])
        .await;
    raw.write("semel_parts/x_0", &[("of", "semel_records/x".to_owned())])
        .await;
    raw.leave_part(&Key::from_bytes([1; 32])).await;
    assert_eq!(raw.count("semel_parts").await, 9);
    store.let_pass(2 * HOUR);
    sweep(&store).await;
    assert_eq!(raw.count("semel_parts").await, 8, "only ours is removed");
}

#[tokio::test]
async fn letters_that_somebody_else_put_there_stop_no_list() {
    let Some(settings) = settings() else { return };
    let mut raw = Raw::open(&settings).await;
    let store = FirestoreStore::connect(settings).await.unwrap();
    for (id, time) in [
        ("null", ValueType::NullValue(0)),
        ("a.b", ValueType::IntegerValue(-1)),
        ("half", ValueType::DoubleValue(0.5)),
        ("text", ValueType::StringValue("yesterday".into())),
        ("later", ValueType::StringValue("x".repeat(1_000))),
    ] {
        raw.write_values(&format!("semel_letters/{id}"), &[("created_at", time)])
            .await;
    }
    let letter = Letter {
        id: LetterId([1; 32]),
        key: None,
        route: "/orders".into(),
        reason: Reason::Failed,
        fence: Fence(0),
        retention: HOUR,
        redriven: false,
        alarmed: false,
        delivery: Bytes::from_static(b"x"),
    };
    assert_eq!(store.put(&letter).await, Ok(Put::Applied));
    for limit in 1..=7 {
        let (mut after, mut listed) = (None, Vec::new());
        loop {
            let page = Letters::list(&store, after.as_ref(), limit).await.unwrap();
            listed.extend(page.items.into_iter().map(|it| it.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, [letter.id], "{limit} at a time");
    }
}

#[tokio::test]
async fn readiness_is_asked_for_where_no_write_has_shown_it() {
    let Some(mut settings) = settings() else {
        return;
    };
    let proxy = Proxy::start(&mut settings).await;
    let store = FirestoreStore::connect(settings).await.unwrap();
    let before = store.calls();
    for _ in 0..3 {
        store.ready().await.unwrap();
    }
    assert_eq!(store.calls(), before, "connecting has written");
    // Once something has gone wrong, it is asked for until it is right again.
    let refused = Fate::Refused(7, "Missing or insufficient permissions.");
    proxy.always("/BatchGetDocuments", refused.clone());
    let key = Key::from_bytes([1; 32]);
    assert!(matches!(store.look(&key).await, Err(Error::Denied(_))));
    proxy.always("/Commit", refused);
    assert!(matches!(store.ready().await, Err(Error::Denied(_))));
    proxy.next("/Commit", []);
    store.ready().await.unwrap();
    store.ready().await.unwrap();
    assert_eq!(proxy.made("/Commit"), 1);
}
