//! The packages of the workspace, as `cargo metadata` lists them.

use crate::run;
use anyhow::Context;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Part of what `cargo metadata` prints.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
}

/// A package: one of ours when it has no source.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) manifest_path: PathBuf,
}

/// Our own packages.
pub(crate) fn packages() -> anyhow::Result<Vec<Package>> {
    metadata("--no-deps")
}

/// Our packages and everything that they are built from on Linux.
pub(crate) fn with_dependencies() -> anyhow::Result<Vec<Package>> {
    metadata("--all-features --filter-platform x86_64-unknown-linux-gnu")
}

fn metadata(words: &str) -> anyhow::Result<Vec<Package>> {
    let mut command = run::cargo("metadata --format-version 1 --locked");
    let text = run::output(command.args(words.split_whitespace()))?;
    let metadata: Metadata = serde_json::from_str(&text).context("cannot read the metadata")?;
    Ok(metadata.packages)
}
