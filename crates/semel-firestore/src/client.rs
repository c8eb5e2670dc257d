//! The calls to Firestore: each one request, with its token and its deadline, told apart only where they fail.

use crate::channel::{Connection, Place};
use crate::foreign::Foreign;
use crate::names::Names;
use crate::proto::batch_get_documents_response::Result as Got;
use crate::proto::firestore_client::FirestoreClient;
use crate::proto::precondition::ConditionType;
use crate::proto::run_query_request::QueryType;
use crate::proto::write::Operation;
use crate::proto::{
    BatchGetDocumentsRequest, BatchWriteRequest, CommitRequest, Document, RunQueryRequest,
    StructuredQuery, Write,
};
use crate::server_clock::ServerClock;
use crate::settings::FirestoreSettings;
use crate::token::{Token, Tokens};
use crate::value::time;
use crate::writes::{Version, mask};
use semel::Error;
use semel::clock::Time;
use std::collections::HashMap;
use std::error::Error as StdError;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

/// What is said of a call that was not answered in its time.
const SILENCE: &str = "no answer in time";

type Grpc = FirestoreClient<Channel>;

/// How long a call waits in vain before its connection counts as dead: one that had less time tells nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Speaks to one database.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) names: Names,
    pub(crate) place: Place,
    pub(crate) clock: ServerClock,
    pub(crate) foreign: Foreign,
    connection: Connection,
    tokens: Tokens,
    /// `database=…`, by which Google routes a request.
    routing: MetadataValue<Ascii>,
    calls: AtomicU64,
    takes_writes: TakesWrites,
}

/// When a write was last made, unless something has gone wrong since.
#[derive(Debug, Default)]
struct TakesWrites(Mutex<Option<Instant>>);

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

/// What a commit is made on: the condition of each write that has one, by document.
pub(crate) type Conditions = Vec<(String, ConditionType)>;

/// Why a turn came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Firestore said so.
    Refused(Call, Status),
    /// Firestore said that a condition of a commit does not hold; which they were.
    Unmet(Conditions, Status),
    /// Something was replaced while it was read.
    Torn,
    /// What was granted is lost again already.
    Overtaken,
    /// There is no token, so nothing was sent.
    NoToken(Error),
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
            foreign: Foreign::default(),
            takes_writes: TakesWrites::default(),
            connection: Connection::new(settings)?,
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
        let make = async |mut grpc: Grpc, request| {
            let mut stream = grpc.batch_get_documents(request).await?.into_inner();
            let (mut found, mut read_time) = (HashMap::new(), None);
            while let Some(one) = stream.message().await? {
                read_time = one.read_time.or(read_time);
                if let Some(Got::Found(document)) = one.result {
                    found.insert(document.name.clone(), document);
                }
            }
            Ok((found, read_time))
        };
        let answered = self.call(Call::Read, request, within, make).await?;
        let ((mut found, read_time), asked) = answered;
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
        let conditions = conditions(&request.writes);
        let make = async |mut grpc: Grpc, request| grpc.commit(request).await;
        let committed = self.call(Call::Commit, request, within, make).await;
        let (committed, asked) = committed.map_err(|failure| failure.on(conditions))?;
        self.takes_writes.since(Some(Instant::now()));
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
        let make = async |mut grpc: Grpc, request| {
            let mut stream = grpc.run_query(request).await?.into_inner();
            let (mut documents, mut read_time) = (Vec::new(), None);
            while let Some(row) = stream.message().await? {
                read_time = row.read_time.or(read_time);
                documents.extend(row.document);
            }
            Ok((documents, read_time))
        };
        let answered = self.call(Call::Read, request, within, make).await?;
        let ((documents, read_time), asked) = answered;
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
        let make = async |mut grpc: Grpc, request| grpc.batch_write(request).await;
        let (written, _) = self.call(Call::Read, request, within, make).await?;
        let made = written.get_ref().status.iter().filter(|it| it.code == 0);
        Ok(made.count() as u64)
    }

    /// Whether a write was made within this time, and nothing has gone wrong since.
    pub(crate) fn took_a_write_within(&self, within: Duration) -> bool {
        let last = *self.takes_writes.lock();
        last.is_some_and(|last| last.elapsed() < within)
    }

    /// What showed that writes are taken no longer does.
    pub(crate) fn doubt_writes(&self) {
        self.takes_writes.since(None);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Makes one call, from its token to the end of its answer, within this time; and says when it was asked.
    async fn call<M, T, F>(
        &self,
        call: Call,
        message: M,
        within: Duration,
        make: impl FnOnce(Grpc, Request<M>) -> F,
    ) -> Result<(T, Instant), Failure>
    where
        F: Future<Output = Result<T, Status>>,
    {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let until = Instant::now() + within;
        let token = timeout_at(until, self.tokens.current()).await;
        let token = token.unwrap_or_else(|_| Err(self.tokens.not_in_time()));
        let token = token.map_err(|error| {
            self.takes_writes.since(None);
            Failure::NoToken(error)
        })?;
        let request = self.request(message, &token, until);
        let asked = Instant::now();
        let used = self.connection.current();
        let answered = timeout_at(until, make(used.grpc(), request)).await;
        match answered.unwrap_or_else(|_| Err(Status::deadline_exceeded(SILENCE))) {
            Ok(answer) => Ok((answer, asked)),
            Err(status) => {
                if is_ours(&status) && asked.elapsed() >= PATIENCE {
                    // The way there may be gone, and nobody has told us.
                    self.connection.replace(&used);
                }
                if !is_conflict(call, &status) {
                    self.takes_writes.since(None);
                }
                if status.code() == Code::Unauthenticated {
                    self.tokens.forget(&token);
                }
                Err(Failure::Refused(call, status))
            }
        }
    }

    fn request<M>(&self, message: M, token: &Token, until: Instant) -> Request<M> {
        let mut request = Request::new(message);
        request.set_timeout(until.duration_since(Instant::now()));
        let metadata = request.metadata_mut();
        metadata.insert("x-goog-request-params", self.routing.clone());
        metadata.insert("authorization", token.bearer.clone());
        if let Some(project) = &token.quota_project {
            metadata.insert("x-goog-user-project", project.clone());
        }
        request
    }
}

/// Whether a call was not answered, as far as we can tell.
pub(crate) fn is_silence(status: &Status) -> bool {
    matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled)
}

/// Whether it is we who gave up: our own words, or those of the client below us.
fn is_ours(status: &Status) -> bool {
    let given_up = status.message() == SILENCE && status.code() == Code::DeadlineExceeded;
    given_up || (status.code() == Code::Cancelled && status.source().is_some())
}

/// Whether it is about one document, and what others do to it.
fn is_conflict(call: Call, status: &Status) -> bool {
    // A read that hears the latter two hears it of the whole database.
    matches!(status.code(), Code::AlreadyExists | Code::Aborted)
        || call == Call::Commit && is_unmet(status)
}

/// Whether a commit hears that a condition does not hold; or that nothing may be written, in the same words.
fn is_unmet(status: &Status) -> bool {
    matches!(status.code(), Code::FailedPrecondition | Code::NotFound)
}

fn conditions(writes: &[Write]) -> Conditions {
    let condition = |write: &Write| {
        let condition = write.current_document.as_ref()?.condition_type?;
        match write.operation.as_ref()? {
            Operation::Update(document) => Some((document.name.clone(), condition)),
            Operation::Delete(name) => Some((name.clone(), condition)),
        }
    };
    writes.iter().filter_map(condition).collect()
}

// === impl TakesWrites ===

impl TakesWrites {
    fn since(&self, now: Option<Instant>) {
        *self.lock() = now;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

// === impl Failure ===

impl Failure {
    /// The same of a commit on these conditions.
    fn on(self, conditions: Conditions) -> Self {
        if let Self::Refused(Call::Commit, status) = &self
            && is_unmet(status)
        {
            return Self::Unmet(conditions, status.clone());
        }
        self
    }

    /// The same of a commit that leaves nothing and asks for nothing.
    pub(crate) fn of_a_read(self) -> Self {
        match self {
            Self::Refused(_, status) | Self::Unmet(_, status) => Self::Refused(Call::Read, status),
            Self::Torn | Self::Overtaken | Self::NoToken(_) | Self::Final(_) => self,
        }
    }

    /// Whether it is a commit of which nobody knows whether it was made.
    pub(crate) fn may_have_written(&self) -> bool {
        match self {
            Self::Refused(Call::Commit, status) => matches!(
                status.code(),
                Code::Unavailable
                    | Code::DeadlineExceeded
                    | Code::Cancelled
                    | Code::Internal
                    | Code::Unknown
            ),
            Self::Refused(Call::Read, _)
            | Self::Unmet(..)
            | Self::Torn
            | Self::Overtaken
            | Self::NoToken(_)
            | Self::Final(_) => false,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}
