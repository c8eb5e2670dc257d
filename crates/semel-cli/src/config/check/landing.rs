//! Routes whose deliveries land: whether they stay where they land, and what is not removed there.

use super::route::proved_if;
use super::{Finding, Judgement, Verdict};
use crate::config::terms::LAND_MARGIN;
use crate::config::{Config, written};
use crate::landing_url::LandingUrl;
use crate::promise::Disk;
use semel_gate::settings::{FingerprintRule, LandRule, Lands, Route, Source};
use std::path::Path;

/// All findings about where a route lands.
pub(super) fn check(config: &Config, route: &Route) -> Vec<Finding> {
    let (Some(rule), Some(url)) = (&route.land, config.landings.get(&route.name)) else {
        return Vec::new();
    };
    let said = [
        Some(place(config, url)),
        Some(duplicates(rule)),
        too_large(route, rule),
        conflicts(route),
    ];
    let said = said.into_iter().flatten();
    let mut found: Vec<_> = said
        .map(|(verdict, says)| Finding::route(route, None, verdict, says))
        .collect();
    for source in route.sources.iter().copied() {
        let in_time = in_time(route, rule, source);
        found.extend(
            in_time.map(|(verdict, says)| Finding::route(route, Some(source), verdict, says)),
        );
    }
    found
}

/// A handler that takes longer would be called again and again, and its answer would never land.
fn in_time(route: &Route, rule: &LandRule, source: Source) -> Judgement {
    if rule.lands == Lands::Delivery {
        return None;
    }
    let timeout = route.terms(source).timeout;
    let holds = timeout.saturating_add(LAND_MARGIN) <= rule.within;
    let (own, within) = (written(timeout), written(rule.within));
    let says = if holds {
        format!("timeout {own} + 5s ≤ land_within {within}: an answer has time to land")
    } else {
        format!(
            "timeout {own} + 5s > land_within {within}: an answer that took so long would not land, and its handler would be \
             called again; shorten timeout, or lengthen land_within and how far the merge looks back"
        )
    };
    Some((proved_if(holds), says))
}

fn place(config: &Config, url: &LandingUrl) -> (Verdict, String) {
    match url {
        LandingUrl::Table(_, table) => {
            let says = format!(
                "lands in the table {table} and, what is invalid, in {table}_faults: the gate looks at both when it starts"
            );
            (Verdict::Note, says)
        }
        LandingUrl::Files(path) => files(config, path),
    }
}

/// Rows are acknowledged because they are on a disk that stays.
fn files(config: &Config, path: &Path) -> (Verdict, String) {
    let directory = path.display();
    if Disk::under(path) == Disk::Memory {
        let says = format!(
            "land = \"file:{directory}\" is in memory (tmpfs), and what landed there is acknowledged: name a directory on a disk"
        );
        return (Verdict::Broken, says);
    }
    match config.platform {
        Some(platform) if !config.declared.durable_disk => {
            let says = format!(
                "land = \"file:{directory}\" on {platform}, which replaces the disks of its instances: land in postgres://…, or, \
                 where the directory is a volume that stays, declare durable_disk = true"
            );
            (Verdict::Broken, says)
        }
        Some(_) | None => {
            let says = format!(
                "lands in {directory}/*.jsonl and, what is invalid, in {directory}/faults/*.jsonl: take files with that ending only, \
                 the others are still written"
            );
            (Verdict::Note, says)
        }
    }
}

fn duplicates(rule: &LandRule) -> (Verdict, String) {
    let what = match rule.lands {
        Lands::Delivery => "",
        Lands::Answer => {
            " The handler runs as often as it is delivered: that removes the second row, not the second bill."
        }
    };
    let says = format!(
        "rows land at least once, within {} of their arrival: a merge that looks back farther removes repeats \
         (`semel warehouse sql`).{what}",
        written(rule.within)
    );
    (Verdict::Note, says)
}

fn too_large(route: &Route, rule: &LandRule) -> Judgement {
    let says = format!(
        "an answer of more than answer_bytes_max {} does not land: its sender hears 502",
        route.answer_bytes_max
    );
    Verdict::Note.when(rule.lands == Lands::Answer, says)
}

fn conflicts(route: &Route) -> Judgement {
    let says = "fingerprint = \"off\": two inputs under one event_id cannot be told from a repeat; set it to \"full\"";
    Verdict::Warning.when(route.fingerprint == FingerprintRule::Off, says)
}
