//! `semel warehouse sql` prints the statements of `warehouse/sql`, which the step `warehouse` executes.

use crate::support::root;
use crate::support::said::{Says, semel};

const DIALECTS: [&str; 3] = ["postgres", "duckdb", "bigquery"];

/// The files of each dialect, and the words that print them.
const STATEMENTS: [(&str, &str); 13] = [
    ("ddl.sql", "--part ddl"),
    ("merge.sql", "--part merge"),
    ("view.sql", "--part view"),
    ("conflicts.sql", "--part conflicts"),
    ("report.sql", "--part report"),
    ("ddl.version.sql", "--part ddl --version /order/version"),
    ("merge.version.sql", "--part merge --version /order/version"),
    ("view.version.sql", "--part view --version /order/version"),
    (
        "conflicts.version.sql",
        "--part conflicts --version /order/version",
    ),
    ("ddl.answer.sql", "--part ddl --answer"),
    ("merge.answer.sql", "--part merge --answer"),
    ("merge.horizon.sql", "--part merge --horizon 7d"),
    ("report.horizon.sql", "--part report --horizon 7d"),
];

/// Where the functions for keys are kept, as they are printed: the step `warehouse` tries these very texts.
const KEYS: &str = "crates/semel-cli/src/commands/warehouse";

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn statements_are_those_that_were_executed() {
    for dialect in DIALECTS {
        for (file, words) in STATEMENTS {
            let line = format!("warehouse sql --dialect {dialect} {words}");
            let file = format!("warehouse/sql/{dialect}/{file}");
            let said = semel(&line).good();
            assert!(
                said == read(&file),
                "changed on purpose? semel {line} > {file}\n{said}"
            );
        }
        let files = std::fs::read_dir(root().join("warehouse/sql").join(dialect)).unwrap();
        assert_eq!(files.count(), STATEMENTS.len(), "{dialect}");
    }
}

#[test]
fn key_functions_are_those_that_were_tried() {
    for dialect in ["duckdb", "bigquery"] {
        let said = semel(&format!("warehouse sql --dialect {dialect} --part key")).good();
        assert_eq!(said, read(&format!("{KEYS}/key.{dialect}.sql")));
    }
    let said = semel("warehouse sql --dialect postgres --part key").good();
    let schema = read(&format!("{KEYS}/key.postgres.sql"));
    let migrations = ["0002_key", "0013_key_parts"];
    let functions =
        migrations.map(|name| read(&format!("crates/semel-postgres/migrations/{name}.sql")));
    assert_eq!(said, schema + &functions.join("\n"));
}

#[test]
fn all_parts_are_printed_in_their_order() {
    let said = semel("warehouse sql --dialect duckdb").good();
    let parts = [
        "ddl.sql",
        "merge.sql",
        "view.sql",
        "conflicts.sql",
        "report.sql",
    ];
    let mut whole: Vec<_> = parts
        .map(|part| read(&format!("warehouse/sql/duckdb/{part}")))
        .into();
    whole.push(read(&format!("{KEYS}/key.duckdb.sql")));
    assert_eq!(said, whole.join("\n"));
}

#[test]
fn tables_have_the_names_that_are_asked_for() {
    let line =
        "warehouse sql --dialect postgres --landing raw.orders --effects shop.orders --version /v";
    let said = semel(line).good();
    said.has("CREATE TABLE IF NOT EXISTS raw.orders (");
    said.has("CREATE INDEX IF NOT EXISTS raw_orders_received_at ON raw.orders");
    said.has("INSERT INTO shop.orders AS t");
    said.has("VIEW shop.orders_view AS");
    said.has("FUNCTION raw.orders_version(payload text)");
    said.has("raw.orders_version(payload) AS version");
    said.lacks("FROM landing");
}

#[test]
fn what_would_have_to_be_escaped_is_refused() {
    for words in [
        "--landing a;b",
        "--landing a.b.c.d",
        "--effects 1st",
        "--version version",
        "--version /",
        "--version /a'b",
        "--horizon 7",
        "--horizon 0d",
        "--dialect snowflake",
    ] {
        let dialect = if words.contains("--dialect") {
            ""
        } else {
            "--dialect postgres"
        };
        semel(&format!("warehouse sql {dialect} {words}")).refused();
    }
}
