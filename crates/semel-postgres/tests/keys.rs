//! Every vector of `vectors/keys.json` comes out of `semel.key` as it does out of Rust and Python.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test may panic"
)]

mod support;

use serde_json::Value;
use support::Bed;
use tokio_postgres::Client;

const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/keys.json");

#[tokio::test]
async fn every_vector_is_the_same_in_sql() {
    let bed = Bed::new("keys").await;
    let book: Value = serde_json::from_slice(&std::fs::read(VECTORS).unwrap()).unwrap();
    let vectors = book["vectors"].as_array().unwrap();
    let mut wrong = Vec::new();
    let (mut tried, mut calls) = (0, 0);
    for vector in vectors.iter().filter(|v| v["not_in"]["sql"].is_null()) {
        let expected = vector["key"].as_str().or(vector["error"].as_str()).unwrap();
        let answered = key(&bed.sql, vector).await;
        tried += 1;
        calls += usize::from(!vector["python"].is_null());
        if answered != expected {
            wrong.push(format!("{}: {answered}, not {expected}", vector["name"]));
        }
    }
    assert!(
        tried > 460 && calls > 80,
        "only {tried} vectors were tried, {calls} of them calls of Python"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The key, or the word for why there is none.
async fn key(sql: &Client, vector: &Value) -> String {
    let text = |name: &str| vector[name].as_str();
    let rule: Vec<&str> = vector["rule"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part.as_str().unwrap())
        .collect();
    let named = match &vector["named"] {
        Value::Null => "{}".to_owned(),
        named => named.to_string(),
    };
    let ask = "SELECT semel.key($1, $2, $3, $4, $5, $6, $7::text::jsonb)";
    let answer = sql
        .query_one(
            ask,
            &[
                &text("namespace"),
                &text("route"),
                &rule,
                &text("payload"),
                &text("method"),
                &text("caller"),
                &named,
            ],
        )
        .await;
    match answer {
        Ok(row) => row.get(0),
        Err(error) => refusal(&error),
    }
}

/// `semel.key: <word>: <sentence>`, under a code of its own.
fn refusal(error: &tokio_postgres::Error) -> String {
    let said = error.as_db_error().expect("the server answered");
    assert_eq!(said.code().code(), "SM004", "{said}");
    let words: Vec<&str> = said.message().splitn(3, ": ").collect();
    assert_eq!(words[0], "semel.key", "{said}");
    words[1].to_owned()
}
