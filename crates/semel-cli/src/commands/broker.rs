//! `semel broker`: a local Cloud Tasks and Pub/Sub, from its flags to its orderly end.

mod lines;
mod snippets;
mod ask;

use crate::args::broker::{BrokerArgs, BrokerCommand, ServeArgs};
use crate::commands::gate::stopped;
use crate::log;
use crate::out::{to_stderr, to_stdout};
use semel_broker::{Bound, Declared, Keep, Settings};
use semel_gate::settings::Secret;
use std::path::Path;

/// What the broker was given is wrong. A retry fails again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidInput(String);

pub(crate) async fn run(args: BrokerArgs) -> anyhow::Result<()> {
    match args.other {
        None => serve(args.serve).await,
        Some(BrokerCommand::Snippets { language, address }) => {
            to_stdout(&snippets::texts(language, address))
        }
        Some(BrokerCommand::BrokerRequest(ask)) => ask::ask(&ask).await,
    }
}

async fn serve(args: ServeArgs) -> anyhow::Result<()> {
    let settings = settings(args)?;
    let _log = log::begin_aside()?;
    if settings.allow_remote {
        to_stderr(&lines::warning(settings.listen));
    }
    let shown = settings.clone();
    let bound = Bound::bind(settings).await.map_err(|error| {
        if error.is_mistake() {
            InvalidInput(error.to_string()).into()
        } else {
            anyhow::Error::from(error)
        }
    })?;
    to_stdout(&lines::first_screen(bound.address(), &shown))?;
    bound.serve(stopped()?).await;
    Ok(())
}

fn settings(args: ServeArgs) -> anyhow::Result<Settings> {
    let declared = match &args.file {
        Some(path) => declared(path)?,
        None => Declared::default(),
    };
    let keep = if args.memory {
        Keep::Memory
    } else {
        Keep::Directory(args.dir)
    };
    // What is said later wins over what the file says.
    let mut faults = declared.faults().to_vec();
    faults.extend(args.faults);
    Ok(Settings {
        listen: args.listen,
        allow_remote: args.allow_remote,
        admin_token: args.admin_token.map(|Secret(token)| token),
        admin_view_token: args.admin_view_token.map(|Secret(token)| token),
        hosts: args.hosts,
        keep,
        seed: args.seed,
        faults,
        history_max: args.history,
        declared,
        functions_url: args.functions_url,
        app_engine_url: args.app_engine_url,
    })
}

fn declared(path: &Path) -> anyhow::Result<Declared> {
    let shown = path.display();
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| InvalidInput(format!("{shown} cannot be read: {error}")))?;
    let declared = text.parse::<Declared>();
    Ok(declared.map_err(|error| InvalidInput(format!("{shown}: {error}")))?)
}
