//! The arguments of `semel warehouse`.

use crate::config::read_duration;
use clap::{Subcommand, ValueEnum};
use std::time::Duration;

/// What a warehouse needs to let each event take effect once.
#[derive(Debug, clap::Args)]
pub(crate) struct WarehouseArgs {
    #[command(subcommand)]
    pub(crate) command: WarehouseCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WarehouseCommand {
    /// Print the tables, the merge, the view and the reports over landed deliveries; nothing is executed
    Sql(SqlArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SqlArgs {
    /// For which database
    #[arg(long)]
    pub(crate) dialect: Dialect,
    /// Only this part; all of them, unless given
    #[arg(long)]
    pub(crate) part: Option<Part>,
    /// Read the version from the payload, where the gate did not fill its column: /order/version
    #[arg(long, value_name = "PATH", value_parser = names_of_pointer)]
    pub(crate) version: Option<Names>,
    /// How long the same event may be published again: with it a merge reads only that much of the table (7d). Found by
    /// a key in PostgreSQL, which needs none
    #[arg(long, value_name = "DURATION", value_parser = horizon)]
    pub(crate) horizon: Option<Duration>,
    /// With the handler's answer, as the gate lands it with `lands = "answer"`
    #[arg(long)]
    pub(crate) answer: bool,
    /// The table of deliveries [default: landing; BigQuery: semel.landing]
    #[arg(long, value_name = "TABLE", value_parser = table)]
    pub(crate) landing: Option<String>,
    /// The table of effects [default: effects; BigQuery: semel.effects]
    #[arg(long, value_name = "TABLE", value_parser = table)]
    pub(crate) effects: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dialect {
    Postgres,
    Duckdb,
    Bigquery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The tables
    Ddl,
    /// The merge of a batch
    Merge,
    /// One row per event, without a merge
    View,
    /// Events with several inputs
    Conflicts,
    /// Deliveries, repeats and delays by source and day
    Report,
    /// Functions that make keys
    Key,
}

/// The member names that a pointer leads through.
#[derive(Clone, Debug)]
pub(crate) struct Names(pub(crate) Vec<String>);

/// Plain names only: every dialect writes paths in its own way, and each would escape other characters.
fn names_of_pointer(text: &str) -> Result<Names, String> {
    let mut parts = text.split('/');
    let rooted = parts.next() == Some("");
    let names: Vec<String> = parts.map(str::to_owned).collect();
    if rooted && !names.is_empty() && names.iter().all(|name| is_plain(name)) {
        return Ok(Names(names));
    }
    Err("write / and a name of letters, digits and _, as in /version or /order/version".into())
}

fn horizon(text: &str) -> Result<Duration, String> {
    let found = read_duration(text).filter(|it| it.as_millis() > 0);
    found.ok_or_else(|| "write a whole number and s, m, h or d, as in 7d".into())
}

/// A name with its schema or dataset, as the SQL will have it.
fn table(text: &str) -> Result<String, String> {
    let names: Vec<_> = text.split('.').collect();
    if names.len() <= 3 && names.iter().all(|name| is_plain(name)) {
        return Ok(text.to_owned());
    }
    Err("write a name of letters, digits and _, after its schema if it has one: raw.landing".into())
}

fn is_plain(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(known)
}
