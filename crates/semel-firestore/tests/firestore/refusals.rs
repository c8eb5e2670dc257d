//! What Google refuses and its emulator does not: the real client hears the status that Google documents.

use crate::proxy::{Fate, Proxy};
use crate::support::{google, settings};
use semel::protocol::Claim;
use semel::store::StoreExt;
use semel::{Error, Fingerprint, Key};
use semel_firestore::FirestoreStore;
use semel_firestore::proto::firestore_client::FirestoreClient;
use semel_firestore::proto::value::ValueType;
use semel_firestore::proto::write::Operation;
use semel_firestore::proto::{CommitRequest, Document, Value, Write};
use std::time::Duration;
use tonic::metadata::MetadataValue;
use tonic::transport::Endpoint;
use tonic::{Code, Request, Status};

/// Whatever a call is told, by the number of its status and Google's words; what we make of it.
const REFUSALS: &[(u32, &str, &[&str])] = &[
    (
        9,
        "The Cloud Firestore API is not available for Firestore in Datastore Mode database \
         projects/shop-prod/databases/(default).",
        &["is in Datastore mode", "name a database in Native mode"],
    ),
    (
        5,
        "The database (default) does not exist for project shop-prod Please visit \
         https://console.cloud.google.com/datastore/setup?project=shop-prod to add a Cloud Datastore or Cloud Firestore database.",
        &[
            "there is no such database",
            "gcloud firestore databases create --database='(default)' --project=shop-prod",
        ],
    ),
    (
        7,
        "Missing or insufficient permissions.",
        &[
            "this account may not read and write documents",
            "roles/datastore.user",
        ],
    ),
    (
        7,
        "Permission denied on resource project shop-prod.",
        &[
            "there is no project with the id shop-prod",
            "an alias of .firebaserc",
            "gcloud projects list",
        ],
    ),
    (
        7,
        "Cloud Firestore API has not been used in project shop-prod before or it is disabled.",
        &["gcloud services enable firestore.googleapis.com --project=shop-prod"],
    ),
    (
        16,
        "Request had invalid authentication credentials.",
        &["does not accept our token", "look at the credentials"],
    ),
    (
        12,
        "unknown service google.firestore.v1.Firestore",
        &["what answers there is no Firestore"],
    ),
];

#[tokio::test]
async fn refusal_of_a_read_names_the_thing_and_what_to_do() {
    for (code, said, says) in REFUSALS {
        let (_ca, google, settings) = google(None);
        google.refuse("", *code, said);
        let error = FirestoreStore::connect(settings).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        let text = error.to_string();
        for part in says
            .iter()
            .chain(&[*said, "database (default) of project shop-prod"])
        {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
        assert!(
            text.contains("nothing was written, a retry is safe and succeeds once that is done"),
            "{text}"
        );
        let calls = google.calls().len();
        assert!(
            calls <= 2,
            "{calls} calls: it tried again what cannot succeed"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn account_that_may_only_read_is_refused_at_the_start() {
    let Some(emulated) = settings() else { return };
    let emulator = emulated.emulator_host;
    let (_ca, google, settings) = google(emulator.as_deref());
    google.refuse("/Commit", 7, "Missing or insufficient permissions.");
    let error = FirestoreStore::connect(settings).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("roles/datastore.user"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn database_that_takes_no_writes_is_not_asked_again_and_again() {
    let Some(emulated) = settings() else { return };
    let emulator = emulated.emulator_host;
    for (code, said, says) in REFUSALS.iter().filter(|(code, ..)| [5, 9].contains(code)) {
        let (_ca, google, settings) = google(emulator.as_deref());
        google.refuse("/Commit", *code, said);
        let error = FirestoreStore::connect(settings).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        assert!(error.to_string().contains(says[0]), "{error}");
        let calls = google.calls().len();
        assert!(calls <= 3, "{calls} calls");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lock_is_named_although_the_last_call_hears_nothing() {
    let Some(mut settings) = settings() else {
        return;
    };
    let proxy = Proxy::start(&mut settings).await;
    drop(FirestoreStore::connect(settings.clone()).await.unwrap());
    settings.timeout = Duration::from_secs(1);
    let store = FirestoreStore::connect(settings).await.unwrap();
    let claim = Claim::new(Key::from_bytes([1; 32]), Fingerprint::of(b"x"));
    // What is locked is answered late, so the last call is given up; or it never comes to that.
    let locked = Fate::Refused(10, "Aborted due to cross-transaction contention.");
    for (last, fate) in [
        (
            Fate::Silent,
            "whether an earlier try was written is unknown",
        ),
        (locked.clone(), "nothing was written"),
    ] {
        proxy.next("/Commit", [locked.clone()]);
        proxy.then(last);
        let error = store.claim(&claim).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        let text = error.to_string();
        for part in [
            "is locked by somebody's transaction (Aborted due to cross-transaction contention.)",
            "leaves its locks for up to 60 s",
            fate,
        ] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusal_after_a_try_that_nobody_heard_of_leaves_it_unknown() {
    let Some(mut settings) = settings() else {
        return;
    };
    let proxy = Proxy::start(&mut settings).await;
    let store = FirestoreStore::connect(settings).await.unwrap();
    let claim = Claim::new(Key::from_bytes([1; 32]), Fingerprint::of(b"x"));
    let refused = Fate::Refused(7, "Missing or insufficient permissions.");
    proxy.next("/Commit", [Fate::RequestLost, refused]);
    let error = store.claim(&claim).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("roles/datastore.user")
            && text.contains("an earlier try was written is unknown"),
        "{text}"
    );
    assert!(!text.contains("nothing was written"), "{text}");
}

/// The emulator's own words about a document that is too large, told to the store about its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn document_over_the_limit_is_refused_and_named() {
    let Some(emulated) = settings() else { return };
    let emulator = emulated.emulator_host.unwrap();
    let (_ca, google, settings) = google(Some(&emulator));
    let store = FirestoreStore::connect(settings).await.unwrap();
    // A value that is too large, and values that are so together.
    for sizes in [&[1_048_488][..], &[600_000, 600_000]] {
        let refused = commit_too_large(&emulator, &emulated.project, sizes).await;
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        google.refuse("/Commit", refused.code() as u32, refused.message());
        let claim = Claim::new(Key::from_bytes([1; 32]), Fingerprint::of(b"x"));
        let error = store.claim(&claim).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        let text = error.to_string();
        for part in [
            refused.message(),
            "over its limit of 1 MiB",
            "nothing was written, keep less of it before you retry",
        ] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
}

/// Writes a document with values of these sizes.
async fn commit_too_large(emulator: &str, project: &str, sizes: &[usize]) -> Status {
    let endpoint = Endpoint::from_shared(format!("http://{emulator}")).unwrap();
    let mut client = FirestoreClient::new(endpoint.connect().await.unwrap());
    let database = format!("projects/{project}/databases/(default)");
    let fields = sizes.iter().enumerate().map(|(n, size)| {
        let value_type = Some(ValueType::BytesValue(vec![0; *size].into()));
        (format!("field{n}"), Value { value_type })
    });
    let document = Document {
        name: format!("{database}/documents/large/one"),
        fields: fields.collect(),
        ..Document::default()
    };
    let write = Write {
        operation: Some(Operation::Update(document)),
        ..Write::default()
    };
    let writes = vec![write];
    let mut request = Request::new(CommitRequest { database, writes });
    let owner = MetadataValue::from_static("Bearer owner");
    request.metadata_mut().insert("authorization", owner);
    client.commit(request).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn right_that_is_taken_away_later_is_denied_until_it_is_given_back() {
    let Some(emulated) = settings() else { return };
    let (_ca, google, settings) = google(emulated.emulator_host.as_deref());
    let store = FirestoreStore::connect(settings).await.unwrap();
    google.refuse("", 7, "Missing or insufficient permissions.");
    let key = Key::from_bytes([1; 32]);
    let error = store.look(&key).await.unwrap_err();
    assert!(matches!(error, Error::Denied(_)), "{error}");
    google.refuse("/Nothing", 0, "");
    assert_eq!(store.look(&key).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_are_disabled_are_told_at_once() {
    let Some(mut settings) = settings() else {
        return;
    };
    let proxy = Proxy::start(&mut settings).await;
    let store = FirestoreStore::connect(settings).await.unwrap();
    let said = "Writes are disabled for this database.";
    proxy.always("/Commit", Fate::Refused(9, said));
    let claim = Claim::new(Key::from_bytes([1; 32]), Fingerprint::of(b"x"));
    let error = store.claim(&claim).await.unwrap_err();
    assert!(matches!(error, Error::Denied(_)), "{error}");
    assert!(error.to_string().contains(said), "{error}");
    assert_eq!(proxy.made("/Commit"), 2);
    let ready = store.ready().await;
    assert!(matches!(ready, Err(Error::Denied(_))), "{ready:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_is_not_ready_while_its_database_is_gone() {
    let Some(mut settings) = settings() else {
        return;
    };
    let proxy = Proxy::start(&mut settings).await;
    let store = FirestoreStore::connect(settings).await.unwrap();
    let gone = Fate::Refused(5, "The database (default) does not exist.");
    proxy.always("/BatchGetDocuments", gone.clone());
    let error = store.look(&Key::from_bytes([1; 32])).await.unwrap_err();
    assert!(matches!(error, Error::Denied(_)), "{error}");
    proxy.always("/Commit", gone);
    let ready = store.ready().await;
    assert!(matches!(ready, Err(Error::Denied(_))), "{ready:?}");
}
