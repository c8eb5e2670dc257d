//! What goes wrong says what to do.

use crate::support::settings;
use semel::protocol::Claim;
use semel::store::StoreExt;
use semel::{Error, Fingerprint, Key};
use semel_firestore::{FirestoreSettings, FirestoreStore};
use std::time::Duration;
use testbed::Firestore;

#[tokio::test]
async fn emulator_that_is_not_there_is_named() {
    let port = testbed::free_port().unwrap();
    let mut settings = FirestoreSettings::new("test-nobody");
    settings.emulator_host = Some(format!("127.0.0.1:{port}"));
    settings.timeout = Duration::from_millis(300);
    let error = FirestoreStore::connect(settings).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    let text = error.to_string();
    for word in [
        &port.to_string(),
        "is not there",
        "FIRESTORE_EMULATOR_HOST",
        "refused",
        "a retry is safe",
    ] {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

#[tokio::test]
async fn emulator_that_comes_back_is_used_again() {
    if settings().is_none() {
        return;
    }
    let mut emulator = Firestore::start().unwrap();
    let mut settings = FirestoreSettings::new("test-restart");
    settings.emulator_host = Some(emulator.host());
    // An emulator takes its time for the first answer.
    settings.timeout = Duration::from_secs(20);
    let store = FirestoreStore::connect(settings).await.unwrap();
    let claim = Claim::new(Key::from_bytes([1; 32]), Fingerprint::of(b"x"));
    drop(store.claim(&claim).await.unwrap());
    emulator.restart().unwrap();
    store.ready().await.unwrap();
    assert_eq!(
        store.look(&claim.key).await.unwrap(),
        None,
        "it forgot everything"
    );
}
