//! What the server must be, and what its settings mean for records.

use crate::errors::{QueryError, invalid, unavailable};
use crate::settings::Target;
use semel::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Client;

/// The oldest version whose scans by page (`ctid` ranges) sweep needs.
const VERSION_MIN: i32 = 14;

const ASK: &str = "SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding'), \
     current_setting('synchronous_commit'), current_setting('fsync'), \
     current_setting('default_transaction_isolation'), pg_is_in_recovery()";

/// Standbys are counted while they stream; whoever may not see who they are sees that they are there.
const ASK_DURABILITY: &str = "SELECT current_setting('fsync')::bool, current_setting('synchronous_commit'), \
     current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication), \
     (SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class \
      WHERE relnamespace = to_regnamespace('semel') AND relkind = 'r' AND relpersistence <> 'p'), \
     (SELECT string_agg(coalesce(rolname, 'all roles'), ', ' ORDER BY rolname) \
      FROM pg_db_role_setting LEFT JOIN pg_roles ON pg_roles.oid = setrole \
      WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) \
      AND EXISTS (SELECT FROM unnest(setconfig) setting WHERE setting ~ '^synchronous_commit=' \
                  AND setting !~ '=(on|true|yes|1|remote_apply)$'))";

/// What the server's settings were when the store connected, as far as they say what a crash or a failover can lose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurabilitySettings {
    /// Whether the server waits for its disk at all.
    pub fsync: bool,
    /// What a commit waits for.
    pub synchronous_commit: String,
    /// Which standbys it waits for; empty for none.
    pub synchronous_standby_names: String,
    /// How many standbys followed it.
    pub standbys: i64,
    /// Tables of ours that a crash of the server empties.
    pub unlogged_tables: Option<String>,
    /// Roles whose own setting lets their commits wait for less.
    pub relaxed_roles: Option<String>,
}

/// A connection outside the pool, for what is done once.
pub(crate) struct Session {
    pub(crate) client: Client,
    task: JoinHandle<()>,
    place: String,
    encryption: &'static str,
    warnings: Arc<AtomicU64>,
}

// === impl Session ===

impl Session {
    pub(crate) async fn open(target: &Target, limit: Duration) -> Result<Self, Error> {
        let place = target.place.clone();
        let dialler = &target.dialler;
        let limit = limit * dialler.hosts_count();
        let Ok(dialled) = timeout(limit, dialler.dial()).await else {
            return Err(unavailable(
                &place,
                &format!("connecting took longer than {limit:?}"),
            ));
        };
        let dialled = dialled.map_err(|error| QueryError::at_start(error, &place))?;
        Ok(Self {
            encryption: dialler.describe(dialled.encrypted),
            client: dialled.client,
            warnings: dialled.warnings,
            task: dialled.task,
            place,
        })
    }

    /// Says good-bye and waits until the server has heard it.
    pub(crate) async fn close(self) {
        drop(self.client);
        self.task.await.ok();
    }

    pub(crate) fn start_error(&self, error: tokio_postgres::Error) -> Error {
        QueryError::at_start(error, &self.place)
    }

    /// Who can read along, in one sentence.
    pub(crate) fn encryption(&self) -> &'static str {
        self.encryption
    }

    /// How many warnings the server has sent until now.
    pub(crate) fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Relaxed)
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Refuses a server that cannot keep records; otherwise says how durable they are there.
    pub(crate) async fn check(&self) -> Result<String, Error> {
        let row = self.client.query_typed_one(ASK, &[]).await;
        let row = row.map_err(|error| self.start_error(error))?;
        let (version, encoding): (i32, &str) = (row.get(0), row.get(1));
        let (commit, fsync): (&str, &str) = (row.get(2), row.get(3));
        let (isolation, standby): (&str, bool) = (row.get(4), row.get(5));
        let refuse = |what: String, to_do: &str| Err(invalid(&self.place, &what, to_do));
        if version < VERSION_MIN {
            return refuse(
                format!("its version is {version}"),
                &format!("use PostgreSQL {VERSION_MIN} or later"),
            );
        }
        if encoding != "UTF8" {
            return refuse(
                format!("the database is encoded in {encoding}"),
                "use a database encoded in UTF8",
            );
        }
        if isolation != "read committed" {
            return refuse(
                format!(
                    "default_transaction_isolation is {isolation:?}, which the pooler hands on"
                ),
                "set it to \"read committed\" for the user of the URL (ALTER ROLE … SET …)",
            );
        }
        if standby {
            return Err(unavailable(
                &self.place,
                "it is a standby, which takes no writes; name the primary",
            ));
        }
        Ok(durability(commit, fsync))
    }
}

// === impl DurabilitySettings ===

impl DurabilitySettings {
    /// Asks once the schema is there.
    pub(crate) async fn read(session: &Session) -> Result<Self, Error> {
        let row = session.client.query_typed_one(ASK_DURABILITY, &[]).await;
        let row = row.map_err(|error| session.start_error(error))?;
        Ok(Self {
            fsync: row.get(0),
            synchronous_commit: row.get(1),
            synchronous_standby_names: row.get(2),
            standbys: row.get(3),
            unlogged_tables: row.get(4),
            relaxed_roles: row.get(5),
        })
    }
}

fn durability(synchronous_commit: &str, fsync: &str) -> String {
    if fsync == "off" {
        return "fsync is off: a crash of the server's machine can lose or corrupt every record"
            .into();
    }
    match synchronous_commit {
        "off" => {
            "synchronous_commit is off: a crash of the server can lose the outcomes of its last \
                  moments, and their work runs again"
                .into()
        }
        level => format!(
            "every answer is on the server's disk before it is given (synchronous_commit = {level})"
        ),
    }
}
