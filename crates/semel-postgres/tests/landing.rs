//! Landing in a table: what is acknowledged is committed, whatever happens to the process, the connection or a row.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

#[path = "../../semel-landing/tests/ending/mod.rs"]
mod ending;
mod support;

use bytes::Bytes;
use ending::{acknowledged, land_until_the_end};
use semel::Error;
use semel_landing::failpoint::Point;
use semel_landing::{Answer, Fault, Landing, NotLanded, Row};
use semel_postgres::{PostgresSettings, TableSettings, TableSink};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_postgres::Client;

const PATIENCE: Duration = Duration::from_secs(20);

/// What `semel warehouse sql` prints.
const TABLES: &str = include_str!("../../../warehouse/sql/postgres/ddl.sql");
const TABLES_WITH_ANSWER: &str = include_str!("../../../warehouse/sql/postgres/ddl.answer.sql");

struct Bed {
    url: String,
    sql: Client,
}

impl Bed {
    async fn new(name: &str, tables: &str) -> Self {
        let url = testbed::fresh_database(name).unwrap();
        let sql = support::connect(&url).await;
        sql.batch_execute(tables).await.unwrap();
        Self { url, sql }
    }

    fn sink(&self, answers: bool) -> TableSink {
        sink(&self.url, answers)
    }

    async fn ids(&self, table: &str) -> Vec<String> {
        let query = format!("SELECT delivery_id FROM {table} ORDER BY delivery_id COLLATE \"C\"");
        let rows = self.sql.query(&query, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Why a sink for these tables is refused.
    async fn refusal(name: &str, tables: &str) -> String {
        let bed = Self::new(name, tables).await;
        match bed.sink(false).check().await {
            Err(Error::Invalid(why)) => why.to_string(),
            other => panic!("{other:?}"),
        }
    }
}

fn sink(url: &str, answers: bool) -> TableSink {
    let settings = TableSettings {
        database: PostgresSettings::new(url),
        table: "landing".parse().unwrap(),
        answers,
    };
    TableSink::new(settings).unwrap()
}

fn row(id: &str) -> Row {
    let mut row = Row::new("pubsub", "{}").named("v1_7", "f0");
    row.delivery_id = id.into();
    row
}

async fn land(landing: &Landing, row: Row) -> Result<usize, NotLanded> {
    let landed = landing.land(row, PATIENCE).await;
    landed.map(|landed| landed.group_rows)
}

#[tokio::test]
async fn a_landing_that_rejected_a_write_is_ready_after_a_marker() {
    let bed = Bed::new("land_marker", TABLES_WITH_ANSWER).await;
    let landing = Landing::begin(bed.sink(true));
    let alter = async |sql: &str| bed.sql.batch_execute(sql).await.unwrap();
    alter("ALTER TABLE landing RENAME TO away").await;
    let refused = land(&landing, row("refused")).await.unwrap_err();
    assert_eq!(landing.ready(PATIENCE).await, Err(refused));
    alter("ALTER TABLE away RENAME TO landing").await;
    while landing.ready(PATIENCE).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(bed.ids("landing").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_row_has_every_column_as_it_came() {
    let bed = Bed::new("land_columns", TABLES_WITH_ANSWER).await;
    let says = bed.sink(true).check().await.unwrap();
    assert!(says.contains("synchronous_commit"), "{says}");
    let landing = Landing::begin(bed.sink(true));
    let text = "a\tb\\N\n\r\\.\u{1f600}";
    let mut odd = row("odd");
    odd.payload = Bytes::from(text);
    odd.message_id = text.into();
    odd.published_at = "2026-11-17T10:00:00.123456Z".parse().unwrap();
    odd.attempt = Some(u64::MAX);
    odd.version = -7;
    let body = Bytes::from(text);
    odd.answer = Some(Answer { status: 201, body });
    land(&landing, odd).await.unwrap();
    let query = "SELECT payload, message_id, answer, answer_status, attempt, version, \
                 published_at = '2026-11-17 10:00:00.123456+00', event_id FROM landing";
    let found = bed.sql.query_one(query, &[]).await.unwrap();
    for column in 0..3 {
        assert_eq!(found.get::<_, &str>(column), text);
    }
    assert_eq!(
        (found.get::<_, i32>(3), found.get::<_, i64>(4)),
        (201, i64::MAX)
    );
    assert_eq!(
        (found.get::<_, i64>(5), found.get::<_, bool>(6)),
        (-7, true)
    );
    assert_eq!(found.get::<_, &str>(7), "v1_7");
}

#[tokio::test]
async fn faults_have_a_table_of_their_own_and_keep_bytes() {
    let bed = Bed::new("land_faults", TABLES).await;
    let landing = Landing::begin(bed.sink(false));
    let mut invalid = row("invalid");
    (invalid.event_id, invalid.fingerprint) = (None, None);
    let (word, detail) = ("key-part-missing", "there is no /order\0".to_owned());
    invalid.fault = Some(Fault { word, detail });
    invalid.payload = Bytes::from_static(b"\x00\xff\\");
    land(&landing, invalid).await.unwrap();
    land(&landing, row("good")).await.unwrap();
    assert_eq!(bed.ids("landing").await, ["good"]);
    let query = "SELECT event_id, fault, detail, payload FROM landing_faults";
    let fault = bed.sql.query_one(query, &[]).await.unwrap();
    assert_eq!(fault.get::<_, Option<&str>>(0), None);
    assert_eq!(fault.get::<_, &str>(1), "key-part-missing");
    assert_eq!(fault.get::<_, &[u8]>(3), b"\x00\xff\\");
}

#[tokio::test]
async fn one_row_that_is_refused_does_not_keep_the_others_from_landing() {
    let bed = Bed::new("land_halves", TABLES).await;
    let limit = "ALTER TABLE landing ADD CHECK (delivery_id <> '07')";
    bed.sql.batch_execute(limit).await.unwrap();
    let landing = Landing::begin(bed.sink(false));
    let all = (0..20).map(|n| {
        let landing = landing.clone();
        tokio::spawn(async move { land(&landing, row(&format!("{n:02}"))).await })
    });
    for one in all.collect::<Vec<_>>() {
        one.await.unwrap().unwrap();
    }
    assert_eq!(bed.ids("landing").await.len(), 19);
    assert_eq!(bed.ids("landing_faults").await, ["07"]);
    let query = "SELECT fault, detail, payload FROM landing_faults";
    let fault = bed.sql.query_one(query, &[]).await.unwrap();
    assert_eq!(fault.get::<_, &str>(0), "row-refused");
    let detail: &str = fault.get(1);
    assert!(detail.contains("(23514)"), "{detail}");
    assert_eq!(fault.get::<_, &[u8]>(2), b"{}");
}

#[tokio::test]
async fn what_a_trigger_drops_without_a_word_is_not_acknowledged_as_landed() {
    let bed = Bed::new("land_trigger", TABLES).await;
    let drops = |table: &str| {
        format!(
            "CREATE TRIGGER drops BEFORE INSERT ON {table} FOR EACH ROW WHEN (NEW.delivery_id = '1') EXECUTE FUNCTION drops()"
        )
    };
    let function =
        "CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'";
    bed.sql.batch_execute(function).await.unwrap();
    bed.sql.batch_execute(&drops("landing")).await.unwrap();
    let landing = Landing::begin(bed.sink(false));
    land(&landing, row("1")).await.unwrap();
    land(&landing, row("2")).await.unwrap();
    assert_eq!(bed.ids("landing").await, ["2"]);
    assert_eq!(bed.ids("landing_faults").await, ["1"]);
    bed.sql
        .batch_execute(&format!(
            "DELETE FROM landing_faults; {}",
            drops("landing_faults")
        ))
        .await
        .unwrap();
    land(&landing, row("1")).await.unwrap_err();
    assert!(bed.ids("landing_faults").await.is_empty());
}

#[tokio::test]
async fn a_table_that_a_crash_would_empty_by_now_takes_nothing() {
    let bed = Bed::new("land_altered", TABLES).await;
    let landing = Landing::begin(bed.sink(false));
    land(&landing, row("1")).await.unwrap();
    for (table, id) in [("landing", "2"), ("landing_faults", "3")] {
        let alter = |to: &str| format!("ALTER TABLE {table} SET {to}");
        bed.sql.batch_execute(&alter("UNLOGGED")).await.unwrap();
        let why = land(&landing, row(id)).await.unwrap_err().to_string();
        assert!(why.contains("UNLOGGED"), "{why}");
        bed.sql.batch_execute(&alter("LOGGED")).await.unwrap();
    }
    land(&landing, row("4")).await.unwrap();
    assert_eq!(bed.ids("landing").await, ["1", "4"]);
}

#[tokio::test]
async fn whatever_code_a_trigger_raises_its_row_is_a_fault() {
    let bed = Bed::new("land_raises", TABLES).await;
    let raises = "CREATE FUNCTION raises() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE 'not this one' USING errcode = NEW.payload; END $$; \
         CREATE TRIGGER raises BEFORE INSERT ON landing FOR EACH ROW WHEN (NEW.payload <> '{}') \
         EXECUTE FUNCTION raises()";
    bed.sql.batch_execute(raises).await.unwrap();
    let landing = Landing::begin(bed.sink(false));
    for code in ["SH001", "21000", "38000", "P0001", "22023"] {
        let mut refused = row(code);
        refused.payload = code.into();
        land(&landing, refused).await.unwrap();
    }
    land(&landing, row("good")).await.unwrap();
    assert_eq!(bed.ids("landing").await, ["good"]);
    assert_eq!(bed.ids("landing_faults").await.len(), 5);
}

#[tokio::test]
async fn a_table_that_is_dropped_meanwhile_is_named_with_what_to_do() {
    let bed = Bed::new("land_dropped", TABLES).await;
    let landing = Landing::begin(bed.sink(false));
    land(&landing, row("1")).await.unwrap();
    bed.sql.batch_execute("DROP TABLE landing").await.unwrap();
    let why = land(&landing, row("2")).await.unwrap_err().to_string();
    assert!(why.contains("semel warehouse sql"), "{why}");
    assert!(!why.contains("migrate"), "{why}");
}

#[tokio::test]
async fn a_table_that_rows_could_not_land_in_is_refused_with_what_to_do() {
    let missing = Bed::refusal("land_none", "SELECT 1").await;
    assert!(
        missing.contains("there is no table \"landing\""),
        "{missing}"
    );
    assert!(
        missing.contains("semel warehouse sql --dialect postgres --part ddl"),
        "{missing}"
    );
    for (name, change, says) in [
        (
            "land_column",
            "ALTER TABLE landing DROP version, DROP attempt",
            "lacks attempt, version",
        ),
        (
            "land_unlogged",
            "ALTER TABLE landing SET UNLOGGED",
            "UNLOGGED",
        ),
        (
            "land_faultless",
            "DROP TABLE landing_faults",
            "there is no table \"landing_faults\"",
        ),
        (
            "land_needs",
            "ALTER TABLE landing ADD tenant text NOT NULL",
            "needs tenant, which nobody gives",
        ),
        (
            "land_type",
            "ALTER TABLE landing ALTER published_at TYPE date",
            "has published_at as date, which must be timestamp with time zone",
        ),
        (
            "land_view",
            "DROP TABLE landing; CREATE VIEW landing AS SELECT 1",
            "is not a table",
        ),
    ] {
        let why = Bed::refusal(name, &format!("{TABLES};{change}")).await;
        assert!(why.contains(says), "{change}: {why}");
    }
    let bed = Bed::new(
        "land_default",
        &format!("{TABLES}; ALTER TABLE landing ADD tenant text DEFAULT 'a'"),
    )
    .await;
    bed.sink(false).check().await.unwrap();
    let error = bed.sink(true).check().await.unwrap_err().to_string();
    assert!(error.contains("lacks answer_status, answer"), "{error}");
    assert!(error.contains("--part ddl --answer`"), "{error}");
}

#[tokio::test]
async fn row_level_security_is_refused_because_nothing_can_be_copied_under_it() {
    let bed = Bed::new("land_rows", TABLES).await;
    let guarded = "DO $$ BEGIN CREATE ROLE land_rows LOGIN; EXCEPTION WHEN duplicate_object THEN END $$; \
         GRANT INSERT ON landing, landing_faults TO land_rows; \
         ALTER TABLE landing ENABLE ROW LEVEL SECURITY";
    bed.sql.batch_execute(guarded).await.unwrap();
    let url = bed.url.replacen("postgres@", "land_rows@", 1);
    let why = sink(&url, false).check().await.unwrap_err().to_string();
    assert!(why.contains("has row-level security"), "{why}");
    bed.sink(false).check().await.unwrap();
}

#[tokio::test]
async fn a_connection_that_is_cut_is_not_an_acknowledgement_and_the_next_group_has_another() {
    let bed = Bed::new("land_cut", TABLES).await;
    let landing = Landing::begin(bed.sink(false));
    land(&landing, row("a")).await.unwrap();
    // The group waits for a lock longer than it may.
    let mut other = support::connect(&bed.url).await;
    let held = other.transaction().await.unwrap();
    held.batch_execute("LOCK landing").await.unwrap();
    let why = land(&landing, row("b")).await.unwrap_err().to_string();
    assert!(
        why.contains("holds a lock on the table; a retry is safe"),
        "{why}"
    );
    held.rollback().await.unwrap();
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    bed.sql.batch_execute(end).await.unwrap();
    let mut tries = 0;
    while land(&landing, row("c")).await.is_err() {
        tries += 1;
        assert!(tries < 3, "the next group has a connection of its own");
    }
    assert_eq!(bed.ids("landing").await, ["a", "c"]);
    // A table that changes under the gate is no row's fault.
    let change = "ALTER TABLE landing DROP payload";
    bed.sql.batch_execute(change).await.unwrap();
    land(&landing, row("d")).await.unwrap_err();
    assert!(bed.ids("landing_faults").await.is_empty());
}

#[tokio::test]
async fn a_commit_that_no_longer_waits_for_its_standby_is_unknown() {
    let settings = [("synchronous_standby_names", "nobody")];
    let server = testbed::Postgres::start_with(&settings).unwrap();
    let sql = support::connect(&server.url()).await;
    let local = "SET synchronous_commit = local";
    sql.batch_execute(&format!("{local};{TABLES}"))
        .await
        .unwrap();
    let landing = Landing::begin(sink(&server.url(), false));
    let waiting = tokio::spawn({
        let landing = landing.clone();
        async move { land(&landing, row("a")).await }
    });
    let cancel =
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    loop {
        let cancelled: i64 = sql.query_one(cancel, &[]).await.unwrap().get(0);
        if cancelled > 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    let why = waiting.await.unwrap().unwrap_err().to_string();
    assert!(why.contains("its standby has it is unknown"), "{why}");
    // It is there, and lands again when it is delivered again.
    let landed: i64 = sql
        .query_one("SELECT count(*) FROM landing", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(landed, 1);
}

#[test]
fn the_process_that_ends() {
    land_until_the_end(|url| sink(url, false));
}

#[tokio::test]
async fn what_was_acknowledged_is_committed_wherever_the_process_ended() {
    let mut seen = 0;
    for point in [Point::BeforeWrite, Point::Written, Point::Durable] {
        for nth in [1, 4] {
            let bed = Bed::new("land_killed", TABLES).await;
            let acknowledged = acknowledged(&bed.url, point, nth);
            let landed: BTreeSet<_> = bed.ids("landing").await.into_iter().collect();
            assert!(
                acknowledged.is_subset(&landed),
                "{point:?} {nth}: {acknowledged:?} of {landed:?}"
            );
            seen += acknowledged.len();
        }
    }
    assert!(seen > 5, "only {seen} rows were acknowledged at all");
}
