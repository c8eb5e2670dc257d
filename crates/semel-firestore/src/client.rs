//! The calls to Firestore: each one request, with its token and its deadline, told apart only where they fail.

use crate::channel::{self, Place};
use crate::names::Names;
use crate::proto::batch_get_documents_response::Result as Got;
use crate::proto::firestore_client::FirestoreClient;
use crate::proto::run_query_request::QueryType;
use crate::proto::{
    BatchGetDocumentsRequest, BatchWriteRequest, CommitRequest, Document, RunQueryRequest,
    StructuredQuery, Write,
};
use crate::server_clock::ServerClock;
use crate::settings::FirestoreSettings;
use crate::token::Tokens;
use crate::value::time;
use crate::writes::{Version, mask};
use semel::Error;
use semel::clock::Time;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Speaks to one database.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) names: Names,
    pub(crate) place: Place,
    pub(crate) clock: ServerClock,
    grpc: FirestoreClient<Channel>,
    tokens: Tokens,
    /// `database=…`, by which Google routes a request.
    routing: MetadataValue<Ascii>,
    calls: AtomicU64,
}

/// Documents as they were at one moment, in the order they were asked for.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) documents: Vec<Option<Document>>,
    pub(crate) now: Time,
}

/// What a commit wrote.
#[derive(Debug)]
pub(crate) struct Committed {
    /// The version that each write led to; one that changes nothing keeps the old one.
    pub(crate) versions: Vec<Option<Version>>,
    pub(crate) at: Time,
}

/// What a query found.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) documents: Vec<Document>,
    pub(crate) now: Time,
}

/// A call that reads, or one that writes on a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Read,
    Commit,
}

/// Why a turn came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Firestore said so.
    Refused(Call, Status),
    /// Something was replaced while it was read.
    Torn,
    /// What was granted is lost again already.
    Overtaken,
    /// There is nothing to try again.
    Final(Error),
}

// === impl Client ===

impl Client {
    pub(crate) fn new(settings: &FirestoreSettings) -> Result<Self, Error> {
        let tokens = Tokens::new(settings.tokens()?)?;
        let names = Names::new(settings);
        let routing = format!("database={}", names.database.replace('/', "%2F"));
        Ok(Self {
            place: Place::new(settings),
            clock: ServerClock::default(),
            grpc: FirestoreClient::new(channel::open(settings)?),
            tokens,
            routing: routing.parse().map_err(|_| {
                Error::invalid(
                    "Firestore store: the project's and the database's id must be ASCII; fix them",
                )
            })?,
            names,
            calls: AtomicU64::new(0),
        })
    }

    /// Reads documents by name.
    pub(crate) async fn read(&self, names: Vec<String>, within: Duration) -> Result<Seen, Failure> {
        self.read_fields(names, &[], within).await
    }

    /// Reads some fields of documents; none is all.
    pub(crate) async fn read_fields(
        &self,
        names: Vec<String>,
        fields: &[&str],
        within: Duration,
    ) -> Result<Seen, Failure> {
        let request = BatchGetDocumentsRequest {
            database: self.names.database.clone(),
            documents: names.clone(),
            mask: (!fields.is_empty()).then(|| mask(fields)),
        };
        let request = self.request(request, within).await?;
        let asked = Instant::now();
        let refused = |status| Failure::Refused(Call::Read, status);
        let answered = self.grpc.clone().batch_get_documents(request).await;
        let mut stream = answered.map_err(refused)?.into_inner();
        let (mut found, mut read_time) = (HashMap::new(), None);
        while let Some(one) = stream.message().await.map_err(refused)? {
            read_time = one.read_time.or(read_time);
            if let Some(Got::Found(document)) = one.result {
                found.insert(document.name.clone(), document);
            }
        }
        let documents = names.iter().map(|name| found.remove(name)).collect();
        let now = self.clock.told(time(read_time.as_ref())?, asked);
        Ok(Seen { documents, now })
    }

    /// Writes everything, or nothing if a condition does not hold.
    pub(crate) async fn commit(
        &self,
        writes: Vec<Write>,
        within: Duration,
    ) -> Result<Committed, Failure> {
        let request = CommitRequest {
            database: self.names.database.clone(),
            writes,
        };
        let request = self.request(request, within).await?;
        let asked = Instant::now();
        let committed = self.grpc.clone().commit(request).await;
        let committed = committed.map_err(|it| Failure::Refused(Call::Commit, it))?;
        let committed = committed.into_inner();
        Ok(Committed {
            at: self
                .clock
                .told(time(committed.commit_time.as_ref())?, asked),
            versions: committed
                .write_results
                .into_iter()
                .map(|it| it.update_time)
                .collect(),
        })
    }

    /// Runs a query to its end.
    pub(crate) async fn query(
        &self,
        query: StructuredQuery,
        within: Duration,
    ) -> Result<Rows, Failure> {
        let request = RunQueryRequest {
            parent: self.names.root(),
            query_type: Some(QueryType::StructuredQuery(query)),
        };
        let request = self.request(request, within).await?;
        let asked = Instant::now();
        let refused = |status| Failure::Refused(Call::Read, status);
        let answered = self.grpc.clone().run_query(request).await;
        let mut stream = answered.map_err(refused)?.into_inner();
        let (mut documents, mut read_time) = (Vec::new(), None);
        while let Some(row) = stream.message().await.map_err(refused)? {
            read_time = row.read_time.or(read_time);
            documents.extend(row.document);
        }
        let now = self.clock.told(time(read_time.as_ref())?, asked);
        Ok(Rows { documents, now })
    }

    /// Makes writes one by one, whatever becomes of the others, and says how many were made.
    pub(crate) async fn write_each(
        &self,
        writes: Vec<Write>,
        within: Duration,
    ) -> Result<u64, Failure> {
        if writes.is_empty() {
            return Ok(0);
        }
        let request = BatchWriteRequest {
            database: self.names.database.clone(),
            writes,
        };
        let request = self.request(request, within).await?;
        let written = self.grpc.clone().batch_write(request).await;
        let written = written.map_err(|it| Failure::Refused(Call::Read, it))?;
        let made = written.get_ref().status.iter().filter(|it| it.code == 0);
        Ok(made.count() as u64)
    }

    /// The next request asks for a new token.
    pub(crate) fn forget_token(&self) {
        self.tokens.forget();
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    async fn request<T>(&self, message: T, within: Duration) -> Result<Request<T>, Failure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut request = Request::new(message);
        request.set_timeout(within);
        let metadata = request.metadata_mut();
        metadata.insert("x-goog-request-params", self.routing.clone());
        let token = self.tokens.current().await?;
        metadata.insert("authorization", token.bearer);
        if let Some(project) = token.quota_project {
            metadata.insert("x-goog-user-project", project);
        }
        Ok(request)
    }
}

// === impl Failure ===

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}
