//! `semel prove`: attacks a handler, and says whether it is idempotent.

mod bar;
mod init;
mod load;
mod pages;

use crate::args::prove::{ProveArgs, ProveCommand};
use crate::out::{to_stderr, to_stdout};
use anyhow::anyhow;
use bar::Bar;
use pages::Pages;
use semel_prove::report::Report;
use semel_prove::report::{self, Conclusion};
use semel_prove::scenario::Scenario;
use semel_prove::{Options, Profile};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

/// No verdict. It says nothing about the handler.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub(crate) struct CouldNotJudge(pub(crate) anyhow::Error);

pub(crate) async fn run(args: &ProveArgs) -> anyhow::Result<u8> {
    if let Some(ProveCommand::Init(args)) = &args.command {
        init::run(args).await.map_err(CouldNotJudge)?;
        return Ok(0);
    }
    let pages = Pages::open(args).map_err(CouldNotJudge)?;
    let report = match judge(args).await {
        Ok(report) => report,
        Err(why) => {
            pages.without(&format!("{why:#}"));
            return Err(CouldNotJudge(why).into());
        }
    };
    let told = tell(args, &pages, &report);
    let conclusion = match (told, report.conclusion()) {
        (Ok(()), conclusion) => conclusion,
        (Err(why), conclusion) => {
            to_stderr(&format!("semel: {why:#}\n"));
            // What broke is broken, whether it could be written down or not.
            match conclusion {
                Conclusion::Broken => Conclusion::Broken,
                Conclusion::Held | Conclusion::CouldNotJudge => Conclusion::CouldNotJudge,
            }
        }
    };
    Ok(conclusion.exit_code())
}

async fn judge(args: &ProveArgs) -> anyhow::Result<Report> {
    let (scenario, directory) = load::scenario(args)?;
    let options = options(args, directory);
    let bar = Bar::begin();
    let report = tokio::select! {
        report = prove(&scenario, &options, &bar) => report,
        why = stopped() => Err(why),
    };
    bar.end();
    report
}

async fn prove(scenario: &Scenario, options: &Options, bar: &Bar) -> anyhow::Result<Report> {
    let told = |progress| bar.show(&progress);
    Ok(semel_prove::prove(scenario, options, told).await?)
}

fn options(args: &ProveArgs, directory: PathBuf) -> Options {
    Options {
        seed: args.seed,
        profile: if args.full {
            Profile::Full
        } else {
            Profile::Quick
        },
        crash_points_max: args.crash_points,
        only: args.only.clone(),
        ..options_for(directory)
    }
}

/// A quick run there.
#[expect(clippy::disallowed_methods, reason = "marks what this run creates")]
fn options_for(directory: PathBuf) -> Options {
    Options {
        seed: 1,
        id_prefix: format!("p{:08x}x", rand::random::<u32>()),
        profile: Profile::Quick,
        crash_points_max: 5,
        directory,
        semel: program(),
        environment: environment(),
        only: Vec::new(),
    }
}

/// This program; where another one carries the command, as Python does, the one that the shell finds.
fn program() -> PathBuf {
    let own = std::env::current_exe().ok();
    let own = own.filter(|path| path.file_name().is_some_and(|name| name == "semel"));
    own.unwrap_or_else(|| "semel".into())
}

/// Variables that are not text cannot be meant by any scenario.
fn environment() -> BTreeMap<String, String> {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.collect()
}

/// Resolves when somebody wants this process to end. Whatever was started ends first.
async fn stopped() -> anyhow::Error {
    match signalled().await {
        Ok(signal) => anyhow!("{signal}: ended before a verdict"),
        Err(error) => anyhow!(error).context("signals cannot be awaited"),
    }
}

async fn signalled() -> io::Result<&'static str> {
    let (mut terminate, mut interrupt, mut hangup) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
    );
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
        _ = hangup.recv() => "SIGHUP",
    })
}

/// The report goes to whoever looks before it goes to files.
fn tell(args: &ProveArgs, pages: &Pages, report: &Report) -> anyhow::Result<()> {
    let printed = to_stdout(&if args.json {
        report::json(report)
    } else {
        report::text(report)
    });
    if args.github {
        let file = args.file.as_ref().map(|file| file.display().to_string());
        to_stdout(&report::github(report, file.as_deref()))?;
    }
    pages.write(report)?;
    printed
}
