//! The numbers: a million records and ten thousand letters, and a page that answers nevertheless. Only with
//! `SEMEL_TEST_LONG=1`; `SEMEL_TEST_RECORDS` takes another number for a quick look.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it says what it measured, and whether it was run"
)]

use crate::support::prelude::*;
use crate::support::settings;
use futures_util::{StreamExt, stream};
use semel::key::{Delivered, Scope};
use semel::letter::{Letter, LetterId, Put};
use semel::protocol::{Claim, Claimed, Fence};
use semel::store::Letters;
use semel::{Fingerprint, Key, KeyRule};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use semel_gate::Server;
use semel_gate::letters::StoredDelivery;
use semel_postgres::{PostgresSettings, PostgresStore};
use tokio::sync::oneshot;

const RECORDS: u64 = 1_000_000;
const LETTERS: u64 = 10_000;
const OVERVIEW_WITHIN: Duration = Duration::from_millis(100);
const SEARCH_WITHIN: Duration = Duration::from_millis(20);

/// How many calls are in hand while the store is filled.
const AT_ONCE: usize = 512;

fn long() -> bool {
    let long = std::env::var_os("SEMEL_TEST_LONG").is_some();
    if !long {
        println!("a million records: not tested, SEMEL_TEST_LONG is not set");
    }
    long
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_records_in_the_embedded_store() {
    if long() {
        let directory = tempfile::tempdir().unwrap();
        let opened = EmbeddedStore::open(directory.path(), EmbeddedSettings::default());
        measure("embedded", Arc::new(opened.unwrap())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_records_in_postgresql() {
    if long() {
        let url = testbed::fresh_database("million").unwrap();
        testbed::query(
            &url,
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$",
        )
        .unwrap();
        let store = PostgresStore::connect(PostgresSettings::new(&url)).await;
        measure("PostgreSQL", Arc::new(store.unwrap())).await;
    }
}

async fn measure(name: &str, store: Arc<dyn Letters>) {
    let given = std::env::var("SEMEL_TEST_RECORDS").ok();
    let records = given.map_or(RECORDS, |it| it.parse().unwrap());
    fill(&store, records).await;
    let handler = Handler::start().await;
    let mut settings = settings(handler.address);
    keyed_by(&mut settings.routes[0], "/order_id");
    let bound = Server::bind(settings, Arc::clone(&store)).await.unwrap();
    let admin = bound.admin_address().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(bound.serve(async { drop(stopped.await) }));

    let (first, _) = timed(admin, "/ui/", 200).await;
    let mut slowest = first;
    let counted = format!("{} records in the store", commas(records));
    let begun = Instant::now();
    loop {
        let (took, page) = timed(admin, "/ui/", 200).await;
        slowest = slowest.max(took);
        if page.contains(&counted) {
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(600),
            "it is never counted"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let walk = begun.elapsed();
    let mut searches = Vec::new();
    for number in 0..50 {
        let order = number * (records / 50);
        searches.push(
            timed(admin, &format!("/ui/search?q=A-{order}"), 303)
                .await
                .0,
        );
    }
    searches.sort_unstable();
    let (letters, _) = timed(admin, "/ui/letters", 200).await;
    println!(
        "{name}, {records} records, {LETTERS} letters: first overview {first:?}, slowest overview {slowest:?}, counted \
         within {walk:?}, search by parts median {:?} slowest {:?}, letters {letters:?}",
        searches[searches.len() / 2],
        searches[searches.len() - 1]
    );
    assert!(slowest <= OVERVIEW_WITHIN, "{name}: {slowest:?}");
    assert!(
        searches[searches.len() / 2] <= SEARCH_WITHIN,
        "{name}: {searches:?}"
    );
    drop(stop);
    drop(served.await.unwrap());
}

async fn timed(admin: SocketAddr, path: &str, status: u16) -> (Duration, String) {
    let begun = Instant::now();
    let said = Ask::get(path).send(admin).await;
    let took = begun.elapsed();
    assert_eq!(said.status, status, "{path}: {said:?}");
    (took, said.text().to_owned())
}

/// Most have succeeded, a few are running.
async fn fill(store: &Arc<dyn Letters>, records: u64) {
    let rule: KeyRule = "/order_id".parse().unwrap();
    let scope = Scope::new("test", "work");
    let key = |number: u64| {
        let payload = format!("{{\"order_id\":\"A-{number}\"}}");
        rule.key(&scope, &Delivered::payload(payload.as_bytes()))
            .unwrap()
    };
    let settle = async |number: u64| {
        let claim = Claim {
            retention: Duration::from_secs(86_400),
            label: format!("{{\"route\":\"work\",\"parts\":{{\"order_id\":\"A-{number}\"}}}}")
                .into(),
            ..Claim::new(key(number), Fingerprint::of(b"x"))
        };
        let Claimed::Granted(lease) = store.claim(&claim).await.unwrap() else {
            panic!("a new key is granted")
        };
        if !number.is_multiple_of(1000) {
            let result = Outcome::ok("done").encode();
            drop(
                store
                    .complete(&lease, &result, claim.retention)
                    .await
                    .unwrap(),
            );
        }
    };
    stream::iter(0..records)
        .for_each_concurrent(AT_ONCE, settle)
        .await;
    let keep =
        async |number: u64| assert_eq!(store.put(&letter(number)).await.unwrap(), Put::Applied);
    stream::iter(0..LETTERS).for_each_concurrent(64, keep).await;
}

fn letter(number: u64) -> Letter {
    let request = Request::post("/work").header("x-cloudtasks-taskname", format!("t-{number}"));
    let request = request.body(Bytes::from(vec![b'x'; 300])).unwrap();
    let mut id = [0; 32];
    id[..8].copy_from_slice(&number.to_be_bytes());
    let why = format!("cause {}", number % 7);
    Letter {
        id: LetterId(id),
        key: Some(Key::from_bytes(id)),
        route: "work".into(),
        reason: Reason::Failed,
        fence: Fence(1),
        retention: Duration::from_secs(3600),
        redriven: false,
        alarmed: false,
        delivery: StoredDelivery::of("work", &request, why).encode(),
    }
}

fn commas(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
