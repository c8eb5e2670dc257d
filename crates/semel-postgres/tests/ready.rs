//! A server that takes no writes is not ready; one that says nothing is unavailable while the sender still listens.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

mod support;

use semel::slots::Slots;
use semel::store::{Letters, StoreExt};
use semel::work::Work;
use semel::{Ended, Error, Fingerprint, Key, Outcome, Semel};
use std::time::Duration;
use support::Bed;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

#[tokio::test]
async fn read_only_server_is_not_ready_until_it_takes_writes_again() {
    let bed = Bed::new("ready").await;
    bed.store.ready().await.unwrap();
    let read_only = |how: &str| {
        format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = {how}', \
             current_database()); PERFORM pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid(); END $$"
        )
    };
    bed.execute(&read_only("on")).await;
    while bed.store.ready().await.is_ok() {
        tokio::task::yield_now().await;
    }
    let why = bed.store.ready().await.unwrap_err().to_string();
    assert!(why.contains("read-only"), "{why}");
    // It still reads: only a write can tell.
    Letters::list(bed.store.as_ref(), None, 1).await.unwrap();

    let admin = support::connect(&bed.url).await;
    let write = "SET default_transaction_read_only = off";
    admin.batch_execute(write).await.unwrap();
    admin.batch_execute(&read_only("off")).await.unwrap();
    while bed.store.ready().await.is_err() {
        tokio::task::yield_now().await;
    }
}

/// Hands bytes on until it is told to swallow them.
async fn proxy(to: String) -> (u16, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (swallow, swallows) = watch::channel(false);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let Ok(far) = TcpStream::connect(&to).await else {
                return;
            };
            let (mut from_near, mut to_near) = near.into_split();
            let (mut from_far, mut to_far) = far.into_split();
            let (out, back) = (swallows.clone(), swallows.clone());
            tokio::spawn(async move { pass(&mut from_near, &mut to_far, &out).await });
            tokio::spawn(async move { pass(&mut from_far, &mut to_near, &back).await });
        }
    });
    (port, swallow)
}

async fn pass(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    swallows: &watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if !*swallows.borrow() && to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

fn work(n: u8, slots: &Slots) -> Work {
    Work::new(Key::from_bytes([n; 32]), Fingerprint::of(&[n])).slots(slots)
}

#[tokio::test]
async fn silent_server_is_unavailable_within_the_senders_deadline() {
    // What Pub/Sub waits when nothing else is set.
    const DEADLINE: Duration = Duration::from_secs(10);
    let direct = testbed::fresh_database("silent").unwrap();
    let config: tokio_postgres::Config = direct.parse().unwrap();
    let server = config.get_ports().first().copied().unwrap();
    let (port, swallow) = proxy(format!("127.0.0.1:{server}")).await;
    let url = direct.replace(&format!(":{server}/"), &format!(":{port}/"));
    assert_ne!(url, direct);
    let semel = Semel::new(support::store_at(&url).await);
    let slots = Slots::new(1, 1);
    let done = semel.run(work(1, &slots), |_| async { Ok(Outcome::ok("done")) });
    let ended = done.await.unwrap();
    assert!(matches!(ended, Ended::Ran(_)), "{ended:?}");

    swallow.send_replace(true);
    let begun = Instant::now();
    let ended = semel.run(work(2, &slots), |_| async { Ok(Outcome::ok("done")) });
    let ended = ended.await;
    assert!(matches!(ended, Err(Error::Unavailable(_))), "{ended:?}");
    assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    assert_eq!(slots.runs(), 0, "the slot is given back");
}
