//! The command line, as data.

pub(crate) mod broker;
pub(crate) mod certify;
pub(crate) mod find;
pub(crate) mod operate;
pub(crate) mod prove;
pub(crate) mod warehouse;

use crate::config::FILE_DEFAULT;
use crate::store_url::StoreUrl;
use clap::builder::BoolishValueParser;
use clap::{Parser, Subcommand};
use http::Uri;
use semel_gate::settings::Secret;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Deliver at least once. Take effect once.
#[derive(Debug, Parser)]
#[command(name = "semel", version = crate::VERSION, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show it: a local cloud, a gate and a demo handler (or yours), and lines to copy
    Dev(DevArgs),
    /// Run the broker: a local Cloud Tasks and Pub/Sub that can be told to misbehave, or ask one
    Broker(Box<broker::BrokerArgs>),
    /// Run the gate: a reverse proxy that lets each delivery take effect once
    Gate(RunArgs),
    /// Attack a handler as an at-least-once world does, and say whether it is idempotent
    Prove(Box<prove::ProveArgs>),
    /// Ask a service whether it honours Idempotency-Key, rule by rule
    Certify(Box<certify::CertifyArgs>),
    /// Write a short configuration, by questions or flags
    Init(InitArgs),
    /// Judge a configuration without starting anything
    Check(CheckArgs),
    /// Print the key, parts and fingerprint of a payload read from standard input
    Key(KeyArgs),
    /// Bring a PostgreSQL database to this version's tables and functions
    Migrate(MigrateArgs),
    /// Look at records, and act on one: list, show, release, forget, resolve
    Records(operate::RecordsArgs),
    /// Look at letters, and act on one: list, show, redrive, discard
    Letters(operate::LettersArgs),
    /// Say what became of a piece of work, by whatever name you have for it
    Find(find::FindArgs),
    /// Watch deliveries as they arrive at a gate
    Watch(find::WatchArgs),
    /// Serve the page of a store without a gate: for users of the library or the Python package
    Ui(UiArgs),
    /// Print the SQL by which a warehouse lets each landed event take effect once
    Warehouse(warehouse::WarehouseArgs),
    /// Print a script that completes these commands in a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

const EXIT_CODES: &str = "Exit codes:
  0   done
  1   refused, or nothing there; the message says why
  64  a mistake in the arguments or the configuration: fix it, a retry fails again
  69  the gate, the broker or the store cannot be reached: a retry is safe
  75  the gate stopped with outcomes that the store did not take; its last lines name them
`semel prove` and `semel certify` have their own: 0 held, 1 broken, 2 could not judge";

#[derive(Debug, clap::Args)]
pub(crate) struct DevArgs {
    /// Your own handler, instead of the demonstration
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Where to listen; the next port is for the admin address. Other ones are taken if they are not free
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,
    /// Where the local cloud listens, if it is free
    #[arg(long, default_value_t = 8085)]
    pub(crate) broker_port: u16,
    /// Show deliveries as they arrive, also where nobody looks at a terminal
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// Parts that name the work: "/order_id", "header:X-Request-Id /lines/0", "form:MessageSid", or a preset like
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
pub(crate) struct UiArgs {
    /// The store: dir:PATH, postgres://…, redis://… or firestore://PROJECT; the embedded one only while nobody holds it
    #[arg(long, value_name = "URL", env = "SEMEL_STORE", hide_env_values = true)]
    pub(crate) store: StoreUrl,
    /// Where to serve it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    pub(crate) listen: SocketAddr,
    /// What those show who may act; needed unless the address is a loopback one
    #[arg(
        long,
        value_name = "TEXT",
        env = "SEMEL_ADMIN_TOKEN",
        hide_env_values = true,
        value_parser = secret
    )]
    pub(crate) token: Option<Secret>,
    /// What those show who may only look
    #[arg(
        long,
        value_name = "TEXT",
        env = "SEMEL_ADMIN_VIEW_TOKEN",
        hide_env_values = true,
        value_parser = secret
    )]
    pub(crate) view_token: Option<Secret>,
    /// A name that the page has besides its address, at a proxy for instance; once for each
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// The namespace of those who use the store, through which parts are searched for
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) namespace: String,
    /// Show the bodies of recorded answers and letters
    #[arg(long)]
    pub(crate) show_bodies: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MigrateArgs {
    /// The store: postgres://user@host/database
    #[arg(long, env = "SEMEL_STORE", hide_env_values = true)]
    pub(crate) store: StoreUrl,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Where to write it; a file that is there is left alone
    #[arg(default_value = FILE_DEFAULT, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Your handler, as in http://127.0.0.1:3000
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Where records are kept: dir:PATH, postgres://…, redis://… or firestore://PROJECT
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The route's name, which enters every key; the path's first name, unless given
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Which requests are protected: /orders, /users/{id}/pay, or /orders/* for all below
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// Who delivers: cloud-tasks, pubsub, cloudevents, api, stripe, github, shopify or standard-webhooks
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Parts that make two deliveries the same work: --key /order_id, --key /order_id,/line, or --key once for each;
    /// commas and spaces separate parts (a pointer with a comma in it goes into the file's list)
    #[arg(long, value_name = "PARTS")]
    pub(crate) key: Vec<String>,
    /// How API clients are told apart: header:NAME, or shared
    #[arg(long, value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    /// Longest time from the first delivery of the same work to its last one, as in 24h; an assumption, unless it is the sender's own
    #[arg(long, value_name = "DURATION")]
    pub(crate) horizon: Option<String>,
    /// Where the secret is that a webhook's sender signs with: env:NAME or file:PATH; once for each
    #[arg(long = "secret", value_name = "PLACE")]
    pub(crate) secrets: Vec<String>,
    /// Who signs the senders' tokens: google, or an issuer's URL
    #[arg(long, value_name = "ISSUER")]
    pub(crate) verify: Option<String>,
    /// Where the keys of an issuer other than Google are (`jwks_uri`)
    #[arg(long, value_name = "URL", requires = "verify")]
    pub(crate) keys_url: Option<String>,
    /// For whom the tokens are signed
    #[arg(long, value_name = "AUDIENCE", requires = "verify")]
    pub(crate) audience: Option<String>,
    /// An account that delivers; once for each
    #[arg(long = "email", value_name = "ADDRESS", requires = "verify")]
    pub(crate) emails: Vec<String>,
    /// Write every setting, each with its default as a comment
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the page of all fields instead
    #[arg(long, hide = true)]
    pub(crate) docs: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    /// Judge a Celery app instead, by the `semel` of the Python package: only that can import one
    #[arg(long, value_name = "MODULE:APP", exclusive = true)]
    pub(crate) celery: Option<String>,
    /// Compare it with what it is deployed by: a Cloud Run service or Kubernetes workload in YAML
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) deployment: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    /// Exit with 69 when the store cannot be reached at start, instead of waiting for it
    #[arg(long, env = "SEMEL_FAIL_FAST", value_parser = BoolishValueParser::new())]
    pub(crate) fail_fast: bool,
}

/// What a gate is told by flags. Their texts are judged with the file, so that all mistakes are told together.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct GateArgs {
    /// The configuration; ./semel.toml when it is there
    #[arg(long, value_name = "FILE", env = "SEMEL_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Where deliveries arrive
    #[arg(long, value_name = "ADDRESS", env = "SEMEL_LISTEN")]
    pub(crate) listen: Option<String>,
    /// Where operators and Prometheus ask; `semel records` and `semel letters` ask there, too
    #[arg(long, value_name = "ADDRESS", env = "SEMEL_ADMIN")]
    pub(crate) admin: Option<String>,
    /// Where records and letters are kept
    #[arg(long, value_name = "URL", env = "SEMEL_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// Promise that never two gates run at once
    #[arg(long, env = "SEMEL_SINGLE_INSTANCE", value_parser = BoolishValueParser::new())]
    pub(crate) single_instance: bool,
    /// The handler, for routes that name none of their own
    #[arg(long, value_name = "URL", env = "SEMEL_UPSTREAM")]
    pub(crate) upstream: Option<String>,
    /// Without a file: which requests are protected (all, unless given)
    #[arg(long, value_name = "PATH", env = "SEMEL_PATH")]
    pub(crate) path: Option<String>,
    /// Without a file: the route's name, which enters every key (`default`, unless given)
    #[arg(long, value_name = "NAME", env = "SEMEL_NAME")]
    pub(crate) name: Option<String>,
    /// Without a file: who delivers
    #[arg(long, value_name = "SOURCE", env = "SEMEL_SOURCE")]
    pub(crate) source: Option<String>,
    /// Without a file: the parts that make two deliveries the same work, with commas or spaces between
    #[arg(long, value_name = "PARTS", env = "SEMEL_KEY")]
    pub(crate) key: Option<String>,
    /// Without a file: how API clients are told apart
    #[arg(long, value_name = "CALLER", env = "SEMEL_CALLER")]
    pub(crate) caller: Option<String>,
}

/// Where to ask: a server's own setting has no scheme, and both may come from one variable. Who listens everywhere is
/// asked here.
fn plain_address(text: &str) -> Option<Uri> {
    let url = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let url = url
        .replace("://0.0.0.0:", "://127.0.0.1:")
        .replace("://[::]:", "://[::1]:");
    let uri: Uri = url.parse().ok()?;
    let is_plain = uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/");
    (is_plain && uri.query().is_none()).then_some(uri)
}

/// A token. No debug output shows it.
fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret(text.into()))
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        Some(_) | None => Err(format!("{text:?} is not of the form NAME=VALUE")),
    }
}
