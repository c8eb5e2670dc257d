//! What only somebody with hands on the engine can bring about.

use super::{EmbeddedSettings, EmbeddedStore};
use crate::codec;
use bytes::Bytes;
use semel::record::{Claim, Claimed, Held, InDoubt, Owner, State};
use semel::{Error, Fingerprint, Key, Store};
use std::time::Duration;

fn claim(key: Key) -> Claim {
    Claim {
        key,
        fingerprint: Fingerprint::off(),
        owner: Owner::random(),
        lease: Duration::from_secs(1),
        retention: Duration::from_secs(1),
        in_doubt: InDoubt::Retry,
        max_attempts: None,
    }
}

#[tokio::test]
async fn a_row_that_fails_its_checksum_is_neither_replayed_nor_run() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("store");
    let store = EmbeddedStore::open(&directory, EmbeddedSettings::default()).unwrap();
    let key = Key::from_bytes([1; 32]);
    let Ok(Claimed::Granted(lease)) = store.claim(&claim(key)).await else {
        panic!("not granted");
    };
    let done = Bytes::from_static(b"done");
    let held = store.complete(&lease, &done, Duration::from_secs(1)).await;
    assert_eq!(held, Ok(Held::Applied(State::Succeeded)));

    // Sound to the engine, but not what was written: as a fault in memory leaves it.
    let at = codec::record(&key);
    let mut bytes = store.engine.get(&at).unwrap().unwrap().to_vec();
    bytes[1] = State::Waiting.number();
    store.engine.keyspace.insert(at, bytes).unwrap();

    let answers = [
        store.claim(&claim(key)).await.map(drop),
        store.look(&key).await.map(drop),
        store.forget(&key).await.map(drop),
        store.list(None, None, 1).await.map(drop),
    ];
    for answer in answers {
        let Err(Error::Corrupt(why)) = answer else {
            panic!("{answer:?}");
        };
        let directory = directory.to_string_lossy();
        for word in [&*directory, "keyspace semel", &key.to_string()] {
            assert!(why.contains(word), "{why}");
        }
    }
    let other = store.claim(&claim(Key::from_bytes([2; 32]))).await;
    assert!(matches!(other, Ok(Claimed::Granted(_))));
}
