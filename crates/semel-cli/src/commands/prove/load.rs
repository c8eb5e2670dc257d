//! A scenario from its file or from flags.

use crate::args::prove::{Flags, PromiseArg, ProveArgs};
use anyhow::{Context, bail};
use semel_prove::scenario::Scenario;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The scenario, and the directory that it is about.
pub(super) fn scenario(args: &ProveArgs) -> anyhow::Result<(Scenario, PathBuf)> {
    match &args.file {
        Some(path) => from_file(path),
        None => {
            let here = std::env::current_dir().context("cannot tell the current directory")?;
            Ok((from_flags(&args.flags)?, here))
        }
    }
}

fn from_file(path: &Path) -> anyhow::Result<(Scenario, PathBuf)> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the scenario {}", path.display()))?;
    let mut scenario: Scenario =
        toml::from_str(&text).with_context(|| format!("in {}", path.display()))?;
    let path = path
        .canonicalize()
        .with_context(|| format!("cannot find {}", path.display()))?;
    if scenario.name.is_empty() {
        scenario.name = name(&path);
    }
    let directory = path.parent().context("the scenario has no directory")?;
    let directory = directory.to_owned();
    Ok((scenario, directory))
}

/// The directory and the file, as `notification/wrong`.
fn name(path: &Path) -> String {
    let directory = path.parent().and_then(Path::file_name).unwrap_or_default();
    let file = path.file_stem().unwrap_or_default();
    format!("{}/{}", directory.display(), file.display())
}

/// Flags say the same as a file would, so they are read as one.
fn from_flags(flags: &Flags) -> anyhow::Result<Scenario> {
    let text = |text: &str| Value::String(text.into());
    let table = |fields: Vec<(&str, Option<&str>)>| -> Value {
        let given = fields
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), text(value?))));
        Value::Table(given.collect())
    };
    let mut scenario = Table::new();
    scenario.insert("name".into(), text("flags"));
    scenario.insert("promise".into(), text(flags.promise.words()));
    let accept = flags.accept.iter().map(|gap| text(gap));
    scenario.insert("accept".into(), Value::Array(accept.collect()));
    if let Some(spawn) = &flags.spawn {
        let process = table(vec![("name", Some("handler")), ("spawn", Some(spawn))]);
        scenario.insert("process".into(), Value::Array(vec![process]));
    }
    let dependencies = flags.dependency.iter();
    let dependencies = dependencies.map(|name| table(vec![("env", Some(name))]));
    scenario.insert("dependency".into(), Value::Array(dependencies.collect()));
    let deliver = table(vec![
        ("as", Some(&flags.sender)),
        ("target", flags.target.as_deref()),
        ("path", flags.path.as_deref()),
        ("body", Some(&flags.body)),
    ]);
    scenario.insert("deliver".into(), deliver);
    let effects: Vec<Value> = [
        ("sql", &flags.effect_sql),
        ("http", &flags.effect_http),
        ("command", &flags.effect_command),
        ("redis", &flags.effect_redis),
        ("firestore", &flags.effect_firestore),
        ("calls", &flags.effect_calls),
    ]
    .into_iter()
    .filter_map(|(kind, value)| {
        let value = value.as_deref()?;
        Some(table(vec![("name", Some(kind)), (kind, Some(value))]))
    })
    .collect();
    if effects.is_empty() {
        bail!(
            "no effect can be seen: give --effect-sql, --effect-http, --effect-command, --effect-redis, --effect-firestore \
             or --effect-calls"
        );
    }
    scenario.insert("effect".into(), Value::Array(effects));
    scenario.try_into().context("in the flags")
}

// === impl PromiseArg ===

impl PromiseArg {
    fn words(self) -> &'static str {
        match self {
            Self::Exactly => "exactly once",
            Self::AtMost => "at most once",
            Self::AtLeast => "at least once",
        }
    }
}
