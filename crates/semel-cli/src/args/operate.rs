//! The command line of an operator: records and letters.

use super::{plain_address, secret};
use crate::store_url::StoreUrl;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use http::Uri;
use semel::Key;
use semel::protocol::State;
use semel_gate::invisible::has_visible;
use semel_gate::operate::Verdict;
use semel_gate::settings::Secret;
use std::path::PathBuf;

/// Where to ask, and how to say it.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    /// The admin address of a gate; that of the configuration unless given, or else http://127.0.0.1:8081
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS",
        env = "SEMEL_ADMIN",
        value_parser = admin
    )]
    pub(crate) admin: Option<Uri>,
    /// The gate's configuration, which names its admin address and token; ./semel.toml when it is there
    #[arg(long, global = true, value_name = "FILE", env = "SEMEL_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The gate's `admin_token`
    #[arg(
        long,
        global = true,
        value_name = "TEXT",
        env = "SEMEL_ADMIN_TOKEN",
        hide_env_values = true,
        value_parser = secret
    )]
    pub(crate) token: Option<Secret>,
    /// Ask a store directly instead; the embedded one only while no gate holds it
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<StoreUrl>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Why somebody acts.
#[derive(Debug, Args)]
pub(crate) struct Reason {
    /// Why: it is written to the audit, and to the record's history
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        value_parser = visible
    )]
    pub(crate) why: String,
}

#[derive(Debug, Args)]
pub(crate) struct RecordsArgs {
    #[command(flatten)]
    pub(crate) target: AdminArgs,
    #[command(subcommand)]
    pub(crate) command: RecordsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RecordsCommand {
    /// List records, in no particular order
    List {
        /// Only those in this state
        #[arg(long, value_parser = state())]
        state: Option<State>,
        /// How many at the most
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Show one record and its outcome
    Show {
        key: Key,
        /// With the body of the outcome
        #[arg(long)]
        body: bool,
    },
    /// Take the right to run from whoever has it: the run is stale, the next delivery runs
    Release {
        key: Key,
        #[command(flatten)]
        reason: Reason,
    },
    /// End a record: the next delivery of its key is new work
    Forget {
        key: Key,
        /// Discard its letters too: nothing of its deliveries stays
        #[arg(long)]
        letters: bool,
        #[command(flatten)]
        reason: Reason,
    },
    /// Say what became of parked work, or of one run that a gate named when it stopped
    Resolve {
        key: Key,
        /// It took effect; it did not and shall not; it did not and may run again
        #[arg(long = "as", value_name = "succeeded|failed|retry")]
        verdict: Verdict,
        /// Of this very run, parked or with a lapsed lease
        #[arg(long, value_name = "NUMBER")]
        fence: Option<u64>,
        #[command(flatten)]
        reason: Reason,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LettersArgs {
    #[command(flatten)]
    pub(crate) target: AdminArgs,
    #[command(subcommand)]
    pub(crate) command: LettersCommand,
}

/// An id is 64 hex digits, or the first 8 or more of them.
#[derive(Debug, Subcommand)]
pub(crate) enum LettersCommand {
    /// List letters, oldest first
    List {
        /// How many at the most
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Show one letter with its delivery
    Show {
        /// Its id, or the first 8 or more digits of it
        #[arg(value_parser = letter_id)]
        id: String,
    },
    /// Run its delivery again; the letter is closed when that succeeds
    Redrive {
        /// Its id, or the first 8 or more digits of it
        #[arg(value_parser = letter_id)]
        id: String,
        /// Run it even if its record is gone: it may take effect a second time
        #[arg(long)]
        run_again: bool,
        #[command(flatten)]
        reason: Reason,
    },
    /// Close a letter without running it; a duplicate brings it back only once its record has changed
    Discard {
        /// Its id, or the first 8 or more digits of it
        #[arg(value_parser = letter_id)]
        id: String,
        #[command(flatten)]
        reason: Reason,
    },
}

/// A state by its word.
fn state() -> impl TypedValueParser<Value = State> {
    let words = PossibleValuesParser::new(State::ALL.map(State::word));
    words.map(|word| {
        let mut states = State::ALL.into_iter();
        let state = states.find(|state| state.word() == word);
        state.expect("only words of states are possible")
    })
}

pub(super) fn admin(text: &str) -> Result<Uri, String> {
    let wrong = || format!("{text:?} is not an admin address: write http://127.0.0.1:8081");
    plain_address(text).ok_or_else(wrong)
}

/// A reason, or none.
fn visible(text: &str) -> Result<String, String> {
    if text.is_empty() || has_visible(text) {
        Ok(text.into())
    } else {
        Err("nothing of this reason can be seen: say why in words, or leave --why out".into())
    }
}

fn letter_id(text: &str) -> Result<String, String> {
    let digits = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if (8..=64).contains(&text.len()) && text.chars().all(digits) {
        Ok(text.into())
    } else {
        Err("an id has 64 lower-case hex digits, of which the first 8 or more will do".into())
    }
}
