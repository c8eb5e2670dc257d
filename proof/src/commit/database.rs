//! A database as a handler of its own knows it: by plain calls, without a store.

use prost_types::Timestamp;
use semel_firestore::proto::batch_get_documents_response::Result as Got;
use semel_firestore::proto::firestore_client::FirestoreClient;
use semel_firestore::proto::run_query_request::QueryType;
use semel_firestore::proto::structured_query::CollectionSelector;
use semel_firestore::proto::{
    BatchGetDocumentsRequest, CommitRequest, Document, RunQueryRequest, StructuredQuery, Write,
};
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

/// The default database of a project.
#[derive(Clone, Debug)]
pub(super) struct Database {
    name: String,
    client: FirestoreClient<Channel>,
}

/// What was read, and when.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) document: Option<Document>,
    pub(super) now: Timestamp,
}

// === impl Database ===

impl Database {
    /// By way of the emulator, or of the proxy before it.
    pub(super) async fn open(address: &str, project: &str) -> anyhow::Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        Ok(Self {
            name: format!("projects/{project}/databases/(default)"),
            client: FirestoreClient::new(endpoint.connect().await?),
        })
    }

    /// The name of the document with this `collection/id`.
    pub(super) fn document(&self, path: &str) -> String {
        format!("{}/documents/{path}", self.name)
    }

    pub(super) async fn read(&self, path: &str) -> Result<Read, Status> {
        let asked = as_owner(BatchGetDocumentsRequest {
            database: self.name.clone(),
            documents: vec![self.document(path)],
            mask: None,
        });
        let got = self.client.clone().batch_get_documents(asked).await?;
        let got = got.into_inner().message().await?.unwrap_or_default();
        let document = match got.result {
            Some(Got::Found(document)) => Some(document),
            Some(Got::Missing(_)) | None => None,
        };
        let now = got.read_time.unwrap_or_default();
        Ok(Read { document, now })
    }

    pub(super) async fn commit(&self, writes: Vec<Write>) -> Result<(), Status> {
        let asked = as_owner(CommitRequest {
            database: self.name.clone(),
            writes,
        });
        self.client.clone().commit(asked).await.map(drop)
    }

    /// All documents of a collection.
    pub(super) async fn all(&self, collection: &str) -> Result<Vec<Document>, Status> {
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

fn as_owner<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let owner = MetadataValue::from_static("Bearer owner");
    request.metadata_mut().insert("authorization", owner);
    request
}
