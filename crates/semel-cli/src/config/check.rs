//! Checking: whether the times and sizes of a configuration fit together, in sentences.

mod route;
mod stateless;
mod landing;
mod long;
mod probe;
mod fingerprint;
mod verify;
mod named;
mod promise;
mod deployment;

pub(crate) use promise::check as check_promises;

use super::overlaps::covers;
use super::{Config, Platform};
use crate::deployment::Deployment;
use crate::promise::StoreFacts;
use crate::store_url::StoreUrl;
use semel_gate::path::PathPattern;
use semel_gate::settings::{Route, Source, Verify};
use std::fmt;

/// What was found about a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// The route it is about; none for the whole gate.
    pub(crate) route: Option<String>,
    /// The source it is about; none for all of them.
    pub(crate) source: Option<Source>,
    pub(crate) says: String,
}

/// How good or bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It holds.
    Proved,
    /// Good to know.
    Note,
    /// It works, and somebody should have decided so.
    Warning,
    /// It cannot work: the gate does not start.
    Broken,
}

/// A verdict and its words, if there is one.
type Judgement = Option<(Verdict, String)>;

/// What cannot work. Starting again without fixing it fails again.
#[derive(Debug)]
pub(crate) struct Broken(Vec<Finding>);

/// All findings: about the gate first, then route by route.
pub(crate) fn check(config: &Config) -> Vec<Finding> {
    check_on(config, None)
}

/// The same, with those about a deployment. A promise of what is refused is not called proved.
pub(crate) fn check_on(config: &Config, deployment: Option<&Deployment>) -> Vec<Finding> {
    let mut found = settings(config);
    found.extend(deployment.map_or_else(Vec::new, |it| deployment::check(config, it)));
    let is_refused = |promise: &Finding| {
        let mut broken = found.iter().filter(|found| found.is_broken());
        broken.any(|found| found.route.is_none() || found.route == promise.route)
    };
    let mut promises = promise::check(config, &StoreFacts::unread(config));
    promises.retain(|promise| promise.verdict != Verdict::Proved || !is_refused(promise));
    found.extend(promises);
    found
}

/// The findings about all but promises and the deployment.
fn settings(config: &Config) -> Vec<Finding> {
    let routes = &config.settings.routes;
    let mut found: Vec<_> = [
        store(config),
        options(config),
        pass(config),
        proxies(config),
        certificate(config),
        renaming(),
        unreached(config),
    ]
    .into_iter()
    .flatten()
    .collect();
    found.extend(trust(config));
    let connections = deployment::connections(config, None);
    found.extend(connections.map(|(verdict, says)| Finding::gate(verdict, says)));
    found.extend(surrounded(config));
    for route in routes {
        found.extend(route::check(
            route,
            config.settings.bodies_bytes_max,
            config.platform,
        ));
        found.extend(long::check(config, route));
        if route.keeps_records() {
            found.extend(probe::check(route));
        } else {
            found.extend(stateless::check(route, config.platform));
        }
        found.extend(landing::check(config, route));
    }
    found
}

/// The embedded store belongs to one process; platforms start as many as they like.
fn store(config: &Config) -> Option<Finding> {
    if !config.keeps_records() {
        let says = "no route keeps records: no store is opened, whatever `store` says";
        return Some(Finding::gate(Verdict::Note, says));
    }
    let platform = match (&config.store, config.platform) {
        (StoreUrl::Embedded(_), Some(platform)) => platform,
        (StoreUrl::Redis(_), _) => {
            let says = "Redis keeps records as safely as its own settings say; the gate names them at start";
            return Some(Finding::gate(Verdict::Note, says));
        }
        (StoreUrl::Embedded(_), None) | (StoreUrl::Postgres(_) | StoreUrl::Firestore(_), _) => {
            return None;
        }
    };
    Some(embedded_on(platform, config.options.single_instance))
}

fn embedded_on(platform: Platform, single_instance: bool) -> Finding {
    if single_instance {
        let says = format!(
            "the embedded store on {platform} relies on single_instance: two gates at once would not know of each other, and a lost disk forgets every key"
        );
        return Finding::gate(Verdict::Warning, says);
    }
    let says = format!(
        "store is a directory, and {platform} may run several gates, each with its own: duplicates would run once in \
         each; use postgres://, redis:// or firestore://, or promise single_instance = true"
    );
    Finding::gate(Verdict::Broken, says)
}

fn options(config: &Config) -> Option<Finding> {
    let options = config.options;
    match &config.store {
        _ if !config.keeps_records() => None,
        StoreUrl::Postgres(_) if options.relaxed_claims => Some(Finding::gate(
            Verdict::Warning,
            "relaxed_claims: a crash of the PostgreSQL server may forget claims of its last moments, and their work runs again",
        )),
        StoreUrl::Embedded(_) | StoreUrl::Redis(_) | StoreUrl::Firestore(_)
            if options.relaxed_claims || options.pooler =>
        {
            Some(Finding::gate(
                Verdict::Warning,
                "relaxed_claims and pooler are for postgres:// stores: this one does not look at them",
            ))
        }
        StoreUrl::Postgres(_)
        | StoreUrl::Embedded(_)
        | StoreUrl::Redis(_)
        | StoreUrl::Firestore(_) => None,
    }
}

fn pass(config: &Config) -> Option<Finding> {
    let pass = config.settings.pass.as_ref()?;
    let paths: Vec<_> = pass.paths.iter().map(ToString::to_string).collect();
    let says = format!("forwarded unprotected, as pass says: {}", paths.join(", "));
    Some(Finding::gate(Verdict::Note, says))
}

/// Behind a load balancer, all senders are one address.
fn proxies(config: &Config) -> Option<Finding> {
    let settings = &config.settings;
    if settings.listen.ip().is_loopback() || !settings.proxies.is_empty() {
        return None;
    }
    let part = "one address may take a quarter of connections_max and bodies_bytes_max";
    let Some(platform) = config.platform else {
        let says = format!("{part}: name load balancers in proxies");
        return Some(Finding::gate(Verdict::Note, says));
    };
    let says = format!(
        "{part}, and on {platform} one address may be everybody's: name it in proxies (Cloud Run: \"169.254.0.0/16\")"
    );
    Some(Finding::gate(Verdict::Warning, says))
}

/// Senders refuse it, and what runs has to be restarted for nothing once it is renewed.
fn certificate(config: &Config) -> Option<Finding> {
    let why = config.settings.tls.as_ref()?.out_of_time()?;
    let says = format!("{why}; senders refuse it");
    Some(Finding::gate(Verdict::Warning, says))
}

/// Other spellings of a route's path are refused, but the gate cannot know which other paths lead to the
/// same code.
fn surrounded(config: &Config) -> Vec<Finding> {
    let passed = config.settings.pass.iter().flat_map(|pass| &pass.paths);
    let around = |path: &PathPattern, route: &Route| {
        !matches!(path, PathPattern::Exact(_)) && covers(path, &route.path)
    };
    passed
        .flat_map(|path| {
            let routes = config.settings.routes.iter();
            routes.filter(move |route| around(path, route)).map(move |route| {
                let says = format!(
                    "pass {path} surrounds {}: whatever else the handler takes for it (/index.php{0}, {0}.json, a rewrite) is forwarded unprotected; name the paths to pass one by one",
                    route.path
                );
                Finding::route(route, None, Verdict::Warning, says)
            })
        })
        .collect()
}

fn renaming() -> Option<Finding> {
    let says = "a route's name and the namespace enter every key: renaming one forgets its keys";
    Some(Finding::gate(Verdict::Note, says))
}

/// The assumption below every promise.
fn unreached(config: &Config) -> Option<Finding> {
    let says = "no promise covers work whose sender gives up before its letter is due: each attempt until then was refused, or lost \
                with its gate";
    config
        .keeps_records()
        .then(|| Finding::gate(Verdict::Note, says))
}

fn trust(config: &Config) -> Option<Finding> {
    let settings = &config.settings;
    let takes_anybody =
        |route: &&Route| route.verify == Verify::Off && route.sources != [Source::Api];
    let routes = settings.routes.iter().filter(takes_anybody);
    let names: Vec<_> = routes.map(|route| route.name.as_str()).collect();
    let says = format!(
        "the senders' identity is not checked on {}: whoever reaches {} can deliver there, so let only your senders reach \
         it, or let the route check their tokens (verify)",
        names.join(", "),
        settings.listen
    );
    (!names.is_empty()).then(|| Finding::gate(Verdict::Warning, says))
}

// === impl Finding ===

impl Finding {
    fn gate(verdict: Verdict, says: impl Into<String>) -> Self {
        Self {
            verdict,
            route: None,
            source: None,
            says: says.into(),
        }
    }

    fn route(route: &Route, source: Option<Source>, verdict: Verdict, says: String) -> Self {
        Self {
            verdict,
            route: Some(route.name.clone()),
            source,
            says,
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.verdict == Verdict::Broken
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(route) = &self.route {
            write!(f, "route {route}")?;
            if let Some(source) = self.source {
                write!(f, ", {source}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.says)
    }
}

// === impl Verdict ===

impl Verdict {
    /// This verdict, where something is so.
    fn when(self, so: bool, says: impl Into<String>) -> Judgement {
        so.then(|| (self, says.into()))
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Broken => "broken",
        }
    }
}

// === impl Broken ===

impl Broken {
    pub(crate) fn among(findings: &[Finding]) -> Option<Self> {
        let broken = findings.iter().filter(|finding| finding.is_broken());
        let broken: Vec<_> = broken.cloned().collect();
        (!broken.is_empty()).then_some(Self(broken))
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration does not hold together")?;
        for finding in &self.0 {
            write!(f, "\n  {finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Broken {}
