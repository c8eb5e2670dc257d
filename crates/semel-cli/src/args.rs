//! The command line, as data.

use crate::store_url::StoreUrl;
use clap::{Parser, Subcommand};

/// Deliver at least once. Take effect once.
#[derive(Debug, Parser)]
#[command(name = "semel", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show it: one piece of work, delivered five times at once
    Dev,
    /// Print the key, parts and fingerprint of a payload read from standard input
    Key(KeyArgs),
    /// Bring a PostgreSQL database to this version's tables and functions
    Migrate(MigrateArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// The parts that name the work: "/order_id", "header:X-Request-Id /lines/0", or a preset like
    /// "cloudevents"
    #[arg(long)]
    pub(crate) rule: String,
    /// Keeps installations apart that share a store
    #[arg(long, default_value = "default")]
    pub(crate) namespace: String,
    /// The route's name
    #[arg(long, default_value = "default")]
    pub(crate) route: String,
    /// The method, on API routes
    #[arg(long)]
    pub(crate) method: Option<String>,
    /// The caller, on API routes
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// A value beside the payload, as NAME=VALUE: header:X-Id=7, attribute:a=b, message-id=42
    #[arg(long = "with", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) with: Vec<(String, String)>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MigrateArgs {
    /// The store: postgres://user@host/database
    #[arg(long, env = "SEMEL_STORE", hide_env_values = true)]
    pub(crate) store: StoreUrl,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        Some(_) | None => Err(format!("{text:?} is not of the form NAME=VALUE")),
    }
}
