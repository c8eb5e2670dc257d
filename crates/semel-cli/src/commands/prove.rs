//! `semel prove`: attacks a handler, and says whether it is idempotent.

mod bar;
mod load;

use crate::args::prove::ProveArgs;
use anyhow::Context;
use bar::Bar;
use semel_prove::report;
use semel_prove::verdict::Report;
use semel_prove::{Options, Profile};
use std::path::Path;
use std::process::ExitCode;

/// No verdict. It says nothing about the handler.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub(crate) struct CouldNotJudge(anyhow::Error);

pub(crate) async fn run(args: &ProveArgs) -> anyhow::Result<ExitCode> {
    let report = judge(args).await.map_err(CouldNotJudge)?;
    Ok(ExitCode::from(report.conclusion().exit_code()))
}

async fn judge(args: &ProveArgs) -> anyhow::Result<Report> {
    let (scenario, directory) = load::scenario(args)?;
    let options = Options {
        seed: args.seed,
        mark: format!("p{:08x}x", rand::random::<u32>()),
        profile: if args.full {
            Profile::Full
        } else {
            Profile::Quick
        },
        crash_points_max: args.crash_points,
        directory,
        environment: std::env::vars().collect(),
        only: load::attacks(&args.only)?,
    };
    let bar = Bar::begin();
    let report = semel_prove::prove(&scenario, &options, |progress| bar.show(&progress)).await;
    bar.end();
    let report = report?;
    tell(args, &report)?;
    Ok(report)
}

fn tell(args: &ProveArgs, report: &Report) -> anyhow::Result<()> {
    if let Some(path) = &args.junit {
        write(path, &report::junit(report))?;
    }
    if let Some(path) = &args.html {
        write(path, &report::html(report))?;
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(report)?);
    } else {
        print!("{}", report::text(report));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
