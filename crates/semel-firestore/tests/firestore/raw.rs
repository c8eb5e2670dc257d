//! The database past the store.

use semel::Key;
use semel_firestore::FirestoreSettings;
use semel_firestore::proto::firestore_client::FirestoreClient;
use semel_firestore::proto::run_query_request::QueryType;
use semel_firestore::proto::structured_query::CollectionSelector;
use semel_firestore::proto::value::ValueType;
use semel_firestore::proto::write::Operation;
use semel_firestore::proto::{
    CommitRequest, Document, RunQueryRequest, StructuredQuery, Value, Write,
};
use tonic::Request;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};

/// The database past the store.
pub(crate) struct Raw {
    client: FirestoreClient<Channel>,
    database: String,
}

impl Raw {
    pub(crate) async fn open(settings: &FirestoreSettings) -> Self {
        let host = settings.emulator_host.as_ref().unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{host}")).unwrap();
        Self {
            client: FirestoreClient::new(endpoint.connect().await.unwrap()),
            database: format!("projects/{}/databases/(default)", settings.project),
        }
    }

    /// How many documents a collection has.
    pub(crate) async fn count(&mut self, collection: &str) -> usize {
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
    pub(crate) async fn leave_part(&mut self, of: &Key) {
        let of = ("of", format!("semel_records/{of}"));
        self.write("semel_parts/left_0", &[of]).await;
    }

    /// Writes a document with these texts.
    pub(crate) async fn write(&mut self, path: &str, texts: &[(&str, String)]) {
        let text = |text: &String| ValueType::StringValue(text.clone());
        let fields: Vec<_> = texts.iter().map(|(name, it)| (*name, text(it))).collect();
        self.write_values(path, &fields).await;
    }

    /// Writes a document with these values.
    pub(crate) async fn write_values(&mut self, path: &str, values: &[(&str, ValueType)]) {
        let value = |value: &ValueType| Value {
            value_type: Some(value.clone()),
        };
        let fields = values
            .iter()
            .map(|(name, it)| ((*name).to_owned(), value(it)));
        let document = Document {
            name: self.name(path),
            fields: fields.collect(),
            create_time: None,
            update_time: None,
        };
        self.commit(Operation::Update(document)).await;
    }

    pub(crate) async fn delete(&mut self, path: &str) {
        self.commit(Operation::Delete(self.name(path))).await;
    }

    fn name(&self, path: &str) -> String {
        format!("{}/documents/{path}", self.database)
    }

    async fn commit(&mut self, operation: Operation) {
        let request = as_owner(CommitRequest {
            database: self.database.clone(),
            writes: vec![Write {
                operation: Some(operation),
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
