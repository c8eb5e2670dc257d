//! Opening the places where deliveries land.

use crate::admin::is_unavailable;
use crate::config::Config;
use crate::landing_url::LandingUrl;
use crate::out;
use crate::promise::StoreFacts;
use crate::proved_landing::{Proof, ProvedSink};
use anyhow::Context;
use semel::Error;
use semel_gate::Landings;
use semel_gate::settings::{Lands, Route};
use semel_landing::{FileSettings, FileSink, Landing};
use semel_postgres::{PostgresSettings, TableSettings, TableSink};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use tokio::sync::watch;

/// The places where deliveries land, and what is known of the servers of those that are tables.
#[derive(Debug)]
pub(crate) struct OpenedLandings {
    pub(crate) landings: Landings,
    /// The proofs of tables, by the names of their routes.
    proofs: BTreeMap<String, Proof>,
    /// Counts the servers that were read.
    reads: watch::Sender<u64>,
}

/// One place, which routes share that name it.
#[derive(Clone)]
struct Place {
    landing: Landing,
    proof: Option<Proof>,
}

/// Opens the places that the routes name; routes that name the same one share it. A database that cannot be reached is
/// waited for: until then senders receive 503.
///
/// # Errors
/// An error that waiting does not cure, or any where waiting is not wanted; the message has no password.
pub(crate) async fn open(config: &Config, fail_fast: bool) -> anyhow::Result<OpenedLandings> {
    let (mut landings, mut proofs) = (Landings::new(), BTreeMap::new());
    let reads = watch::Sender::default();
    let mut opened: HashMap<(LandingUrl, bool), Place> = HashMap::new();
    for route in &config.settings.routes {
        let Some(url) = config.landings.get(&route.name) else {
            continue;
        };
        let shared = (url.clone(), lands_answers(route));
        let place = match opened.get(&shared) {
            Some(place) => place.clone(),
            None => {
                let place = open_one(url, shared.1, fail_fast, &reads).await;
                place.with_context(|| format!("route {}: land", route.name))?
            }
        };
        opened.insert(shared, place.clone());
        landings.insert(route.name.clone(), place.landing);
        if let Some(proof) = place.proof {
            if route.promise.is_some() {
                proof.demand();
            }
            proofs.insert(route.name.clone(), proof);
        }
    }
    Ok(OpenedLandings {
        landings,
        proofs,
        reads,
    })
}

// === impl OpenedLandings ===

impl OpenedLandings {
    /// Adds what was read of the servers so far.
    pub(crate) fn add_to(&self, facts: &mut StoreFacts) {
        for (route, proof) in &self.proofs {
            if let Some(settings) = proof.read() {
                facts.landed(route, settings);
            }
        }
    }

    /// Announces each further server that is read.
    pub(crate) fn reads(&self) -> watch::Receiver<u64> {
        self.reads.subscribe()
    }

    /// Returns whether every server was read.
    pub(crate) fn is_read(&self) -> bool {
        self.proofs.values().all(|proof| proof.read().is_some())
    }

    /// Lets the rows of this route land.
    pub(crate) fn prove(&self, route: &str) {
        if let Some(proof) = self.proofs.get(route) {
            proof.prove();
        }
    }
}

fn lands_answers(route: &Route) -> bool {
    let rule = route.land.as_ref();
    rule.is_some_and(|rule| rule.lands == Lands::Answer)
}

async fn open_one(
    url: &LandingUrl,
    answers: bool,
    fail_fast: bool,
    reads: &watch::Sender<u64>,
) -> anyhow::Result<Place> {
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
            Ok(Place {
                landing: Landing::begin(sink),
                proof: None,
            })
        }
        LandingUrl::Table(database, table) => {
            let sink = TableSink::new(TableSettings {
                database: PostgresSettings::new(database),
                table: table.clone(),
                answers,
            })?;
            let (mut sink, proof) = ProvedSink::of(sink, reads);
            match sink.check().await {
                Ok(says) => tracing::info!(%table, says, "landing"),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    if fail_fast || !is_unavailable(&error) {
                        return Err(error);
                    }
                    let why = out::told(&error);
                    tracing::warn!(%table, why, "waiting for the landing: senders receive 503; --fail-fast would exit instead");
                }
            }
            Ok(Place {
                landing: Landing::begin(sink),
                proof: Some(proof),
            })
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
