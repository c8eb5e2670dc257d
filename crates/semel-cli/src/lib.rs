//! The `semel` command, as a function: the program `semel` calls it, and so can others that carry the command. It alone
//! reads arguments and the environment, and prints.

mod args;
mod out;
mod store_url;
mod open_store;
mod landing_url;
mod proved_landing;
mod open_landings;
mod late_store;
mod admin;
mod admin_client;
mod table;
mod telemetry;
mod log;
mod file_limit;
mod config;
mod promise;
mod deployment;
mod commands {
    pub(crate) mod broker;
    pub(crate) mod certify;
    pub(crate) mod check;
    pub(crate) mod dev;
    pub(crate) mod find;
    pub(crate) mod gate;
    pub(crate) mod init;
    pub(crate) mod key;
    pub(crate) mod letters;
    pub(crate) mod migrate;
    pub(crate) mod operate;
    pub(crate) mod prove;
    pub(crate) mod records;
    pub(crate) mod ui;
    pub(crate) mod warehouse;
    pub(crate) mod watch;
}

use args::{Args, Command};
use clap::{CommandFactory, Parser};
pub use open_store::open_store;
use semel_gate::settings::{Route, Verify};
use semel_prove::report::Conclusion;
use std::ffi::OsString;

/// This version, and the commit it was built from.
pub(crate) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("SEMEL_COMMIT"), ")");

/// Runs the command that these arguments name, to its end; its exit code. As always, the first argument is the name of
/// the program.
#[must_use]
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<_> = args.into_iter().collect();
    let proves = args
        .get(1)
        .is_some_and(|word| word == "prove" || word == "certify");
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => return usage(&error, proves),
    };
    match perform(args.command) {
        Ok(code) => code,
        Err(error) => {
            out::to_stderr(&table::lines(&format!("semel: {}", out::told(&error))));
            failure(&error)
        }
    }
}

/// The one route of a configuration text, read and judged as `semel gate` does it, for front ends that have no gate.
///
/// # Errors
/// All mistakes together, in words.
pub fn route_of(text: &str) -> Result<Route, String> {
    let config = config::from_text(text).map_err(|mistakes| mistakes.to_string())?;
    let findings = config::check(&config);
    if let Some(broken) = config::Broken::among(&findings) {
        return Err(broken.to_string());
    }
    let mut routes = config.settings.routes.into_iter();
    let route = routes.next().ok_or("the configuration has no route")?;
    if route.verify != Verify::Off {
        return Err(
            "senders are verified by the gate alone: leave `verify` out and put a gate in front, or let the platform \
             check who calls"
                .into(),
        );
    }
    if route.promise.is_some() {
        return Err(
            "promises are proved by the gate alone, against its store: leave `promise` out, or put a gate in front"
                .into(),
        );
    }
    Ok(route)
}

/// 64 says that a person must fix the configuration; trying again does not help. 69 says that
/// nobody was there to ask. A store's own word for each counts as much as ours.
fn failure(error: &anyhow::Error) -> u8 {
    if error.is::<config::Mistakes>()
        || error.is::<config::Broken>()
        || error.is::<commands::broker::InvalidInput>()
        || error.is::<commands::check::NeedsPython>()
        || error.is::<deployment::Unreadable>()
        || matches!(error.downcast_ref(), Some(log::LogError::Variable(_)))
        || admin::is_misnamed(error)
    {
        64
    } else if error.is::<commands::prove::CouldNotJudge>() {
        Conclusion::CouldNotJudge.exit_code()
    } else if admin::is_unreachable(error) || admin::is_unavailable(error) {
        69
    } else {
        1
    }
}

/// Help goes to stdout with 0, a mistake to stderr with 64; `semel prove` and `semel certify` have exit codes of their
/// own, in which a mistake is not a verdict.
fn usage(error: &clap::Error, proves: bool) -> u8 {
    // A closed pipe while printing help is nobody's mistake.
    drop(error.print());
    match (error.use_stderr(), proves) {
        (false, _) => 0,
        (true, false) => 64,
        (true, true) => Conclusion::CouldNotJudge.exit_code(),
    }
}

fn perform(command: Command) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Runtime::new()?;
    match command {
        Command::Prove(args) => return runtime.block_on(commands::prove::run(&args)),
        Command::Certify(args) => return runtime.block_on(commands::certify::run(&args)),
        Command::Gate(args) => return runtime.block_on(commands::gate::run(&args)),
        Command::Dev(args) => runtime.block_on(commands::dev::run(&args)),
        Command::Broker(args) => runtime.block_on(commands::broker::run(*args)),
        Command::Init(args) => commands::init::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Key(args) => commands::key::run(&args),
        Command::Migrate(args) => runtime.block_on(commands::migrate::run(&args)),
        Command::Records(args) => runtime.block_on(commands::records::run(&args)),
        Command::Letters(args) => runtime.block_on(commands::letters::run(&args)),
        Command::Find(args) => runtime.block_on(commands::find::run(&args)),
        Command::Watch(args) => runtime.block_on(commands::watch::run(&args)),
        Command::Ui(args) => runtime.block_on(commands::ui::run(&args)),
        Command::Warehouse(args) => commands::warehouse::run(&args),
        Command::Completions { shell } => {
            let (mut command, mut script) = (Args::command(), Vec::new());
            clap_complete::generate(shell, &mut command, "semel", &mut script);
            out::to_stdout(&String::from_utf8_lossy(&script))
        }
    }
    .map(|()| 0)
}
