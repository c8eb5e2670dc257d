//! Whether a configuration fits what it is deployed by: how long the platform waits, when it kills, and how much of the
//! handler may run at once.

use super::{Finding, Judgement, Verdict};
use crate::config::Config;
use crate::config::terms::{Bound, TIMEOUT_BROKER, bound};
use crate::config::values::written;
use crate::deployment::{CLOUD_RUN_TIMEOUT_MAX, Deployment};
use crate::store_url::StoreUrl;
use semel_gate::settings::{DEADLINE_MARGIN as MARGIN, Route, Terms};
use semel_postgres::PostgresSettings;
use std::time::Duration;

/// All findings about a deployment: about the whole first, then route by route.
pub(crate) fn check(config: &Config, deployment: &Deployment) -> Vec<Finding> {
    let judged = [
        Some(killed(config, deployment)),
        cpu(config, deployment),
        connections(config, Some(deployment)),
        own_connections(config, deployment),
        embedded(config, deployment),
    ];
    let judged = judged.into_iter().flatten();
    let mut found: Vec<_> = judged
        .map(|(verdict, says)| Finding::gate(verdict, says))
        .collect();
    for route in &config.settings.routes {
        for source in route.sources.iter().copied() {
            let judged = request_timeout(route.terms(source), deployment);
            found.extend(
                judged.map(|(verdict, says)| Finding::route(route, Some(source), verdict, says)),
            );
        }
    }
    found
}

/// An answer that comes after the platform gave up reaches nobody, and the sender delivers again.
fn request_timeout(terms: &Terms, deployment: &Deployment) -> Judgement {
    let given_up = deployment.request_timeout?;
    let platform = deployment.platform;
    let cut = terms.timeout.saturating_add(MARGIN);
    let answered = terms.deadline.map_or(cut, |deadline| deadline.min(cut));
    let (within, seconds) = (answered.as_millis().div_ceil(1000), given_up.as_secs());
    if answered <= given_up {
        let says = format!(
            "answered within {within}s ≤ timeoutSeconds {seconds}: the gate answers before {platform} gives up"
        );
        return Some((Verdict::Proved, says));
    }
    let fix = if answered <= CLOUD_RUN_TIMEOUT_MAX {
        format!("set timeoutSeconds to {within} or more")
    } else {
        "it can be 3600 at the most: shorten timeout".into()
    };
    let says = format!(
        "answered within {within}s > timeoutSeconds {seconds}: {platform} would answer in the gate's place, and the \
         sender would deliver again while the handler runs; {fix}"
    );
    Some((Verdict::Broken, says))
}

/// Outcomes in hand are recorded, or named, before the process is killed.
fn killed(config: &Config, deployment: &Deployment) -> (Verdict, String) {
    let (grace, killed) = (config.settings.grace, deployment.killed_after);
    let platform = deployment.platform;
    let (stops, kills) = (written(grace), written(killed));
    if grace.saturating_add(MARGIN) <= killed {
        let says =
            format!("grace {stops} + 1s ≤ {kills}: the gate ends before {platform} kills it");
        return (Verdict::Proved, says);
    }
    let longest = written(killed.saturating_sub(MARGIN + Duration::from_secs(1)));
    let says = format!(
        "grace {stops} + 1s > {kills}: {platform} would kill the gate before it could name the outcomes that are left; \
         set grace = {longest:?}"
    );
    (Verdict::Warning, says)
}

/// Whether the process runs when its configuration counts on it.
fn cpu(config: &Config, deployment: &Deployment) -> Judgement {
    let annotation = "run.googleapis.com/cpu-throttling: \"false\"";
    match (config.freezes, deployment.always_runs) {
        (false, false) => {
            let says = format!(
                "cpu = \"always\", and the service lacks {annotation}: its containers are stopped between requests, in \
                 the middle of runs that outlast their senders"
            );
            Some((Verdict::Broken, says))
        }
        (true, true) => {
            let says = format!(
                "the service has {annotation}: with cpu = \"always\" a run may outlast its sender here, too"
            );
            Some((Verdict::Note, says))
        }
        (true, false) => {
            let routes = config.settings.routes.iter();
            let names: Vec<_> = routes
                .filter(|route| could_be_long(config, route))
                .map(|route| route.name.as_str())
                .collect();
            let says = format!(
                "the service lacks {annotation}: its containers are stopped between requests, so no run may outlast its \
                 sender, and work on {} that takes longer than its deadline is cut off in doubt; set it, and write cpu = \
                 \"always\"",
                names.join(", ")
            );
            Verdict::Warning.when(!names.is_empty(), says)
        }
        (false, true) => None,
    }
}

/// Whether its work would be let run longer than its sender waits, were it not for containers that are stopped.
fn could_be_long(config: &Config, route: &Route) -> bool {
    route.sources.iter().any(|source| {
        let terms = route.terms(*source);
        let is_bound = matches!(bound(*source, terms, config.freezes), Some(Bound::Frozen));
        terms.outlasts_sender()
            || (source.is_broker() && is_bound && terms.timeout + MARGIN < TIMEOUT_BROKER)
    })
}

/// A handler mostly holds a connection to its database while it runs.
pub(super) fn connections(config: &Config, deployment: Option<&Deployment>) -> Judgement {
    let routes = config.settings.routes.iter();
    let runs: u64 = routes
        .map(|route| u64::try_from(route.concurrency).unwrap_or(u64::MAX))
        .fold(0, u64::saturating_add);
    let (each, instances, product) = match deployment {
        None => (runs, 1, format!("the concurrency of all routes, {runs},")),
        Some(deployment) => {
            let instances = deployment.instances_max;
            let each = deployment.requests_at_once.unwrap_or(runs);
            let name = match deployment.requests_at_once {
                Some(_) => "containerConcurrency",
                None => "the concurrency of all routes,",
            };
            let most = match deployment.requests_at_once {
                Some(_) => "maxScale",
                None => "replicas",
            };
            let product = format!("{name} {each} × {most} {instances}");
            (each, instances, product)
        }
    };
    let needed = each.saturating_mul(instances);
    let Some(has) = config.database_connections else {
        deployment?;
        let says = format!(
            "{product} = {needed} requests at once: if each holds a connection to a database, that many; write \
             database_connections = what there is, and this is proved"
        );
        return Some((Verdict::Note, says));
    };
    Some(if needed <= has {
        let says = format!(
            "{product} ≤ database_connections {has}: every request of the handler finds a connection"
        );
        (Verdict::Proved, says)
    } else {
        let says = format!(
            "{product} = {needed} > database_connections {has}: requests would fail for lack of a connection; allow \
             fewer at once, or more connections"
        );
        (Verdict::Broken, says)
    })
}

/// The variable of the deployment has the last word on the store.
fn embedded(config: &Config, deployment: &Deployment) -> Judgement {
    if !deployment.gives_embedded_store || matches!(config.store, StoreUrl::Embedded(_)) {
        return None;
    }
    let finding = super::embedded_on(deployment.platform, config.options.single_instance);
    Some((finding.verdict, format!("SEMEL_STORE: {}", finding.says)))
}

/// The gates' own come on top, where they share a server with the handler.
fn own_connections(config: &Config, deployment: &Deployment) -> Judgement {
    let StoreUrl::Postgres(url) = &config.store else {
        return None;
    };
    let each = PostgresSettings::new(url).pool_size;
    let instances = deployment.instances_max;
    let all = u64::try_from(each).ok()?.saturating_mul(instances);
    let says = format!(
        "the gates themselves open up to {each} × {instances} = {all} connections to the store"
    );
    Some((Verdict::Note, says))
}
