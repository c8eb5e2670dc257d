//! The files that a report is written to. They are emptied before the run, so that none of them tells of another.

use crate::args::prove::ProveArgs;
use crate::out::to_stderr;
use anyhow::Context;
use semel_prove::report;
use semel_prove::report::Report;
use std::path::{Path, PathBuf};

pub(super) struct Pages {
    scenario: String,
    junit: Option<PathBuf>,
    html: Option<PathBuf>,
}

// === impl Pages ===

impl Pages {
    /// Fails before anything is started when a file cannot be written.
    pub(super) fn open(args: &ProveArgs) -> anyhow::Result<Self> {
        for path in args.junit.iter().chain(&args.html) {
            write(path, "")?;
        }
        let scenario = args.file.as_ref();
        Ok(Self {
            scenario: scenario.map_or_else(|| "flags".into(), |file| file.display().to_string()),
            junit: args.junit.clone(),
            html: args.html.clone(),
        })
    }

    pub(super) fn write(&self, report: &Report) -> anyhow::Result<()> {
        if let Some(path) = &self.junit {
            write(path, &report::junit(report))?;
        }
        if let Some(path) = &self.html {
            write(path, &report::html(report))?;
        }
        Ok(())
    }

    /// There is no report: one error for a CI job, and no page.
    pub(super) fn without(&self, why: &str) {
        let junit = self.junit.as_ref();
        let junit = junit.map(|path| write(path, &report::junit_without(&self.scenario, why)));
        // A device stays.
        let html = self.html.as_ref().filter(|path| path.is_file());
        let html = html.map(|path| {
            std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
        });
        for failed in [junit, html].into_iter().flatten().filter_map(Result::err) {
            to_stderr(&format!("semel: {failed:#}\n"));
        }
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
