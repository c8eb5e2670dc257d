//! `cargo xtask tidy`: limits on the size, the module cycles and the language of the repository.
//!
//! It reads the files that git lists as text, counts, and compares each count with its limit in `tidy/limits.toml`.
//! A count above its limit fails, and so does one below it until `--lower` writes the new limit down.

mod sources;
mod rust_text;
mod modules;
mod phrases;
mod links;
mod count;
mod limits;
mod table;
#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::bail;

use count::Counts;
use limits::Limits;
use phrases::Phrases;
use sources::Sources;

use crate::run;

/// Limits on growth; see CONTRIBUTING.md.
#[derive(Debug, clap::Args)]
pub(crate) struct TidyArgs {
    /// Lower the limits to today's counts. Never raises one.
    #[arg(long)]
    lower: bool,
    /// List every place that is counted in this area of the repository, as `crates/semel` or `docs`.
    #[arg(long, value_name = "AREA")]
    list: Option<String>,
}

/// The counts, and the findings: those of the file changed last stand at the end, next to the prompt.
#[derive(Debug, Default)]
struct Report {
    counts: Counts,
    table: String,
    findings: Vec<String>,
}

pub(crate) fn tidy(args: &TidyArgs) -> anyhow::Result<()> {
    let report = examine(run::root(), args.lower)?;
    if let Some(area) = &args.list {
        for place in report.counts.places(area) {
            println!("{place}");
        }
    }
    report.judge()
}

/// The step of the test command.
pub(crate) fn check() -> anyhow::Result<()> {
    examine(run::root(), false)?.judge()
}

// === impl Report ===

impl Report {
    fn judge(&self) -> anyhow::Result<()> {
        print!("{}", self.table);
        if self.findings.is_empty() {
            return Ok(());
        }
        bail!("tidy found:\n{}", self.findings.join("\n"));
    }
}

/// Counts the tree below `root` and compares it with `root`'s own limits.
fn examine(root: &Path, lower: bool) -> anyhow::Result<Report> {
    let sources = Sources::read(root)?;
    let phrases = Phrases::read(root)?;
    let counts = Counts::of(&sources, &phrases);
    let mut limits = Limits::read(root)?;
    if lower {
        limits.lower(&counts);
        limits.write(root)?;
    }
    let mut findings = links::dead(&sources);
    findings.extend(limits.compare(&counts));
    Ok(Report {
        table: table::print(&counts, &limits),
        findings,
        counts,
    })
}
