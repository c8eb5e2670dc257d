//! Landing in a table: a group of rows is one COPY in one transaction, and durable when its COMMIT is answered.

mod copy;
mod table;

pub use table::{Table, TableNameError};

use crate::errors::{QueryError, unavailable};
use crate::server::{DurabilitySettings, Session};
use crate::settings::{PostgresSettings, Target};
use async_trait::async_trait;
use bytes::Bytes;
use copy::{fault_columns, fault_line, row_columns, row_line};
use futures_util::SinkExt;
use semel::Error;
use semel_landing::failpoint::{Point, pass};
use semel_landing::{Answer, Row, Sink, WriteError};
use std::fmt;
use std::pin::pin;
use std::time::Duration;
use table::check;
use tokio::time::error::Elapsed;
use tokio::time::timeout;
use tokio_postgres::{Client, SimpleQueryMessage};

/// Every commit waits for the disk, and for the standby if there is one, whatever the role's own settings say. Whoever
/// makes an index on the table is waited for a moment.
const BEGIN: &str = "BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '2s'";

const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// Classes of errors that speak of the server or of the table: connections, what is not supported or not there, rights,
/// rollbacks, resources, an operator's acts. All others speak of what was written, with words of a trigger's own too.
const OF_SERVER: [&str; 15] = [
    "08", "0A", "25", "26", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "F0", "XX",
];

/// Where rows land in a database.
#[derive(Clone, Debug)]
pub struct TableSettings {
    /// The database, and how it is reached.
    pub database: PostgresSettings,
    /// The table.
    pub table: Table,
    /// Whether answers land beside deliveries.
    pub answers: bool,
}

/// A sink that is a table. It connects when it is needed, and looks each time whether the table is as it must be.
pub struct TableSink {
    target: Target,
    table: Table,
    answers: bool,
    connect_within: Duration,
    answer_within: Duration,
    session: Option<Session>,
}

// === impl TableSink ===

impl TableSink {
    /// A sink for this table; nothing is dialled yet.
    ///
    /// # Errors
    /// `Invalid`, when a setting makes no sense.
    pub fn new(settings: TableSettings) -> Result<Self, Error> {
        Ok(Self {
            target: settings.database.target()?,
            table: settings.table,
            answers: settings.answers,
            connect_within: settings.database.connect_timeout,
            answer_within: settings.database.answer_timeout,
            session: None,
        })
    }

    /// Connects, and looks whether the table is as it must be; says how durable it is.
    ///
    /// # Errors
    /// `Unavailable` when the server cannot be reached; `Invalid` when the table is missing or lacks something.
    pub async fn check(&mut self) -> Result<String, Error> {
        let session = self.connected().await?;
        let durability = session.check().await?;
        Ok(format!(
            "{}; {durability}; {}",
            session.place(),
            session.encryption()
        ))
    }

    /// Reads what a crash or a failover of the server can lose of committed rows. A table that a crash empties is refused
    /// before that.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub async fn durability_settings(&mut self) -> Result<DurabilitySettings, Error> {
        let within = self.answer_within + self.connect_within;
        let read = async { DurabilitySettings::read(self.connected().await?).await };
        timeout(within, read).await.unwrap_or_else(|_| {
            let what = format!("no answer within {within:?}");
            Err(unavailable(&self.target.place, &what))
        })
    }

    async fn connected(&mut self) -> Result<&Session, Error> {
        if self.session.as_ref().is_none_or(|it| it.client.is_closed()) {
            self.session = None;
            let session = Session::open(&self.target, self.connect_within).await?;
            let columns = row_columns(self.answers);
            check(&session, &self.table.quoted(), &columns, self.answers).await?;
            let faults = self.table.faults().quoted();
            check(&session, &faults, &fault_columns(), self.answers).await?;
            self.session = Some(session);
        }
        let missing = || Error::bug("a session that was opened is there");
        self.session.as_ref().ok_or_else(missing)
    }

    async fn copy(&mut self, group: &[&Row], end: &str) -> Result<(), WriteError> {
        let (answers, table) = (self.answers, self.table.clone());
        let session = self
            .connected()
            .await
            .map_err(|error| unreachable(&error))?;
        let place = session.place();
        let in_words = |error: tokio_postgres::Error| refusal(error, place);
        let client = &session.client;
        let begun = client.simple_query(&begin(&table)).await;
        if finds_any(&begun.map_err(in_words)?) {
            let what = "the table or a part of it is UNLOGGED or temporary by now";
            return Err(unreachable(&unavailable(place, what)));
        }
        let (faults, rows): (Vec<&Row>, Vec<&Row>) =
            group.iter().partition(|row| row.fault.is_some());
        let lines: Vec<_> = rows.iter().map(|row| row_line(row, answers)).collect();
        let columns = row_columns(answers);
        let copied = lines_into(client, &table, &columns, &lines).await;
        all_taken(&table, lines.len(), copied.map_err(in_words)?)?;
        let lines: Vec<_> = faults.iter().map(|row| fault_line(row)).collect();
        let columns = fault_columns();
        let copied = lines_into(client, &table.faults(), &columns, &lines).await;
        all_taken(&table.faults(), lines.len(), copied.map_err(in_words)?)?;
        pass(Point::Written);
        let warned = session.warnings();
        client.batch_execute(end).await.map_err(in_words)?;
        if session.warnings() == warned {
            return Ok(());
        }
        // The server commits, and gives up waiting for its standby, with a warning: nobody knows whether it has it.
        let what = "the server committed with a warning, so whether its standby has it is unknown";
        Err(unreachable(&unavailable(place, what)))
    }
}

impl TableSink {
    /// Whether the server answers.
    async fn ask(&mut self) -> Result<(), WriteError> {
        let session = self
            .connected()
            .await
            .map_err(|error| unreachable(&error))?;
        let asked = session.client.batch_execute("SELECT 1").await;
        asked.map_err(|error| refusal(error, session.place()))
    }

    /// Gives up what the table refused; the connection stays, because halves of the group follow at once.
    async fn roll_back(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        let rolled_back = session.client.batch_execute("ROLLBACK");
        if let Ok(Ok(())) = timeout(self.answer_within, rolled_back).await {
            self.session = Some(session);
        }
    }

    /// What came of an attempt. What is under way on a connection after a failure is unknown: the next one has a new one.
    fn settled(
        &mut self,
        attempt: Result<Result<(), WriteError>, Elapsed>,
    ) -> Result<(), WriteError> {
        let settled = attempt.unwrap_or_else(|_| {
            let what = format!("no answer within {:?}", self.answer_within);
            Err(unreachable(&unavailable(&self.target.place, &what)))
        });
        if settled.is_err() {
            self.session = None;
        }
        settled
    }
}

fn unreachable(error: &Error) -> WriteError {
    WriteError::Unavailable(error.to_string())
}

/// Begins, holds the tables as they are, and finds parts of them that a crash would empty: they may have been altered
/// since the connection was made.
fn begin(table: &Table) -> String {
    let (rows, faults) = (table.quoted(), table.faults().quoted());
    format!(
        "{BEGIN}; LOCK TABLE {rows}, {faults} IN ROW EXCLUSIVE MODE; \
         SELECT FROM pg_class WHERE relpersistence <> 'p' AND oid IN (\
         SELECT relid FROM pg_partition_tree('{rows}') UNION ALL SELECT relid FROM pg_partition_tree('{faults}') \
         UNION ALL VALUES ('{rows}'::regclass), ('{faults}'))"
    )
}

fn finds_any(answers: &[SimpleQueryMessage]) -> bool {
    let mut answers = answers.iter();
    answers.any(|answer| matches!(answer, SimpleQueryMessage::Row(_)))
}

/// Refuses a table that dropped rows without an error, as a trigger can.
fn all_taken(table: &Table, sent: usize, taken: u64) -> Result<(), WriteError> {
    if taken == sent as u64 {
        return Ok(());
    }
    Err(WriteError::Refused(format!(
        "{table} took {taken} rows of {sent}: a trigger drops some without an error"
    )))
}

/// Sends lines in COPY's own text form; the number of rows that the table took.
async fn lines_into(
    client: &Client,
    table: &Table,
    columns: &[&str],
    lines: &[String],
) -> Result<u64, tokio_postgres::Error> {
    if lines.is_empty() {
        return Ok(0);
    }
    let statement = format!(
        "COPY {} ({}) FROM STDIN",
        table.quoted(),
        columns.join(", ")
    );
    let mut copy = pin!(client.copy_in::<_, Bytes>(&statement).await?);
    copy.send(Bytes::from(lines.concat())).await?;
    copy.finish().await
}

/// Whether a row is to blame, or the server.
fn refusal(error: tokio_postgres::Error, place: &str) -> WriteError {
    let class = error
        .code()
        .and_then(|code| code.code().get(..2))
        .map(str::to_owned);
    let is_of_rows = class
        .as_deref()
        .is_some_and(|class| !OF_SERVER.contains(&class));
    if let (true, Some(said)) = (is_of_rows, error.as_db_error()) {
        return WriteError::Refused(format!("{} ({})", said.message(), said.code().code()));
    }
    if let (Some("42"), Some(said)) = (class.as_deref(), error.as_db_error()) {
        let what = format!(
            "{} ({}): the table is not as `semel warehouse sql --dialect postgres --part ddl` makes it, or may not be written",
            said.message(),
            said.code().code()
        );
        return unreachable(&unavailable(place, &what));
    }
    unreachable(&match QueryError::of(error, place) {
        QueryError::Held => unavailable(place, "another transaction holds a lock on the table"),
        other @ (QueryError::Again | QueryError::Failed(_) | QueryError::Broken(_)) => other.into(),
    })
}

#[async_trait]
impl Sink for TableSink {
    async fn write(&mut self, group: &[&Row]) -> Result<(), WriteError> {
        let within = self.answer_within + self.connect_within;
        let written = timeout(within, self.copy(group, COMMIT)).await;
        if let Ok(Err(WriteError::Refused(why))) = written {
            self.roll_back().await;
            return Err(WriteError::Refused(why));
        }
        self.settled(written)
    }

    async fn ready(&mut self) -> Result<(), WriteError> {
        let within = self.answer_within + self.connect_within;
        let asked = timeout(within, self.ask()).await;
        self.settled(asked)
    }

    async fn try_marker(&mut self, bytes: usize) -> Result<(), WriteError> {
        let within = self.answer_within + self.connect_within;
        let mut row = Row::new("marker", "\n".repeat(bytes)).named("marker", "marker");
        row.answer = self.answers.then(|| Answer {
            status: 200,
            body: Bytes::new(),
        });
        let tried = timeout(within, self.copy(&[&row], ROLLBACK)).await;
        self.settled(tried)
    }

    async fn close(&mut self) {
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }
}

impl fmt::Debug for TableSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSink")
            .field("place", &self.target.place)
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}
