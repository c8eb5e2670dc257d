//! Completion inside a transaction: `semel.complete` and `semel.once` in SQL, `complete_in` in Rust.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use semel::Outcome;
use semel::protocol::{Claimed, Ending, Held, Lease, State};
use semel::store::StoreExt;
use semel_postgres::{CompleteError, PostgresSettings, PostgresStore, complete_in};
use std::time::Duration;
use support::{Bed, LEASE, RETENTION, age, by_another, claim, connect};
use tokio_postgres::Client;

/// Calls `semel.complete` and tells its code when it refused.
async fn complete(sql: &Client, lease: &Lease) -> Result<(), String> {
    complete_with(sql, &lease.key.to_string(), lease.fence.0, 201, "{}").await
}

async fn complete_with(
    sql: &Client,
    key: &str,
    fence: u64,
    status: i32,
    headers: &str,
) -> Result<(), String> {
    let fence = i64::try_from(fence).unwrap();
    let call = "SELECT semel.complete($1, $2, $3, 'done', $4::text::jsonb)";
    let answer = sql.execute(call, &[&key, &fence, &status, &headers]).await;
    answer.map(|_| ()).map_err(|error| code(&error))
}

fn code(error: &tokio_postgres::Error) -> String {
    error.code().expect("the server answered").code().to_owned()
}

async fn once(sql: &Client, name: &str) -> bool {
    let row = sql.query_one("SELECT semel.once($1)", &[&name]).await;
    row.unwrap().get(0)
}

#[tokio::test]
async fn effect_and_outcome_commit_together() {
    let bed = Bed::new("together").await;
    let stock = "CREATE TABLE stock (n int); INSERT INTO stock VALUES (7)";
    bed.execute(stock).await;
    let mut handler = connect(&bed.url).await;
    let ask = claim();
    let lease = bed.grant(&ask).await;

    let take = "UPDATE stock SET n = n - 1";
    let transaction = handler.transaction().await.unwrap();
    transaction.execute(take, &[]).await.unwrap();
    complete(transaction.client(), &lease).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(bed.state(&lease).await, State::Running);
    assert_eq!(bed.ask::<i32>("SELECT n FROM stock").await, 7);

    let transaction = handler.transaction().await.unwrap();
    transaction.execute(take, &[]).await.unwrap();
    let headers = r#"{"Content-Type": "text/plain", "x-many": ["a", "b"]}"#;
    let key = lease.key.to_string();
    complete_with(transaction.client(), &key, lease.fence.0, 201, headers)
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(bed.ask::<i32>("SELECT n FROM stock").await, 6);

    let settled = bed.replays(&ask).await;
    assert_eq!(settled.ending, Ending::Succeeded);
    let expected = Outcome::new(201, "done")
        .with_header("content-type", "text/plain")
        .with_header("x-many", "a")
        .with_header("x-many", "b");
    assert_eq!(Outcome::decode(&settled.result).unwrap(), expected);
    // The retention is the one the claim asked for, counted from now.
    assert!(
        settled.keep > RETENTION - Duration::from_secs(60),
        "{settled:?}"
    );
}

#[tokio::test]
async fn late_word_of_the_gate_meets_what_the_handler_settled() {
    let bed = Bed::new("settled").await;
    let lease = bed.lease().await;
    complete(&bed.sql, &lease).await.unwrap();
    let held = bed.store.renew(&lease, LEASE, RETENTION).await.unwrap();
    assert!(matches!(held, Held::Settled(_)), "{held:?}");
    let held = bed.store.release(&lease).await.unwrap();
    assert!(matches!(held, Held::Settled(_)), "{held:?}");
    let result = Outcome::ok("other").encode();
    let held = bed.store.complete(&lease, &result, RETENTION).await;
    assert_eq!(held, Ok(Held::Already(State::Succeeded)));
}

#[tokio::test]
async fn second_call_is_already_completed() {
    let bed = Bed::new("second").await;
    let lease = bed.lease().await;
    complete(&bed.sql, &lease).await.unwrap();
    assert_eq!(complete(&bed.sql, &lease).await, Err("SM002".into()));
}

#[tokio::test]
async fn overtaken_or_ended_run_is_stale() {
    let bed = Bed::new("stale").await;
    let ask = claim();
    let first = bed.grant(&ask).await;
    age(&bed.sql, LEASE).await;
    let second = bed.grant(&by_another(&ask)).await;
    assert_eq!(complete(&bed.sql, &first).await, Err("SM001".into()));
    assert_eq!(bed.state(&second).await, State::Running);

    let released = bed.store.release(&second).await.unwrap();
    assert_eq!(released, Held::Applied(State::Waiting));
    assert_eq!(complete(&bed.sql, &second).await, Err("SM001".into()));

    let unknown = claim().key.to_string();
    let refused = complete_with(&bed.sql, &unknown, 1, 200, "{}").await;
    assert_eq!(refused, Err("SM001".into()));
}

#[tokio::test]
async fn lapsed_but_not_overtaken_run_completes() {
    let bed = Bed::new("lapsed").await;
    let lease = bed.lease().await;
    age(&bed.sql, LEASE * 2).await;
    complete(&bed.sql, &lease).await.unwrap();
    assert_eq!(bed.state(&lease).await, State::Succeeded);
}

#[tokio::test]
async fn bad_arguments_are_refused() {
    let bed = Bed::new("bad").await;
    let lease = bed.lease().await;
    let key = lease.key.to_string();
    let upper = key.to_uppercase();
    let bad = [
        ("v1_12", 200, "{}"),
        (upper.as_str(), 200, "{}"),
        (key.as_str(), 99, "{}"),
        (key.as_str(), 600, "{}"),
        (key.as_str(), 200, "[]"),
        (key.as_str(), 200, r#"{"x": 1}"#),
        (key.as_str(), 200, r#"{"x": null}"#),
        (key.as_str(), 200, r#"{"x": ["a", 1]}"#),
        (key.as_str(), 200, r#"{"x": {"y": "z"}}"#),
    ];
    for (key, status, headers) in bad {
        let refused = complete_with(&bed.sql, key, lease.fence.0, status, headers).await;
        assert_eq!(refused, Err("SM003".into()), "{key} {status} {headers}");
    }
    for call in [
        "SELECT semel.complete(NULL, 1, 200, '')",
        "SELECT semel.once(NULL)",
        "SELECT semel.once('x', interval '0')",
        "SELECT semel.once('x', NULL)",
    ] {
        let error = bed.sql.execute(call, &[]).await.unwrap_err();
        assert_eq!(code(&error), "SM003", "{call}");
    }
    assert_eq!(bed.state(&lease).await, State::Running);
}

#[tokio::test]
async fn handlers_need_no_more_than_their_role() {
    let bed = Bed::new("role").await;
    let lease = bed.lease().await;
    let name = format!("handler_{}", std::process::id());
    let user = format!("CREATE ROLE {name} LOGIN IN ROLE semel_handler");
    bed.execute(&user).await;
    let handler = connect(&bed.url.replace("postgres@", &format!("{name}@"))).await;
    assert!(once(&handler, "by the handler").await);
    complete(&handler, &lease).await.unwrap();
    for forbidden in [
        "SELECT 1 FROM semel.rec",
        "DELETE FROM semel.letter",
        "SELECT semel.outcome(200, '{}', '')",
    ] {
        let error = handler.execute(forbidden, &[]).await.unwrap_err();
        assert_eq!(code(&error), "42501", "{forbidden}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_is_true_exactly_once() {
    let bed = Bed::new("once").await;
    let mut callers = Vec::new();
    for _ in 0..16 {
        let sql = connect(&bed.url).await;
        callers.push(tokio::spawn(async move {
            let mut mine = 0;
            for name in 0..20 {
                mine += u32::from(once(&sql, &format!("name {name}")).await);
            }
            mine
        }));
    }
    let mut all = 0;
    for caller in callers {
        all += caller.await.unwrap();
    }
    assert_eq!(all, 20);
}

#[tokio::test]
async fn once_waits_for_the_first_and_is_true_if_that_rolled_back() {
    let bed = Bed::new("once_waits").await;
    for (commits, second_is) in [(false, true), (true, false)] {
        let name = format!("commits: {commits}");
        let mut first = connect(&bed.url).await;
        let transaction = first.transaction().await.unwrap();
        assert!(once(transaction.client(), &name).await);

        let second = connect(&bed.url).await;
        let mut waiting = tokio::spawn(async move { once(&second, &name).await });
        tokio::select! {
            () = bed.until_somebody_waits() => {}
            _ = &mut waiting => panic!("the second did not wait"),
        }
        if commits {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
        }
        assert_eq!(waiting.await.unwrap(), second_is);
    }
}

#[tokio::test]
async fn once_never_meets_the_record_of_a_gate() {
    let bed = Bed::new("once_apart").await;
    let lease = bed.lease().await;
    let key = lease.key.to_string();
    assert!(once(&bed.sql, &key).await);
    assert!(!once(&bed.sql, &key).await);
    assert_eq!(bed.state(&lease).await, State::Running);
    bed.complete(&lease).await;
}

#[tokio::test]
async fn once_is_true_again_after_its_retention() {
    let bed = Bed::new("once_again").await;
    let first = "SELECT semel.once('daily', interval '1 day')";
    assert!(bed.ask::<bool>(first).await);
    age(&bed.sql, Duration::from_secs(23 * 3600)).await;
    assert!(!bed.ask::<bool>(first).await);
    age(&bed.sql, Duration::from_secs(3600)).await;
    assert!(bed.ask::<bool>(first).await);
    assert!(!bed.ask::<bool>(first).await);
}

#[tokio::test]
async fn rust_completes_in_its_own_transaction() {
    let bed = Bed::new("rust").await;
    let outcome = Outcome::new(202, "in rust");
    let mut handler = connect(&bed.url).await;
    let lease = bed.lease().await;

    let transaction = handler.transaction().await.unwrap();
    complete_in(&transaction, &lease, &outcome).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(bed.state(&lease).await, State::Running);

    let transaction = handler.transaction().await.unwrap();
    complete_in(&transaction, &lease, &outcome).await.unwrap();
    transaction.commit().await.unwrap();
    let record = bed.store.look(&lease.key).await.unwrap().unwrap();
    assert_eq!(record.state, State::Succeeded);
    assert_eq!(Outcome::decode(&record.result.unwrap()).unwrap(), outcome);

    let transaction = handler.transaction().await.unwrap();
    let again = complete_in(&transaction, &lease, &outcome).await;
    assert!(matches!(again, Err(CompleteError::Already)), "{again:?}");
}

#[tokio::test]
async fn overtaken_run_cannot_complete_in_its_transaction() {
    let bed = Bed::new("overtaken").await;
    let mut handler = connect(&bed.url).await;
    let ask = claim();
    let first = bed.grant(&ask).await;
    let transaction = handler.transaction().await.unwrap();

    age(&bed.sql, LEASE).await;
    let second = bed.grant(&by_another(&ask)).await;
    let late = complete_in(&transaction, &first, &Outcome::ok("late")).await;
    assert!(matches!(late, Err(CompleteError::Stale)), "{late:?}");
    transaction.rollback().await.unwrap();
    assert_eq!(
        bed.store.look(&second.key).await.unwrap().unwrap().fence,
        second.fence
    );

    let mut forged = second.clone();
    forged.owner = semel::protocol::Owner::random();
    let transaction = handler.transaction().await.unwrap();
    let refused = complete_in(&transaction, &forged, &Outcome::ok("forged")).await;
    assert!(matches!(refused, Err(CompleteError::Stale)), "{refused:?}");
}

// === Durability ===

async fn commit_level(sql: &Client) -> String {
    let row = sql.query_one("SHOW synchronous_commit", &[]).await;
    row.unwrap().get(0)
}

/// Completes a run in a transaction of a session with this level; the level at its end, and in the session after it.
async fn levels(bed: &Bed, level: &str, in_rust: bool) -> (String, String) {
    let mut handler = connect(&bed.url).await;
    let set = format!("SET synchronous_commit = {level}");
    handler.batch_execute(&set).await.unwrap();
    let lease = bed.lease().await;
    let transaction = handler.transaction().await.unwrap();
    if in_rust {
        let done = complete_in(&transaction, &lease, &Outcome::ok("done")).await;
        done.unwrap();
    } else {
        complete(transaction.client(), &lease).await.unwrap();
    }
    let at_commit = commit_level(transaction.client()).await;
    transaction.commit().await.unwrap();
    assert_eq!(bed.state(&lease).await, State::Succeeded);
    (at_commit, commit_level(&handler).await)
}

#[tokio::test]
async fn completion_commits_durably_in_a_session_that_gave_that_up() {
    let bed = Bed::new("durable").await;
    for in_rust in [false, true] {
        for (level, at_commit) in [
            ("off", "on"),
            ("local", "on"),
            ("remote_write", "on"),
            ("on", "on"),
            ("remote_apply", "remote_apply"),
        ] {
            let found = levels(&bed, level, in_rust).await;
            assert_eq!(
                found,
                (at_commit.into(), level.into()),
                "in Rust: {in_rust}"
            );
        }
    }
}

/// Nothing else flushes the log of this server so soon.
#[tokio::test]
async fn completed_transaction_survives_the_server_whatever_its_session_says() {
    let mut server = testbed::Postgres::start_with(&[("wal_writer_delay", "10s")]).unwrap();
    let url = server.create_database("survives").unwrap();
    let store = PostgresStore::connect(PostgresSettings::new(&url)).await;
    let claimed = store.unwrap().claim(&claim()).await.unwrap();
    let Claimed::Granted(lease) = claimed else {
        panic!("{claimed:?}")
    };
    let handler = connect(&url).await;
    let begin = "CREATE TABLE stock (n int); SET synchronous_commit = off; BEGIN; INSERT INTO stock VALUES (7)";
    handler.batch_execute(begin).await.unwrap();
    complete(&handler, &lease).await.unwrap();
    handler.batch_execute("COMMIT").await.unwrap();
    server.kill().unwrap();
    server.restart().unwrap();
    let kept = testbed::query(&url, "SELECT (SELECT n FROM stock), state FROM semel.rec");
    assert_eq!(kept.unwrap().trim(), "7|2");
}
