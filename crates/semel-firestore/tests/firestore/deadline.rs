//! An operation ends when its time is over, whatever the server does; and a dead connection costs one call.

use crate::proxy::{Fate, Proxy};
use crate::support::settings;
use bytes::Bytes;
use semel::protocol::{Claim, Claimed, Held, State};
use semel::store::{RESULT_BYTES_MAX, StoreExt};
use semel::{Error, Fingerprint, Key};
use semel_firestore::FirestoreStore;
use semel_rig::Link;
use std::time::Duration;
use tokio::time::{Instant, timeout};

const HOUR: Duration = Duration::from_secs(3_600);

/// Far beyond the store's own deadline here, for a machine with other things to do.
const GUARD: Duration = Duration::from_secs(60);

fn claim(n: u8) -> Claim {
    Claim::new(Key::from_bytes([n; 32]), Fingerprint::of(&[n]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_that_falls_silent_or_stalls_in_its_answer_does_not_hold_an_operation() {
    let Some(mut settings) = settings() else {
        return;
    };
    let proxy = Proxy::start(&mut settings).await;
    drop(FirestoreStore::connect(settings.clone()).await.unwrap());
    settings.timeout = Duration::from_secs(1);
    let store = FirestoreStore::connect(settings).await.unwrap();
    for (method, fate) in [
        ("/BatchGetDocuments", Fate::Silent),
        ("/BatchGetDocuments", Fate::Stalled),
        ("/Commit", Fate::Silent),
    ] {
        proxy.always(method, fate);
        let claim = claim(1);
        let asked = if method == "/Commit" {
            timeout(GUARD, store.claim(&claim))
                .await
                .map(|it| it.map(drop))
        } else {
            timeout(GUARD, store.look(&claim.key))
                .await
                .map(|it| it.map(drop))
        };
        let error = asked.unwrap().unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("gave no answer within 1s"), "{text}");
        assert!(proxy.made(method) >= 2, "there is time for another turn");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_that_died_without_a_word_costs_one_call() {
    let Some(mut settings) = settings() else {
        return;
    };
    let emulator = settings.emulator_host.clone().unwrap();
    let (_, port) = emulator.rsplit_once(':').unwrap();
    let dying = Link::to(port.parse().unwrap()).await.unwrap();
    let (link, choose) = two_ways(dying.port(), port.parse().unwrap()).await;
    settings.emulator_host = Some(link);
    let store = FirestoreStore::connect(settings.clone()).await.unwrap();
    let key = Key::from_bytes([1; 32]);
    assert_eq!(store.look(&key).await, Ok(None));

    dying.swallow();
    choose.send(true).unwrap();
    let began = Instant::now();
    assert_eq!(store.look(&key).await, Ok(None));
    assert!(began.elapsed() >= settings.timeout / 2, "it was not dead");
    let began = store.calls();
    assert_eq!(store.look(&key).await, Ok(None));
    assert_eq!(store.calls() - began, 1);
}

/// A port that leads to the first of these, and when it is told so to the second.
async fn two_ways(first: u16, second: u16) -> (String, tokio::sync::watch::Sender<bool>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (choose, chosen) = tokio::sync::watch::channel(false);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let port = if *chosen.borrow() { second } else { first };
            tokio::spawn(async move {
                let far = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
                tokio::io::copy_bidirectional(&mut near, &mut far.unwrap()).await
            });
        }
    });
    (address, choose)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn largest_result_is_kept_and_told_within_the_shipped_deadline() {
    let Some(mut settings) = settings() else {
        return;
    };
    let proxy = Proxy::start(&mut settings).await;
    drop(FirestoreStore::connect(settings.clone()).await.unwrap());
    settings.timeout = Duration::from_secs(5);
    let store = FirestoreStore::connect(settings).await.unwrap();
    let claim = claim(1);
    let Claimed::Granted(lease) = store.claim(&claim).await.unwrap() else {
        panic!("not granted");
    };
    let whole = Bytes::from(vec![7; RESULT_BYTES_MAX]);
    let pieces = RESULT_BYTES_MAX.div_ceil(900_000);
    // Late pieces are lost: what is written already is not written again.
    let fates: [Fate; 17] = std::array::from_fn(|n| match n {
        14 | 15 => Fate::RequestLost,
        _ => Fate::Slow(Duration::from_millis(150)),
    });
    proxy.next("/Commit", fates);
    let done = store.complete(&lease, &whole, HOUR).await;
    assert_eq!(done, Ok(Held::Applied(State::Succeeded)));
    assert_eq!(proxy.made("/Commit"), pieces + 1 + 2);
    let kept = store.look(&claim.key).await.unwrap().unwrap();
    assert!(kept.result == Some(whole));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_that_answers_is_kept_when_time_is_over() {
    let Some(mut settings) = settings() else {
        return;
    };
    let proxy = Proxy::start(&mut settings).await;
    drop(FirestoreStore::connect(settings.clone()).await.unwrap());
    settings.timeout = Duration::from_secs(1);
    let store = FirestoreStore::connect(settings).await.unwrap();
    let before = proxy.connections();
    let key = Key::from_bytes([1; 32]);
    for fate in [Fate::Refused(4, "Deadline exceeded."), Fate::Silent] {
        proxy.always("/BatchGetDocuments", fate);
        store.look(&key).await.unwrap_err();
    }
    proxy.next("/BatchGetDocuments", []);
    assert_eq!(store.look(&key).await, Ok(None));
    assert_eq!(proxy.connections(), before);
}
