//! A Firestore database as a handler knows it: by plain calls, without a store. It completes its run in the commit that has
//! its effect, as `semel.firestore.complete` does.

use bytes::Bytes;
use prost_types::Timestamp;
use semel::protocol::Lease;
use semel_firestore::proto::batch_get_documents_response::Result as Got;
use semel_firestore::proto::firestore_client::FirestoreClient;
use semel_firestore::proto::precondition::ConditionType;
use semel_firestore::proto::run_query_request::QueryType;
use semel_firestore::proto::structured_query::CollectionSelector;
use semel_firestore::proto::value::ValueType;
use semel_firestore::proto::write::Operation;
use semel_firestore::proto::{
    BatchGetDocumentsRequest, CommitRequest, Document, Precondition, RunQueryRequest,
    StructuredQuery, Value, Write,
};
use std::collections::HashMap;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// The default database of a project.
#[derive(Clone, Debug)]
pub(crate) struct FirestoreDatabase {
    name: String,
    client: FirestoreClient<Channel>,
}

/// What a handler finds when it is about to complete.
#[derive(Clone, Debug)]
pub(crate) enum Completing {
    /// This write completes the run.
    By(Write),
    /// The run is completed already, with this result.
    Already(Bytes),
    /// The run was overtaken, or has failed.
    Stale,
}

const RUNNING: i64 = 1;
const SUCCEEDED: i64 = 2;
const PARKED: i64 = 5;

/// How long after its end a record may be deleted, in microseconds.
const DELETE_AFTER: i64 = 24 * 60 * 60 * 1_000_000;

// === impl FirestoreDatabase ===

impl FirestoreDatabase {
    /// By way of the emulator, or of the proxy before it.
    pub(crate) async fn open(address: &str, project: &str) -> anyhow::Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        Ok(Self {
            name: format!("projects/{project}/databases/(default)"),
            client: FirestoreClient::new(endpoint.connect().await?),
        })
    }

    /// The name of the document with this `collection/id`.
    pub(crate) fn document(&self, path: &str) -> String {
        format!("{}/documents/{path}", self.name)
    }

    /// Reads the record, and says how to complete the run on condition that it stays so.
    pub(crate) async fn completing(
        &self,
        lease: &Lease,
        result: &Bytes,
    ) -> Result<Completing, Status> {
        let name = self.document(&format!("semel_records/{}", lease.key));
        let asked = as_owner(BatchGetDocumentsRequest {
            database: self.name.clone(),
            documents: vec![name],
            mask: None,
        });
        let got = self.client.clone().batch_get_documents(asked).await?;
        let got = got.into_inner().message().await?.unwrap_or_default();
        let now = got.read_time.unwrap_or_default();
        let Some(Got::Found(record)) = got.result else {
            return Ok(Completing::Stale);
        };
        if int(&record, "fence").map(i64::unsigned_abs) != Some(lease.fence.0) {
            return Ok(Completing::Stale);
        }
        match int(&record, "state") {
            Some(RUNNING | PARKED) => Ok(Completing::By(completed(record, &now, result))),
            Some(SUCCEEDED) => Ok(Completing::Already(result_of(&record))),
            Some(_) | None => Ok(Completing::Stale),
        }
    }

    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<(), Status> {
        let asked = as_owner(CommitRequest {
            database: self.name.clone(),
            writes,
        });
        self.client.clone().commit(asked).await.map(drop)
    }

    /// All documents of a collection.
    pub(crate) async fn all(&self, collection: &str) -> Result<Vec<Document>, Status> {
        let asked = as_owner(RunQueryRequest {
            parent: format!("{}/documents", self.name),
            query_type: Some(QueryType::StructuredQuery(StructuredQuery {
                from: vec![CollectionSelector {
                    collection_id: collection.into(),
                }],
                ..StructuredQuery::default()
            })),
        });
        let mut rows = self.client.clone().run_query(asked).await?.into_inner();
        let mut all = Vec::new();
        while let Some(row) = rows.message().await? {
            all.extend(row.document);
        }
        Ok(all)
    }
}

/// Writes a document that is not there yet.
pub(crate) fn created(name: String, fields: HashMap<String, Value>) -> Write {
    put(name, fields, ConditionType::Exists(false))
}

fn completed(record: Document, now: &Timestamp, result: &Bytes) -> Write {
    let now = micros(now);
    let time = |name| int(&record, name).unwrap_or_default();
    let (ends, lease_until) = (time("expires_at"), time("lease_until"));
    let expires_at = ends.max(now + (ends - lease_until));
    let delete_at = expires_at + DELETE_AFTER;
    let delete_at = Timestamp {
        seconds: delete_at / 1_000_000,
        nanos: i32::try_from(delete_at % 1_000_000 * 1_000).expect("below a second"),
    };
    let mut fields = record.fields;
    let changed = [
        ("state", ValueType::IntegerValue(SUCCEEDED)),
        ("lease_until", ValueType::IntegerValue(now)),
        ("expires_at", ValueType::IntegerValue(expires_at)),
        ("delete_at", ValueType::TimestampValue(delete_at)),
        ("result", ValueType::BytesValue(result.clone())),
    ];
    fields.extend(changed.map(|(name, it)| (name.to_owned(), value(it))));
    let version = record.update_time.unwrap_or_default();
    put(record.name, fields, ConditionType::UpdateTime(version))
}

fn put(name: String, fields: HashMap<String, Value>, condition: ConditionType) -> Write {
    Write {
        operation: Some(Operation::Update(Document {
            name,
            fields,
            create_time: None,
            update_time: None,
        })),
        update_mask: None,
        current_document: Some(Precondition {
            condition_type: Some(condition),
        }),
    }
}

pub(crate) fn value(value: ValueType) -> Value {
    Value {
        value_type: Some(value),
    }
}

/// Since 1970.
pub(crate) fn micros(time: &Timestamp) -> i64 {
    time.seconds * 1_000_000 + i64::from(time.nanos) / 1_000
}

/// Whether somebody else wrote first, or nobody knows: reading again tells.
pub(crate) fn is_worth_another(refused: &Status) -> bool {
    let codes = [Code::FailedPrecondition, Code::Aborted, Code::Unavailable];
    codes.contains(&refused.code())
}

fn int(document: &Document, name: &str) -> Option<i64> {
    match document.fields.get(name)?.value_type {
        Some(ValueType::IntegerValue(number)) => Some(number),
        _ => None,
    }
}

fn result_of(record: &Document) -> Bytes {
    match record
        .fields
        .get("result")
        .and_then(|it| it.value_type.as_ref())
    {
        Some(ValueType::BytesValue(bytes)) => bytes.clone(),
        _ => Bytes::new(),
    }
}

fn as_owner<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let owner = MetadataValue::from_static("Bearer owner");
    request.metadata_mut().insert("authorization", owner);
    request
}
