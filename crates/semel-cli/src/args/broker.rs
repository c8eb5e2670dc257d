//! The command line of the broker.

use super::{plain_address, secret};
use clap::{Args, Subcommand, ValueEnum};
use http::Uri;
use semel_broker::Fault;
use semel_gate::settings::Secret;
use std::net::SocketAddr;
use std::path::PathBuf;
use url::Url;

const LISTEN_DEFAULT: &str = "127.0.0.1:8085";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BrokerArgs {
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
    #[command(subcommand)]
    pub(crate) other: Option<BrokerCommand>,
}

/// What a broker is told.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where gRPC, REST and the admin API are served, all on one port
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "SEMEL_BROKER_LISTEN",
        default_value = LISTEN_DEFAULT
    )]
    pub(crate) listen: SocketAddr,
    /// Where queues, tasks, topics and messages are kept
    #[arg(long, value_name = "DIRECTORY", default_value = "./semel-broker")]
    pub(crate) dir: PathBuf,
    /// Keep everything in memory instead; it goes with the process
    #[arg(long, conflicts_with = "dir")]
    pub(crate) memory: bool,
    /// What goes wrong: duplicate=0.05, delay=0.1:500ms@orders, lose-answer=0.01 … May be given again
    #[arg(long = "fault", value_name = "KIND=RATE[:ARGUMENT][@RESOURCE]")]
    pub(crate) faults: Vec<Fault>,
    /// What the choice of faults begins with: the same seed and tasks make the same choices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Queues, topics and subscriptions that are there from the start
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Let other machines ask, too. They can make this one call any address it reaches
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// What the admin API asks for
    #[arg(
        long,
        value_name = "TEXT",
        env = "SEMEL_BROKER_ADMIN_TOKEN",
        hide_env_values = true,
        value_parser = secret
    )]
    pub(crate) admin_token: Option<Secret>,
    /// What those show who may look at the page and not act. It needs --admin-token
    #[arg(
        long,
        value_name = "TEXT",
        env = "SEMEL_BROKER_ADMIN_VIEW_TOKEN",
        hide_env_values = true,
        value_parser = secret
    )]
    pub(crate) admin_view_token: Option<Secret>,
    /// A name under which browsers may reach the page besides localhost, at a proxy for instance. May be given again
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// How many dispatches are remembered
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    pub(crate) history: usize,
    /// Where tasks without a URL go: Firebase's functions, as in http://127.0.0.1:5001
    #[arg(long, value_name = "URL")]
    pub(crate) functions_url: Option<Url>,
    /// Where tasks for App Engine go that are routed to no host on this machine, as in http://127.0.0.1:8080
    #[arg(long, value_name = "URL")]
    pub(crate) app_engine_url: Option<Url>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BrokerCommand {
    /// Print how to connect: Python, Node, Rust, gcloud
    Snippets {
        /// For which one; for all of them unless given
        language: Option<Language>,
        /// The broker
        #[arg(long, value_name = "ADDRESS", default_value = LISTEN_DEFAULT)]
        address: SocketAddr,
    },
    #[command(flatten)]
    BrokerRequest(BrokerRequest),
}

/// A question to a running broker, or an act.
#[derive(Debug, Subcommand)]
pub(crate) enum BrokerRequest {
    /// List what was delivered, oldest first
    History {
        #[command(flatten)]
        target: BrokerTarget,
        /// Only this queue or subscription: its full name, or the last part of it
        #[arg(long, value_name = "NAME")]
        resource: Option<String>,
        /// Only this task or message
        #[arg(long)]
        id: Option<String>,
        /// Only those with a higher number
        #[arg(long, value_name = "NUMBER")]
        after: Option<u64>,
        /// How many at the most
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Wait until nothing is left to deliver
    WaitIdle {
        #[command(flatten)]
        target: BrokerTarget,
        /// How long at the most: 500ms, 30s, 5m
        #[arg(long, value_name = "SPAN", default_value = "30s")]
        timeout: String,
        /// Also wait until what is pulled has been acknowledged
        #[arg(long)]
        pull: bool,
    },
    /// Take everything away but what the file declares
    Reset {
        #[command(flatten)]
        target: BrokerTarget,
    },
    /// Put the broker's clock forward: what is due until then is due now
    Advance {
        #[command(flatten)]
        target: BrokerTarget,
        /// By how much: 500ms, 2s, 5m, 1h, 7d
        by: String,
    },
    /// Show what goes wrong, or say what shall from now on
    Faults {
        #[command(flatten)]
        target: BrokerTarget,
        /// What shall go wrong instead of what does
        #[arg(value_name = "KIND=RATE[:ARGUMENT][@RESOURCE]")]
        faults: Vec<Fault>,
        /// Besides what goes wrong already
        #[arg(long, requires = "faults")]
        add: bool,
        /// Nothing shall go wrong
        #[arg(long, conflicts_with_all = ["faults", "add"])]
        clear: bool,
    },
}

/// Which broker to ask, and how to say it.
#[derive(Debug, Args)]
pub(crate) struct BrokerTarget {
    /// The broker
    #[arg(long, value_name = "URL", env = "SEMEL_BROKER_URL", default_value = "http://127.0.0.1:8085", value_parser = broker)]
    pub(crate) url: Uri,
    /// Its admin token
    #[arg(
        long,
        value_name = "TEXT",
        env = "SEMEL_BROKER_ADMIN_TOKEN",
        hide_env_values = true,
        value_parser = secret
    )]
    pub(crate) admin_token: Option<Secret>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Python,
    Node,
    Rust,
    Gcloud,
}

fn broker(text: &str) -> Result<Uri, String> {
    let wrong = || format!("{text:?} is not a broker's address: write http://127.0.0.1:8085");
    plain_address(text).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use crate::args::{Args, Command};
    use clap::Parser;

    use super::*;

    fn parsed(line: &str) -> Result<BrokerArgs, clap::Error> {
        let words = ["semel", "broker"]
            .into_iter()
            .chain(line.split(' ').filter(|it| !it.is_empty()));
        Args::try_parse_from(words).map(|args| {
            let Command::Broker(args) = args.command else {
                panic!("not the broker: {args:?}");
            };
            *args
        })
    }

    #[test]
    fn without_words_it_serves_this_machine_from_a_directory() {
        let args = parsed("").unwrap();
        assert!(args.other.is_none());
        assert_eq!(args.serve.listen.to_string(), LISTEN_DEFAULT);
        assert_eq!(args.serve.dir.to_str(), Some("./semel-broker"));
        assert_eq!((args.serve.seed, args.serve.history), (1, 100_000));
        assert!(!args.serve.memory && !args.serve.allow_remote && args.serve.faults.is_empty());
    }

    #[test]
    fn all_flags_are_understood() {
        let args = parsed(
            "--listen 0.0.0.0:1 --memory --fault duplicate=0.05 --fault cut=1:7@q --seed 7 --file b.toml \
             --allow-remote --admin-token t --admin-view-token v --history 5 --functions-url http://127.0.0.1:5001 --app-engine-url http://127.0.0.1:8080",
        );
        let serve = args.unwrap().serve;
        assert_eq!((serve.faults.len(), serve.seed, serve.history), (2, 7, 5));
        assert!(serve.memory && serve.allow_remote);
        let shown = format!("{serve:?}");
        assert!(!shown.contains("\"t\"") && !shown.contains("\"v\""));
    }

    #[test]
    fn operators_ask_a_broker_by_its_address() {
        let args = parsed("advance 7d --url 127.0.0.1:9").unwrap();
        let Some(BrokerCommand::BrokerRequest(BrokerRequest::Advance { target, by })) = args.other
        else {
            panic!("not an advance");
        };
        assert_eq!(
            (target.url.to_string().as_str(), by.as_str()),
            ("http://127.0.0.1:9/", "7d")
        );
        for line in [
            "history --resource q --limit 5",
            "wait-idle --timeout 2s --pull",
            "reset",
            "faults",
            "faults duplicate=1 --add",
            "faults --clear",
            "snippets",
            "snippets python",
        ] {
            assert!(parsed(line).unwrap().other.is_some(), "{line}");
        }
    }

    #[test]
    fn mistakes_are_refused() {
        for line in [
            "--fault explode=1",
            "--memory --dir x",
            "--listen here",
            "advance",
            "faults --add",
            "faults duplicate=1 --clear",
            "snippets cobol",
            "reset --url https://h/",
            "--seed x",
            "--memory reset",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
