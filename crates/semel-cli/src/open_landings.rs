//! Opening the places where deliveries land.

use crate::admin::is_unavailable;
use crate::config::Config;
use crate::landing_url::LandingUrl;
use crate::out;
use anyhow::Context;
use semel::Error;
use semel_gate::Landings;
use semel_gate::settings::{Lands, Route};
use semel_landing::{FileSettings, FileSink, Landing};
use semel_postgres::{PostgresSettings, TableSettings, TableSink};
use std::collections::HashMap;
use std::path::Path;

/// Opens what the routes name; routes that name the same share it. A database that cannot be reached is waited for:
/// until then senders hear 503.
///
/// # Errors
/// When waiting is of no use, or nobody wants to wait; the message has no password.
pub(crate) async fn open(config: &Config, fail_fast: bool) -> anyhow::Result<Landings> {
    let mut landings = Landings::new();
    let mut opened: HashMap<(LandingUrl, bool), Landing> = HashMap::new();
    for route in &config.settings.routes {
        let Some(url) = config.landings.get(&route.name) else {
            continue;
        };
        let shared = (url.clone(), lands_answers(route));
        let landing = match opened.get(&shared) {
            Some(landing) => landing.clone(),
            None => {
                let landing = open_one(url, shared.1, fail_fast).await;
                landing.with_context(|| format!("route {}: land", route.name))?
            }
        };
        opened.insert(shared, landing.clone());
        landings.insert(route.name.clone(), landing);
    }
    Ok(landings)
}

fn lands_answers(route: &Route) -> bool {
    let rule = route.land.as_ref();
    rule.is_some_and(|rule| rule.lands == Lands::Answer)
}

async fn open_one(url: &LandingUrl, answers: bool, fail_fast: bool) -> anyhow::Result<Landing> {
    match url {
        LandingUrl::Files(path) => {
            let sink = FileSink::open(FileSettings::new(path));
            let sink = sink.with_context(|| {
                format!(
                    "the directory {} cannot be used: let this process make it and write there, then start again",
                    path.display()
                )
            })?;
            tracing::info!(directory = %path.display(), "landing");
            Ok(Landing::begin(sink))
        }
        LandingUrl::Table(database, table) => {
            let mut sink = TableSink::new(TableSettings {
                database: PostgresSettings::new(database),
                table: table.clone(),
                answers,
            })?;
            match sink.check().await {
                Ok(says) => tracing::info!(%table, says, "landing"),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    if fail_fast || !is_unavailable(&error) {
                        return Err(error);
                    }
                    let why = out::told(&error);
                    tracing::warn!(%table, why, "waiting for the landing: senders hear 503; --fail-fast would exit instead");
                }
            }
            Ok(Landing::begin(sink))
        }
    }
}

/// What opening a place would refuse before it dials or makes anything.
///
/// # Errors
/// What is wrong, without the password.
pub(crate) fn judge(url: &LandingUrl) -> Result<(), Error> {
    match url {
        LandingUrl::Files(path) => judge_directory(path),
        LandingUrl::Table(database, _) => PostgresSettings::new(database).validate(),
    }
}

fn judge_directory(path: &Path) -> Result<(), Error> {
    if path.starts_with("~") {
        return Err(Error::invalid(format!(
            "{}: nobody but a shell knows what ~ is: write the whole path",
            path.display()
        )));
    }
    let mut there = path.ancestors().filter(|it| it.symlink_metadata().is_ok());
    match there.next() {
        Some(there) if !there.is_dir() => Err(Error::invalid(format!(
            "{} is not a directory: name one, or one that is not there yet",
            there.display()
        ))),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_directory_that_cannot_be_made_is_refused_before_the_start() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        for path in [at("file"), at("file/below"), at("dangling"), "~/x".into()] {
            assert!(judge_directory(&path).is_err(), "{}", path.display());
        }
        for path in [home.path().into(), at("new/below")] {
            judge_directory(&path).unwrap();
        }
    }
}
