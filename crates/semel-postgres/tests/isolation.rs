//! A handler's transaction completes its run at every isolation level, however often the lease is renewed meanwhile; and at
//! every level it cannot once the run is no longer the owner.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may panic"
)]

mod support;

use semel::Outcome;
use semel::protocol::{Acted, Claimed, Finding, Held, InDoubt, Lease, Resolution, State};
use semel::store::StoreExt;
use semel_postgres::{CompleteError, PostgresSettings, complete_in, migrate};
use std::time::Duration;
use support::{Bed, LEASE, RETENTION, age, by_another, claim, connect};
use tokio_postgres::{Client, IsolationLevel, Transaction};

const LEVELS: [IsolationLevel; 3] = [
    IsolationLevel::ReadCommitted,
    IsolationLevel::RepeatableRead,
    IsolationLevel::Serializable,
];

/// How a handler completes.
#[derive(Clone, Copy, Debug)]
enum By {
    Sql,
    Rust,
}

/// What a handler may be told, by SQLSTATE or as the Rust function says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Completed,
    Stale,
    Already,
    /// 40001: PostgreSQL asks for the whole transaction again.
    Again,
}

impl By {
    const BOTH: [Self; 2] = [Self::Sql, Self::Rust];

    async fn complete(self, transaction: &Transaction<'_>, lease: &Lease) -> Told {
        match self {
            Self::Sql => {
                let fence = i64::try_from(lease.fence.0).unwrap();
                let call = "SELECT semel.complete($1, $2, 200, 'done')";
                let key = lease.key.to_string();
                match transaction.execute(call, &[&key, &fence]).await {
                    Ok(_) => Told::Completed,
                    Err(error) => Told::of(error.code().unwrap().code()),
                }
            }
            Self::Rust => match complete_in(transaction, lease, &Outcome::ok("done")).await {
                Ok(()) => Told::Completed,
                Err(CompleteError::Stale) => Told::Stale,
                Err(CompleteError::Already) => Told::Already,
                Err(CompleteError::Postgres(error)) => Told::of(error.code().unwrap().code()),
                Err(CompleteError::Store(error)) => panic!("{error}"),
            },
        }
    }
}

impl Told {
    fn of(code: &str) -> Self {
        match code {
            "SM001" => Self::Stale,
            "SM002" => Self::Already,
            "40001" => Self::Again,
            other => panic!("unexpected SQLSTATE {other}"),
        }
    }
}

/// A database with a table for effects.
async fn bed(name: &str) -> Bed {
    let bed = Bed::new(name).await;
    let table = "CREATE TABLE effect (fence bigint)";
    bed.execute(table).await;
    bed
}

/// A transaction that has taken its snapshot, and its effect with it.
async fn begin<'a>(
    handler: &'a mut Client,
    level: IsolationLevel,
    lease: &Lease,
) -> Transaction<'a> {
    let transaction = handler.build_transaction().isolation_level(level);
    let transaction = transaction.start().await.unwrap();
    let fence = i64::try_from(lease.fence.0).unwrap();
    let effect = "INSERT INTO effect VALUES ($1)";
    transaction.execute(effect, &[&fence]).await.unwrap();
    transaction
}

async fn renew(bed: &Bed, lease: &Lease, times: u32) {
    for _ in 0..times {
        let held = bed.store.renew(lease, LEASE, RETENTION).await.unwrap();
        assert_eq!(held, Held::Applied(State::Running));
    }
}

#[tokio::test]
async fn handler_commits_over_three_renewals_without_a_retry() {
    let bed = bed("renewals").await;
    let mut handler = connect(&bed.url).await;
    for level in LEVELS {
        for by in By::BOTH {
            for before in [0, 1] {
                let ask = claim();
                let lease = bed.grant(&ask).await;
                renew(&bed, &lease, before).await;
                let transaction = begin(&mut handler, level, &lease).await;
                renew(&bed, &lease, 3).await;
                let told = by.complete(&transaction, &lease).await;
                assert_eq!(told, Told::Completed, "{by:?} at {level:?}");
                transaction.commit().await.unwrap();
                let settled = bed.replays(&ask).await;
                assert!(settled.keep > RETENTION - Duration::from_secs(60));
            }
        }
    }
    assert_eq!(bed.ask::<i64>("SELECT count(*) FROM effect").await, 12);
}

#[tokio::test]
async fn handler_commits_over_a_retention_that_a_keeper_prolonged() {
    let bed = bed("retained").await;
    let mut handler = connect(&bed.url).await;
    let longer = RETENTION * 10;
    for level in LEVELS {
        for by in By::BOTH {
            let ask = claim();
            let lease = bed.grant(&ask).await;
            let transaction = begin(&mut handler, level, &lease).await;
            let retained = bed.store.retain(&lease.key, longer).await;
            assert_eq!(retained, Ok(Acted::Applied));
            let told = by.complete(&transaction, &lease).await;
            assert_eq!(told, Told::Completed, "{by:?} at {level:?}");
            transaction.commit().await.unwrap();
            let record = bed.store.look(&lease.key).await.unwrap().unwrap();
            assert!(record.expires_at.since(record.lease_until) > longer - LEASE);
        }
    }
}

/// What a keeper prolonged is beside the record: a replay must say the same as a look.
#[tokio::test]
async fn failure_is_replayed_with_the_retention_that_a_keeper_prolonged() {
    let bed = bed("retained_failure").await;
    let ask = claim();
    let lease = bed.grant(&ask).await;
    age(&bed.sql, LEASE * 2).await;
    let decided = Resolution::new(Finding::Failed(Outcome::new(500, "no").encode()));
    let decided = decided.of_run(lease.fence);
    let acted = bed.store.resolve(&lease.key, &decided, "").await;
    assert_eq!(acted, Ok(Acted::Applied));
    let longer = RETENTION * 10;
    let retained = bed.store.retain(&lease.key, longer).await;
    assert_eq!(retained, Ok(Acted::Applied));
    assert!(bed.replays(&ask).await.keep > longer - LEASE);
}

#[tokio::test]
async fn handler_commits_while_a_renewal_is_under_way() {
    let bed = bed("under_way").await;
    let mut handler = connect(&bed.url).await;
    for level in LEVELS {
        let lease = bed.lease().await;
        let transaction = begin(&mut handler, level, &lease).await;
        let mut renewing = connect(&bed.url).await;
        // What a renewal does, held open: the handler waits for it, and goes on when it has committed.
        let open = renewing.transaction().await.unwrap();
        let key = lease.key.as_bytes().as_slice();
        let lock = "SELECT FROM semel.rec WHERE key = $1 FOR NO KEY UPDATE";
        open.execute(lock, &[&key]).await.unwrap();
        let completing = By::Sql.complete(&transaction, &lease);
        let committing = async {
            bed.until_somebody_waits().await;
            open.commit().await.unwrap();
        };
        let (told, ()) = tokio::join!(completing, committing);
        assert_eq!(told, Told::Completed, "{level:?}");
        transaction.commit().await.unwrap();
        assert_eq!(bed.state(&lease).await, State::Succeeded);
    }
}

#[tokio::test]
async fn overtaken_run_never_commits() {
    let bed = bed("overtaken").await;
    let mut handler = connect(&bed.url).await;
    for level in LEVELS {
        for by in By::BOTH {
            let ask = claim();
            let lease = bed.grant(&ask).await;
            renew(&bed, &lease, 1).await;
            let transaction = begin(&mut handler, level, &lease).await;
            renew(&bed, &lease, 1).await;
            age(&bed.sql, LEASE * 2).await;
            let next = bed.grant(&by_another(&ask)).await;
            assert!(next.fence > lease.fence);
            let told = by.complete(&transaction, &lease).await;
            assert_eq!(told, refused_at(level), "{by:?} at {level:?}");
            transaction.rollback().await.unwrap();

            let transaction = begin(&mut handler, level, &lease).await;
            assert_eq!(by.complete(&transaction, &lease).await, Told::Stale);
            transaction.rollback().await.unwrap();
            assert_eq!(bed.state(&next).await, State::Running);
        }
    }
    assert_eq!(bed.ask::<i64>("SELECT count(*) FROM effect").await, 0);
}

/// What a transaction hears whose record was written after its snapshot.
fn refused_at(level: IsolationLevel) -> Told {
    match level {
        IsolationLevel::ReadCommitted => Told::Stale,
        _ => Told::Again,
    }
}

#[tokio::test]
async fn run_that_an_operator_resolved_never_commits() {
    let bed = bed("resolved").await;
    let mut handler = connect(&bed.url).await;
    for level in LEVELS {
        let mut ask = claim();
        ask.in_doubt = InDoubt::Park;
        let lease = bed.grant(&ask).await;
        let transaction = begin(&mut handler, level, &lease).await;
        renew(&bed, &lease, 1).await;
        age(&bed.sql, LEASE * 2).await;
        let parked = bed.store.claim(&by_another(&ask)).await.unwrap();
        assert_eq!(parked, Claimed::Parked);
        let decided = Resolution::new(Finding::Failed(Outcome::new(500, "no").encode()));
        let acted = bed.store.resolve(&lease.key, &decided, "").await.unwrap();
        assert_eq!(acted, Acted::Applied);
        let told = By::Sql.complete(&transaction, &lease).await;
        assert_eq!(told, refused_at(level), "{level:?}");
        transaction.rollback().await.unwrap();
        assert_eq!(bed.state(&lease).await, State::Failed);
    }
}

#[tokio::test]
async fn claim_sees_a_completion_that_is_not_committed_as_busy() {
    let bed = bed("uncommitted").await;
    let mut handler = connect(&bed.url).await;
    for level in LEVELS {
        let ask = claim();
        let lease = bed.grant(&ask).await;
        renew(&bed, &lease, 1).await;
        age(&bed.sql, LEASE * 2).await;
        let transaction = begin(&mut handler, level, &lease).await;
        let told = By::Sql.complete(&transaction, &lease).await;
        assert_eq!(told, Told::Completed);
        let waiting = bed.store.claim(&by_another(&ask)).await.unwrap();
        assert!(matches!(waiting, Claimed::Busy { .. }), "{waiting:?}");
        transaction.commit().await.unwrap();
        bed.replays(&ask).await;
    }
}

#[tokio::test]
async fn renewed_lease_is_not_taken_over() {
    let bed = bed("renewed").await;
    let mut ask = claim();
    ask.lease = Duration::from_millis(1);
    let lease = bed.grant(&ask).await;
    renew(&bed, &lease, 1).await;
    let told = bed.store.claim(&by_another(&ask)).await.unwrap();
    let Claimed::Busy { retry_after } = told else {
        panic!("the renewal is not seen: {told:?}");
    };
    assert!(retry_after > LEASE - Duration::from_secs(10));
    let forgotten = bed.store.forget(&lease.key).await.unwrap();
    assert_eq!(forgotten, Acted::Refused);
    assert_eq!(bed.grant(&ask).await.fence, lease.fence);

    age(&bed.sql, LEASE).await;
    let next = bed.grant(&by_another(&ask)).await;
    let late = bed.store.renew(&lease, LEASE, RETENTION).await.unwrap();
    assert_eq!(late, Held::Stale);
    assert_eq!(bed.state(&next).await, State::Running);
}

/// The handler's snapshot is older than the renewal, so its completion cannot know what the renewal promised.
#[tokio::test]
async fn retention_ends_no_earlier_than_a_renewal_promised() {
    let bed = bed("promised").await;
    let mut handler = connect(&bed.url).await;
    let ask = claim();
    let lease = bed.grant(&ask).await;
    let transaction = begin(&mut handler, IsolationLevel::RepeatableRead, &lease).await;
    let longer = RETENTION * 10;
    let held = bed.store.renew(&lease, LEASE, longer).await.unwrap();
    assert_eq!(held, Held::Applied(State::Running));
    let told = By::Sql.complete(&transaction, &lease).await;
    assert_eq!(told, Told::Completed);
    transaction.commit().await.unwrap();

    age(&bed.sql, RETENTION * 2).await;
    bed.sweep().await;
    bed.replays(&ask).await;
    age(&bed.sql, longer).await;
    bed.sweep().await;
    for table in ["rec", "renewal"] {
        let count = format!("SELECT count(*) FROM semel.{table}");
        assert_eq!(bed.ask::<i64>(&count).await, 0, "{table}");
    }
}

#[tokio::test]
async fn renewals_of_runs_that_are_over_are_swept() {
    let bed = bed("over").await;
    let done = bed.lease().await;
    let running = bed.lease().await;
    renew(&bed, &done, 1).await;
    renew(&bed, &running, 1).await;
    bed.complete(&done).await;
    bed.sweep().await;
    let left = "SELECT fence FROM semel.renewal";
    assert_eq!(
        bed.ask::<i64>(left).await,
        i64::try_from(running.fence.0).unwrap()
    );
    // Its end was written with the completion.
    let record = bed.store.look(&done.key).await.unwrap().unwrap();
    assert!(record.expires_at.since(record.lease_until) > RETENTION + LEASE / 2);
}

/// A database that an earlier build made, with a run in hand, is brought up to date and goes on.
#[tokio::test]
async fn run_of_an_older_schema_goes_on_after_the_migration() {
    let url = testbed::fresh_database("older").unwrap();
    let sql = connect(&url).await;
    let ask = claim();
    sql.batch_execute("CREATE SCHEMA semel; CREATE TABLE semel.migration (version int NOT NULL PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp()); INSERT INTO semel.migration VALUES (1), (2)").await.unwrap();
    for old in [
        include_str!("../migrations/0001_store.sql"),
        include_str!("../migrations/0002_key.sql"),
    ] {
        sql.batch_execute(old).await.unwrap();
    }
    let row = "INSERT INTO semel.rec VALUES ($1, $2, 1, 1, 5, 5, $3::text::uuid, now() + interval '30 s', now() + interval '1 h')";
    let (key, fp) = (
        ask.key.as_bytes().as_slice(),
        ask.fingerprint.as_bytes().as_slice(),
    );
    let owner = ask.owner.to_string();
    sql.execute(row, &[&key, &fp, &owner]).await.unwrap();

    let migrated = migrate(&PostgresSettings::new(&url)).await.unwrap();
    assert_eq!(migrated.from, 2);
    let bed = Bed::at(&url, &url, |_| {}).await;
    let lease = bed.grant(&ask).await;
    assert_eq!(lease.fence.0, 5);
    renew(&bed, &lease, 1).await;
    bed.complete(&lease).await;
}
