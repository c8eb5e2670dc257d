//! What stands in the table of letters, behind the store.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use semel::Store;
use semel::letter::{Letter, LetterId, Mark, Marked, Put, Reason};
use semel::protocol::Fence;
use semel::store::Letters;
use std::time::Duration;
use support::{Bed, store_at};

fn letter(n: u8, retention: Duration) -> Letter {
    Letter {
        id: LetterId([n; 32]),
        key: None,
        route: "orders".into(),
        reason: Reason::Invalid,
        fence: Fence(0),
        retention,
        redriven: false,
        alarmed: false,
        delivery: vec![n; 100_000].into(),
    }
}

#[tokio::test]
async fn a_tombstone_keeps_no_delivery_and_is_swept_when_it_has_expired() {
    let bed = Bed::new("letters_tombstone").await;
    let brief = letter(1, Duration::ZERO);
    let long = letter(2, Duration::from_secs(3600));
    for letter in [&brief, &long] {
        assert_eq!(bed.store.put(letter).await, Ok(Put::Applied));
        let closed = bed.store.mark(&letter.id, Mark::Closed).await;
        assert_eq!(closed, Ok(Marked::Applied));
    }
    let kept: i64 = bed
        .ask("SELECT coalesce(sum(octet_length(delivery)), 0)::bigint FROM semel.letter")
        .await;
    assert_eq!(kept, 0, "a tombstone has no delivery");
    bed.store.sweep(None).await.unwrap();
    let rows: i64 = bed.ask("SELECT count(*) FROM semel.letter").await;
    assert_eq!(rows, 1, "the one that has expired is gone");
    assert_eq!(bed.store.put(&brief).await, Ok(Put::Applied));
    assert_eq!(bed.store.put(&long).await, Ok(Put::Closed));
}

/// Two reasons have become one.
#[tokio::test]
async fn letters_of_unfinished_work_are_still_there() {
    let bed = Bed::new("letters_unfinished").await;
    // The schema as version 11 left it.
    bed.execute(
        "ALTER TABLE semel.letter DROP COLUMN alarmed, DROP CONSTRAINT letter_reason_check;
         ALTER TABLE semel.letter ADD CONSTRAINT letter_reason_check CHECK (reason BETWEEN 1 AND 6);
         ALTER TABLE semel.rec DROP COLUMN doubted_at;
         DELETE FROM semel.migration WHERE version > 11;
         INSERT INTO semel.letter (id, reason, delivery) VALUES (sha256('one'), 5, ''), (sha256('other'), 6, '');",
    )
    .await;
    let store = store_at(&bed.url).await;
    let listed = Letters::list(&store, None, 10).await.unwrap().items;
    let reasons: Vec<_> = listed.iter().map(|it| (it.reason, it.alarmed)).collect();
    assert_eq!(reasons, [(Reason::Unfinished, false); 2]);
}

#[tokio::test]
async fn letters_of_the_schema_before_are_still_there() {
    let bed = Bed::new("letters_migrated").await;
    // The schema as version 2 left it, with one letter.
    bed.sql
        .batch_execute(
            "DROP INDEX semel.letter_open, semel.letter_closed;
             ALTER TABLE semel.letter DROP COLUMN route, DROP COLUMN fence, DROP COLUMN retention_us,
                                      DROP COLUMN redriven, DROP COLUMN alarmed, DROP COLUMN expires_at;
             CREATE INDEX letter_created ON semel.letter (created_at, id);
             DELETE FROM semel.migration WHERE version > 2;
             INSERT INTO semel.letter (id, reason, delivery) VALUES (sha256('old'), 4, 'a delivery');",
        )
        .await
        .unwrap();
    let store = store_at(&bed.url).await;
    let listed = Letters::list(&store, None, 10).await.unwrap().items;
    assert_eq!(listed.len(), 1, "{listed:?}");
    let letter = store.get(&listed[0].id).await.unwrap().unwrap();
    assert_eq!(letter.delivery.as_ref(), b"a delivery");
    assert_eq!((letter.fence, letter.redriven), (Fence(0), false));
    let closed = store.mark(&letter.id, Mark::Closed).await;
    assert_eq!(closed, Ok(Marked::Applied));
    assert_eq!(store.put(&letter).await, Ok(Put::Closed));
}
