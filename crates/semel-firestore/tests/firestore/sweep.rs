//! What a sweep removes, and what it leaves, as the database has it.

use crate::support::{Aged, settings};
use bytes::Bytes;
use semel::protocol::{Claim, Claimed, Held, Lease, State, StepBegun};
use semel::store::StoreExt;
use semel::{Fingerprint, Key, Store};
use semel_firestore::proto::firestore_client::FirestoreClient;
use semel_firestore::proto::run_query_request::QueryType;
use semel_firestore::proto::structured_query::CollectionSelector;
use semel_firestore::proto::value::ValueType;
use semel_firestore::proto::write::Operation;
use semel_firestore::proto::{
    CommitRequest, Document, RunQueryRequest, StructuredQuery, Value, Write,
};
use semel_firestore::{FirestoreSettings, FirestoreStore};
use std::time::Duration;
use tonic::Request;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};

const HOUR: Duration = Duration::from_secs(3_600);

/// The database past the store.
struct Raw {
    client: FirestoreClient<Channel>,
    database: String,
}

impl Raw {
    async fn open(settings: &FirestoreSettings) -> Self {
        let host = settings.emulator_host.as_ref().unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{host}")).unwrap();
        Self {
            client: FirestoreClient::new(endpoint.connect().await.unwrap()),
            database: format!("projects/{}/databases/(default)", settings.project),
        }
    }

    /// How many documents a collection has.
    async fn count(&mut self, collection: &str) -> usize {
        let query = StructuredQuery {
            from: vec![CollectionSelector {
                collection_id: collection.into(),
            }],
            ..StructuredQuery::default()
        };
        let request = as_owner(RunQueryRequest {
            parent: format!("{}/documents", self.database),
            query_type: Some(QueryType::StructuredQuery(query)),
        });
        let mut rows = self.client.run_query(request).await.unwrap().into_inner();
        let mut count = 0;
        while let Some(row) = rows.message().await.unwrap() {
            count += usize::from(row.document.is_some());
        }
        count
    }

    /// A part as a process leaves it that dies before it names it.
    async fn leave_part(&mut self, of: &Key) {
        let text = ValueType::StringValue(format!("semel_records/{of}"));
        let of = Value {
            value_type: Some(text),
        };
        let part = Document {
            name: format!("{}/documents/semel_parts/left_0", self.database),
            fields: [("of".to_owned(), of)].into(),
            create_time: None,
            update_time: None,
        };
        let request = as_owner(CommitRequest {
            database: self.database.clone(),
            writes: vec![Write {
                operation: Some(Operation::Update(part)),
                update_mask: None,
                current_document: None,
            }],
        });
        self.client.commit(request).await.unwrap();
    }
}

fn as_owner<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let owner = MetadataValue::from_static("Bearer owner");
    request.metadata_mut().insert("authorization", owner);
    request
}

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
