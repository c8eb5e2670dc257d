//! Servers that are away, slow, new, old, strict or behind a pooler.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use semel::protocol::{Claim, Claimed, Held, State};
use semel::store::StoreExt;
use semel::{Error, Outcome};
use semel_postgres::{Migrated, PostgresSettings, PostgresStore, migrate};
use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use support::{Bed, LEASE, RETENTION, claim, connect, granted, says, store_at};
use testbed::{PgBouncer, Postgres};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How long a store may take to find its server again: the longest pause between two attempts to
/// connect, twice, and a slow machine.
const RECOVERY_MAX: Duration = Duration::from_secs(10);

/// Why a store with these settings does not start.
async fn refused(settings: PostgresSettings) -> String {
    invalid(PostgresStore::connect(settings).await.unwrap_err())
}

fn unavailable(error: Error) -> String {
    let Error::Unavailable(why) = error else {
        panic!("not unavailable: {error}");
    };
    why.to_string()
}

fn invalid(error: Error) -> String {
    let Error::Invalid(why) = error else {
        panic!("not invalid: {error}");
    };
    why.to_string()
}

#[tokio::test]
async fn server_that_is_down_is_told_at_once() {
    let port = testbed::free_port().unwrap();
    let settings = PostgresSettings::new(format!("postgres://u:s3cret@127.0.0.1:{port}/shop"));
    let start = Instant::now();
    let error = PostgresStore::connect(settings).await.unwrap_err();
    assert!(error.source().is_some(), "{error:?}");
    let why = unavailable(error);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    let server = format!("127.0.0.1:{port}, database shop");
    says(&why, &[&server, "a retry is safe"]);
    assert!(!why.contains("s3cret"), "{why}");
}

#[tokio::test]
async fn server_that_does_not_answer_is_given_up() {
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = deaf.local_addr().unwrap().port();
    let mut settings = PostgresSettings::new(format!("postgres://u@127.0.0.1:{port}/shop"));
    settings.connect_timeout = Duration::from_millis(300);
    let why = unavailable(PostgresStore::connect(settings).await.unwrap_err());
    assert!(why.contains("longer than 300ms"), "{why}");
}

#[tokio::test]
async fn other_schemes_are_refused() {
    let settings = PostgresSettings::new("mysql://u:s3cret@127.0.0.1/shop");
    let why = refused(settings).await;
    assert!(why.contains("mysql://") && !why.contains("s3cret"), "{why}");
}

#[tokio::test]
async fn database_that_is_not_there_is_named() {
    let url = testbed::fresh_database("there").unwrap();
    let settings = PostgresSettings::new(format!("{url}_not"));
    let why = invalid(migrate(&settings).await.unwrap_err());
    says(&why, &["does not exist", "create the database"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_finds_a_restarted_server_by_itself() {
    let mut postgres = Postgres::start().unwrap();
    let url = postgres.create_database("restarted").unwrap();
    let store = store_at(&url).await;
    let lease = granted(store.claim(&claim()).await.unwrap());

    postgres.kill().unwrap();
    for _ in 0..3 {
        let start = Instant::now();
        let why = unavailable(store.claim(&claim()).await.unwrap_err());
        assert!(why.contains("a retry is safe"), "{why}");
        let took = start.elapsed();
        assert!(took < Duration::from_secs(4), "{took:?}");
    }

    postgres.restart().unwrap();
    let start = Instant::now();
    let result = Outcome::ok("after the crash").encode();
    let completed = loop {
        match store.complete(&lease, &result, RETENTION).await {
            Ok(held) => break held,
            Err(error) => assert!(start.elapsed() < RECOVERY_MAX, "{error}"),
        }
    };
    // The answer of an attempt can have been lost with its connection.
    assert!(
        matches!(completed, Held::Applied(_) | Held::Already(_)),
        "{completed:?}"
    );
    let record = store.look(&lease.key).await.unwrap().unwrap();
    assert_eq!(record.state, State::Succeeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_answer_is_given_up_and_the_next_call_works() {
    let bed = Bed::with("slow", |s| s.answer_timeout = Duration::from_millis(400)).await;
    let slow = claim();
    let key = slow.key.to_string();
    let trigger = on_insert(&format!(
        "IF 'v1_' || encode(NEW.key, 'hex') = '{key}' THEN PERFORM pg_sleep(3); END IF;"
    ));
    bed.execute(&trigger).await;
    let why = unavailable(bed.store.claim(&slow).await.unwrap_err());
    assert!(why.contains("within 400ms"), "{why}");
    bed.grant(&claim()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_item_does_not_spoil_its_group() {
    let bed = Bed::with("poison", |s| s.lanes = 1).await;
    let poison = claim();
    let key = poison.key.to_string();
    let trigger = on_insert(&format!(
        "IF 'v1_' || encode(NEW.key, 'hex') = '{key}' THEN RAISE EXCEPTION 'poison'; END IF;"
    ));
    bed.execute(&trigger).await;
    let mut callers = JoinSet::new();
    for n in 0..32 {
        let store = bed.store.clone();
        let bad = n == 11;
        let ask = if bad { poison.clone() } else { claim() };
        callers.spawn(async move {
            match store.claim(&ask).await {
                Ok(claimed) => assert!(!bad && matches!(claimed, Claimed::Granted(_))),
                Err(error) => assert!(bad && error.to_string().contains("poison"), "{error}"),
            }
        });
    }
    callers.join_all().await;
    assert_eq!(bed.ask::<i64>("SELECT count(*) FROM semel.rec").await, 31);
}

#[tokio::test(flavor = "multi_thread")]
async fn pool_never_has_more_connections_than_set() {
    let bed = Bed::with("pool", |s| s.pool_size = 3).await;
    let (stop, most) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicI64::new(0)),
    );
    let watch = {
        let (sql, stop, most) = (connect(&bed.url).await, stop.clone(), most.clone());
        tokio::spawn(async move {
            let count = "SELECT count(*) FROM pg_stat_activity \
                         WHERE application_name = 'semel' AND datname = current_database()";
            while !stop.load(Ordering::Relaxed) {
                let now: i64 = sql.query_one(count, &[]).await.unwrap().get(0);
                most.fetch_max(now, Ordering::Relaxed);
            }
        })
    };
    let mut callers = JoinSet::new();
    for _ in 0..100 {
        let store = bed.store.clone();
        callers.spawn(async move {
            for _ in 0..5 {
                let lease = granted(store.claim(&claim()).await.unwrap());
                assert!(store.look(&lease.key).await.unwrap().is_some());
                let renewed = store.renew(&lease, LEASE, RETENTION).await.unwrap();
                assert_eq!(renewed, Held::Applied(State::Running));
                let released = store.release(&lease).await.unwrap();
                assert_eq!(released, Held::Applied(State::Waiting));
            }
        });
    }
    callers.join_all().await;
    stop.store(true, Ordering::Relaxed);
    watch.await.unwrap();
    assert_eq!(most.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn schema_of_a_newer_version_is_refused() {
    let bed = Bed::new("newer").await;
    let newer = "INSERT INTO semel.migration (version) VALUES (99)";
    bed.execute(newer).await;
    for migrates in [true, false] {
        let mut settings = PostgresSettings::new(&bed.url);
        settings.migrate = migrates;
        let why = refused(settings).await;
        says(&why, &["version 99", &format!("up to {}", latest())]);
        says(&why, &["upgrade this semel", "a retry is not safe"]);
    }
}

#[tokio::test]
async fn schema_that_is_missing_is_made_only_if_asked() {
    let url = testbed::fresh_database("missing").unwrap();
    let mut settings = PostgresSettings::new(&url);
    settings.migrate = false;
    let why = refused(settings.clone()).await;
    says(&why, &["version 0", "run `semel migrate`"]);

    let migrated = migrate(&settings).await.unwrap();
    let expected = Migrated {
        from: 0,
        to: latest(),
        handler_role: true,
    };
    assert_eq!(migrated, expected);
    PostgresStore::connect(settings).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_migrate_at_once() {
    let url = testbed::fresh_database("at_once").unwrap();
    let mut all = JoinSet::new();
    for _ in 0..8 {
        let settings = PostgresSettings::new(&url);
        all.spawn(async move { migrate(&settings).await.unwrap().to });
    }
    assert_eq!(all.join_all().await, [latest(); 8]);
    let sql = connect(&url).await;
    let versions = "SELECT array_agg(version ORDER BY version) FROM semel.migration";
    let versions: Vec<i32> = sql.query_one(versions, &[]).await.unwrap().get(0);
    let all: Vec<i32> = (1..=i32::try_from(latest()).unwrap()).collect();
    assert_eq!(versions, all);
}

/// The version of the schema that this build makes: one per file.
fn latest() -> u32 {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations"));
    u32::try_from(files.unwrap().count()).unwrap()
}

#[tokio::test]
async fn user_who_may_not_create_roles_migrates_without() {
    let postgres = Postgres::start().unwrap();
    let url = postgres.create_database("plain").unwrap();
    let sql = connect(&url).await;
    let create = "CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE plain TO plain";
    sql.batch_execute(create).await.unwrap();
    let settings = PostgresSettings::new(url.replace("postgres@", "plain@"));
    let migrated = migrate(&settings).await.unwrap();
    assert!(!migrated.handler_role);
    let store = PostgresStore::connect(settings).await.unwrap();
    granted(store.claim(&claim()).await.unwrap());
}

#[tokio::test]
async fn user_who_may_not_create_the_schema_is_told() {
    let bed = Bed::new("rights").await;
    let url = testbed::fresh_database("rights").unwrap();
    let name = format!("nobody_{}", std::process::id());
    let create = format!("CREATE ROLE {name} LOGIN");
    bed.execute(&create).await;
    let settings = PostgresSettings::new(url.replace("postgres@", &format!("{name}@")));
    let why = invalid(migrate(&settings).await.unwrap_err());
    says(&why, &["permission denied", "grant the right"]);
}

#[tokio::test]
async fn pooler_that_was_not_mentioned_is_suspected() {
    let postgres = Postgres::start().unwrap();
    let pgbouncer = PgBouncer::start(&postgres.url()).unwrap();
    let settings = PostgresSettings::new(pgbouncer.url());
    let why = refused(settings).await;
    assert!(why.contains("set `pooler = true`"), "{why}");
}

#[tokio::test]
async fn strict_isolation_is_overridden_or_refused() {
    let bed = Bed::new("strict").await;
    let database: String = bed.ask("SELECT current_database()").await;
    let strict =
        format!("ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'");
    bed.execute(&strict).await;

    let mut settings = PostgresSettings::new(&bed.url);
    let store = PostgresStore::connect(settings.clone()).await.unwrap();
    granted(store.claim(&claim()).await.unwrap());
    settings.pooler = true;
    let why = refused(settings).await;
    says(&why, &["serializable", "read committed"]);
}

#[tokio::test]
async fn relaxed_are_only_claims_that_may_be_lost() {
    let bed = Bed::with("relaxed", |s| s.relaxed_claims = true).await;
    let note = "CREATE TABLE noted (what text, commit text);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
          INSERT INTO noted VALUES (TG_OP, current_setting('synchronous_commit')); RETURN NULL;
        END $f$;
        CREATE TRIGGER note AFTER INSERT OR UPDATE ON semel.rec FOR EACH ROW EXECUTE FUNCTION note();";
    bed.execute(note).await;
    let lease = bed.lease().await;
    bed.complete(&lease).await;
    let mut parks = claim();
    parks.in_doubt = semel::protocol::InDoubt::Park;
    bed.grant(&parks).await;

    let noted =
        "SELECT array_agg(what || ' ' || commit) FROM (SELECT * FROM noted ORDER BY ctid) n";
    let noted: Vec<String> = bed.ask(noted).await;
    assert_eq!(noted, ["INSERT off", "UPDATE on", "INSERT on"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_stay_in_their_page_and_records_have_one_index() {
    let bed = Bed::with("hot", |s| s.lanes = 1).await;
    let mut callers = JoinSet::new();
    for _ in 0..64 {
        let store = bed.store.clone();
        callers.spawn(async move {
            for n in 0..8 {
                // Labels are kept in another table.
                let label = if n % 2 == 0 { "" } else { "{\"order\": 7}" };
                let claim = Claim {
                    label: label.into(),
                    ..claim()
                };
                let lease = granted(store.claim(&claim).await.unwrap());
                let result = Outcome::ok(vec![b'x'; 100]).encode();
                let completed = store.complete(&lease, &result, RETENTION).await.unwrap();
                assert_eq!(completed, Held::Applied(State::Succeeded));
            }
        });
    }
    callers.join_all().await;
    let Bed { url, store, sql } = bed;
    drop((store, sql));
    // A server counts what a session did when the session ends, and that is not at once.
    let sql = connect(&url).await;
    let counted = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'rec'";
    let start = Instant::now();
    let (updates, in_page): (i64, i64) = loop {
        let row = sql.query_one(counted, &[]).await.unwrap();
        if row.get::<_, i64>(0) >= 512 {
            break (row.get(0), row.get(1));
        }
        assert!(
            start.elapsed() < RECOVERY_MAX,
            "the updates were never counted"
        );
        sleep(Duration::from_millis(50)).await;
    };
    assert_eq!((updates, in_page), (512, 512));
    let indexes =
        "SELECT count(*) FROM pg_indexes WHERE schemaname = 'semel' AND tablename = 'rec'";
    let indexes: i64 = sql.query_one(indexes, &[]).await.unwrap().get(0);
    assert_eq!(indexes, 1);
}

/// A trigger on new records.
fn on_insert(body: &str) -> String {
    format!(
        "CREATE FUNCTION on_insert() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN {body} RETURN NEW; END $f$;
         CREATE TRIGGER on_insert BEFORE INSERT ON semel.rec FOR EACH ROW EXECUTE FUNCTION on_insert();"
    )
}
