//! The command line of those who look for one piece of work, or watch all of it.

use super::operate::{AdminArgs, admin};
use super::secret;
use crate::store_url::StoreUrl;
use clap::Args;
use http::Uri;
use semel_gate::settings::Secret;
use std::path::PathBuf;

/// Which gates to ask, and how to say it.
#[derive(Debug, Args)]
pub(crate) struct GatesArgs {
    /// The admin address of a gate, once for each; that of the configuration unless given, or else http://127.0.0.1:8081
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "SEMEL_ADMIN",
        value_delimiter = ',',
        value_parser = admin
    )]
    pub(crate) admin: Vec<Uri>,
    /// The gate's configuration, which names its admin address and token; ./semel.toml when it is there
    #[arg(long, value_name = "FILE", env = "SEMEL_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The gates' `admin_token`
    #[arg(
        long,
        value_name = "TEXT",
        env = "SEMEL_ADMIN_TOKEN",
        hide_env_values = true,
        value_parser = secret
    )]
    pub(crate) token: Option<Secret>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FindArgs {
    #[command(flatten)]
    pub(crate) gates: GatesArgs,
    /// Ask a store directly instead; the embedded one only while no gate holds it
    #[arg(long, value_name = "URL", conflicts_with = "admin")]
    pub(crate) store: Option<StoreUrl>,
    /// An order or whatever else names the work, a key, the name of a task, the id of a message, event or trace; with --route
    /// the parts of a key, each as NAME=VALUE: order_id=A-1
    #[arg(value_name = "WHAT", required_unless_present = "idempotency_key")]
    pub(crate) what: Vec<String>,
    /// The namespace of the library or of Python: --route is then the name of a function, the parts are in the order of its
    /// key, and no configuration is read
    #[arg(
        long,
        value_name = "NAME",
        requires = "store",
        conflicts_with = "config"
    )]
    pub(crate) namespace: Option<String>,
    /// The route whose rule names the work
    #[arg(long, value_name = "NAME")]
    pub(crate) route: Option<String>,
    /// What an API client sent
    #[arg(long, value_name = "KEY", conflicts_with = "what")]
    pub(crate) idempotency_key: Option<String>,
    /// Which API client: what the route's `caller` says of it
    #[arg(long, value_name = "TEXT")]
    pub(crate) caller: Option<String>,
    /// By which method an API client asked; POST unless given
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) gates: GatesArgs,
}

// === impl GatesArgs ===

impl GatesArgs {
    /// Each gate as one that is asked alone.
    pub(crate) fn each(&self) -> Vec<AdminArgs> {
        let one = |admin: Option<Uri>| AdminArgs {
            admin,
            config: self.config.clone(),
            token: self.token.clone(),
            store: None,
            json: self.json,
        };
        if self.admin.is_empty() {
            return vec![one(None)];
        }
        self.admin.iter().cloned().map(Some).map(one).collect()
    }
}
