//! The arguments of `semel prove`.

use clap::{Subcommand, ValueEnum};
use semel_prove::Attack;
use std::path::PathBuf;

/// A scenario, as a file or as flags, and how to run it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXIT_CODES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct ProveArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ProveCommand>,
    /// The scenario (docs/prove.md); or describe it by the flags below
    #[arg(value_name = "FILE", required_unless_present_any = ["spawn", "target"])]
    pub(crate) file: Option<PathBuf>,
    /// Repeat the same deliveries and faults in the same order
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Every boundary and more races, instead of a few seconds
    #[arg(long)]
    pub(crate) full: bool,
    /// At how many boundaries a process is killed, unless --full
    #[arg(long, default_value_t = 5)]
    pub(crate) crash_points: usize,
    /// Only these attacks, by the names that the report uses
    #[arg(long, value_delimiter = ',', value_name = "ATTACK")]
    pub(crate) only: Vec<Attack>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write JUnit XML there
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write one page there, with the timelines drawn
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print annotations for GitHub Actions, beside the report
    #[arg(long, conflicts_with = "json")]
    pub(crate) github: bool,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProveCommand {
    /// Write a first scenario, from an OpenAPI document or from what was recorded
    Init(Box<ProveInitArgs>),
}

/// What is known of a handler.
#[derive(Debug, clap::Args)]
pub(crate) struct ProveInitArgs {
    /// Where to write it; a file that is there is left alone
    #[arg(default_value = "prove.toml", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// An OpenAPI document, in JSON or YAML: a file, or the http:// address of a handler that runs
    #[arg(long, value_name = "FILE|URL", required_unless_present = "recorded")]
    pub(crate) openapi: Option<String>,
    /// Which operation of it, as "POST /orders"; the only one that changes something, unless given
    #[arg(long, value_name = "OPERATION", requires = "openapi")]
    pub(crate) operation: Option<String>,
    /// Recorded requests instead: HAR, or JSON lines
    #[arg(long, value_name = "FILE", conflicts_with = "openapi")]
    pub(crate) recorded: Option<PathBuf>,
    /// How to start the handler: it listens on $PORT. With --dependency, one delivery is watched to propose probes
    #[arg(long, value_name = "COMMAND", required_unless_present = "target")]
    pub(crate) spawn: Option<String>,
    /// A handler that runs already
    #[arg(long, value_name = "URL", conflicts_with = "spawn")]
    pub(crate) target: Option<String>,
    /// An environment variable by which the handler finds a server
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) dependency: Vec<String>,
    /// Who sends: cloud-tasks, pubsub, cloudevents, http; guessed unless given
    #[arg(long = "as", value_name = "SENDER")]
    pub(crate) sender: Option<String>,
}

/// A scenario without a file.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Without a file")]
pub(crate) struct Flags {
    /// How to start the handler: it listens on $PORT
    #[arg(long, value_name = "COMMAND", conflicts_with = "file")]
    pub(crate) spawn: Option<String>,
    /// A handler that runs already: attacks on its process are then not run
    #[arg(long, value_name = "URL", conflicts_with_all = ["file", "spawn"])]
    pub(crate) target: Option<String>,
    /// What effects it owes its senders
    #[arg(
        long,
        value_enum,
        default_value = "exactly-once",
        conflicts_with = "file"
    )]
    pub(crate) promise: PromiseArg,
    /// Who sends: cloud-tasks, pubsub, cloudevents, http
    #[arg(
        long = "as",
        value_name = "SENDER",
        default_value = "cloud-tasks",
        conflicts_with = "file"
    )]
    pub(crate) sender: String,
    /// Where to; the path of --target, or /, unless given
    #[arg(long, conflicts_with = "file")]
    pub(crate) path: Option<String>,
    /// The payload; {id} is each delivery's own
    #[arg(long, default_value = r#"{"id": "{id}"}"#, conflicts_with = "file")]
    pub(crate) body: String,
    /// An environment variable by which the handler finds a server; it is pointed at a proxy
    #[arg(long, value_name = "VARIABLE", conflicts_with = "file")]
    pub(crate) dependency: Vec<String>,
    /// What may stay open and hold all the same: no-kill
    #[arg(long, value_name = "GAP", conflicts_with = "file")]
    pub(crate) accept: Vec<String>,
    /// See effects by a query of two columns, id and count
    #[arg(long, value_name = "QUERY", conflicts_with = "file")]
    pub(crate) effect_sql: Option<String>,
    /// See effects by a URL that answers a JSON object of counts by id
    #[arg(long, value_name = "URL", conflicts_with = "file")]
    pub(crate) effect_http: Option<String>,
    /// See effects by a command that prints lines of id and count
    #[arg(long, value_name = "COMMAND", conflicts_with = "file")]
    pub(crate) effect_command: Option<String>,
    /// See effects by Redis keys that contain the id
    #[arg(long, value_name = "PATTERN", conflicts_with = "file")]
    pub(crate) effect_redis: Option<String>,
    /// See effects by documents of Firestore: COLLECTION, FIELD in COLLECTION, or 100 - FIELD in COLLECTION
    #[arg(long, value_name = "QUERY", conflicts_with = "file")]
    pub(crate) effect_firestore: Option<String>,
    /// See effects by the HTTP calls to a dependency that contain the id
    #[arg(long, value_name = "VARIABLE", conflicts_with = "file")]
    pub(crate) effect_calls: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PromiseArg {
    #[value(name = "exactly-once")]
    Exactly,
    #[value(name = "at-most-once")]
    AtMost,
    #[value(name = "at-least-once")]
    AtLeast,
}

const EXIT_CODES: &str = "Exit codes:
  0   held: every attack that was run
  1   broken: the report shows where
  2   could not judge: the arguments, the scenario, a process or a probe are wrong, or a fault never hit";
