//! The calls to Firestore: each one request, with its token and its deadline, told apart only where they fail.

use crate::names::Names;
use crate::proto::batch_get_documents_response::Result as Got;
use crate::proto::firestore_client::FirestoreClient;
use crate::proto::precondition::ConditionType;
use crate::proto::run_query_request::QueryType;
use crate::proto::write::Operation;
use crate::proto::{
    BatchGetDocumentsRequest, BatchWriteRequest, CommitRequest, Document, DocumentMask,
    Precondition, RunQueryRequest, StructuredQuery, Write,
};
use crate::settings::FirestoreSettings;
use crate::token::Tokens;
use crate::value::{Fields, time};
use hyper_rustls::HttpsConnectorBuilder;
use prost_types::Timestamp;
use semel::Error;
use semel::clock::Time;
use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

const PRODUCTION: &str = "https://firestore.googleapis.com";

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How often an idle connection is asked whether it is still there: more often than networks forget one.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How long a time that the server told is better than a newer one: clocks drift.
const FRESH: Duration = Duration::from_secs(10);

/// The version of a document: when it last changed. Commits are made on condition of it.
pub(crate) type Version = Timestamp;

/// Speaks to one database.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) names: Names,
    pub(crate) place: Place,
    grpc: FirestoreClient<Channel>,
    tokens: Tokens,
    /// `database=…`, by which Google routes a request.
    routing: MetadataValue<Ascii>,
    /// In tests: by how many microseconds the server's clock counts as further than it is.
    ahead: AtomicU64,
    calls: AtomicU64,
    /// A time that the server told, and when it was asked.
    told: Mutex<Option<(Time, Instant)>>,
}

/// Where the database is, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) project: String,
    pub(crate) database: String,
    pub(crate) emulator: Option<String>,
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
        let channel = match &settings.emulator_host {
            Some(host) => endpoint(&format!("http://{host}"))?.connect_lazy(),
            None => secure(&endpoint(PRODUCTION)?)?,
        };
        Ok(Self {
            place: Place {
                project: settings.project.clone(),
                database: settings.database.clone(),
                emulator: settings.emulator_host.clone(),
            },
            grpc: FirestoreClient::new(channel),
            tokens,
            routing: routing.parse().map_err(|_| {
                Error::invalid(
                    "Firestore store: the project's and the database's id must be ASCII; fix them",
                )
            })?,
            names,
            ahead: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            told: Mutex::default(),
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
        let now = self.told(time(read_time.as_ref())?, asked);
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
            at: self.told(time(committed.commit_time.as_ref())?, asked),
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
        let now = self.told(time(read_time.as_ref())?, asked);
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

    /// From now on the server's clock counts as this much further.
    pub(crate) fn let_pass(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.ahead.fetch_add(micros, Ordering::SeqCst);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The server's time, or a little later, if it has told one: never earlier, so that a lease which begins now lasts.
    pub(crate) fn now(&self) -> Option<Time> {
        let told = *self.told.lock().expect("no holder of this lock panics");
        let (time, asked) = told?;
        Some(self.ahead(time.plus(asked.elapsed())))
    }

    /// A time that the server told to whoever asked then. The one that tells most exactly is kept, while it is fresh.
    fn told(&self, time: Time, asked: Instant) -> Time {
        let mut told = self.told.lock().expect("no holder of this lock panics");
        let is_better = told.is_none_or(|(old, old_asked)| {
            let age = old_asked.elapsed();
            age > FRESH || time.plus(asked.elapsed()) <= old.plus(age)
        });
        if is_better {
            *told = Some((time, asked));
        }
        drop(told);
        self.ahead(time)
    }

    fn ahead(&self, time: Time) -> Time {
        let ahead = self.ahead.load(Ordering::SeqCst);
        time.plus(Duration::from_micros(ahead))
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

fn endpoint(uri: &str) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::from_shared(uri.to_owned()).map_err(|error| {
        Error::invalid(format!(
            "Firestore store: {uri} cannot be dialled: {error}; fix the setting"
        ))
    })?;
    Ok(endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true))
}

/// A channel that believes what this machine believes.
fn secure(endpoint: &Endpoint) -> Result<Channel, Error> {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(crate::token::tls()?)
        .https_only()
        .enable_http2()
        .build();
    Ok(endpoint.connect_with_connector_lazy(connector))
}

pub(crate) fn mask(fields: &[&str]) -> DocumentMask {
    DocumentMask {
        field_paths: fields.iter().map(|it| (*it).to_owned()).collect(),
    }
}

/// Writes a whole document, if it is still of this version; none is not there.
pub(crate) fn replace(name: String, fields: Fields, version: Option<Version>) -> Write {
    let condition = version.map_or(ConditionType::Exists(false), ConditionType::UpdateTime);
    put(name, fields, Some(condition))
}

/// Writes a whole document.
pub(crate) fn put(name: String, fields: Fields, condition: Option<ConditionType>) -> Write {
    let document = Document {
        name,
        fields,
        create_time: None,
        update_time: None,
    };
    write(Operation::Update(document), condition)
}

/// Changes nothing, but makes the whole commit fail if the document has another version by then.
pub(crate) fn verify(name: String, version: Version) -> Write {
    Write {
        update_mask: Some(mask(&["_"])),
        ..put(
            name,
            Fields::new(),
            Some(ConditionType::UpdateTime(version)),
        )
    }
}

/// Deletes a document; if it is still of this version, where one is named.
pub(crate) fn delete(name: String, version: Option<Version>) -> Write {
    write(
        Operation::Delete(name),
        version.map(ConditionType::UpdateTime),
    )
}

fn write(operation: Operation, condition: Option<ConditionType>) -> Write {
    Write {
        operation: Some(operation),
        update_mask: None,
        current_document: condition.map(|condition_type| Precondition {
            condition_type: Some(condition_type),
        }),
    }
}

// === impl Failure ===

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

// === impl Place ===

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Firestore database {} of project {}",
            self.database, self.project
        )?;
        match &self.emulator {
            Some(host) => write!(f, " (emulator at {host})"),
            None => Ok(()),
        }
    }
}
