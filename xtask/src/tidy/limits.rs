//! The limits, and the counts compared with them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::count::{Count, Counts, Measure};

const FILE: &str = "xtask/tidy/limits.toml";

const HEAD: &str = "\
# Limits on growth, by area of the repository. `cargo xtask tidy` compares them with today's counts.
# They only fall: `cargo xtask tidy --lower` writes lower counts down. A change that needs a higher limit edits this
# file, and the body of its commit says why.
";

/// The longest lists end with what changed last.
const PLACES_MAX: usize = 60;

/// Limits by area and measure.
#[derive(Debug)]
pub(super) struct Limits {
    areas: BTreeMap<String, BTreeMap<String, usize>>,
}

// === impl Limits ===

impl Limits {
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
        let areas = toml::from_str(&text).with_context(|| format!("cannot read {FILE}"))?;
        Ok(Self { areas })
    }

    pub(super) fn write(&self, root: &Path) -> anyhow::Result<()> {
        let mut text = HEAD.to_owned();
        for (area, limits) in &self.areas {
            let _infallible = write!(text, "\n[\"{area}\"]\n");
            let of = |measure: &Measure| Some((measure.name(), limits.get(measure.name())?));
            for (name, limit) in Measure::ALL.iter().filter_map(of) {
                let _infallible = writeln!(text, "{name} = {limit}");
            }
        }
        fs::write(root.join(FILE), text).with_context(|| format!("cannot write {FILE}"))
    }

    pub(super) fn limit(&self, area: &str, measure: Measure) -> Option<usize> {
        self.areas.get(area)?.get(measure.name()).copied()
    }

    /// Takes over every count below its limit. A new area starts at its counts, and an area that is gone has no limit.
    pub(super) fn lower(&mut self, counts: &Counts) {
        let areas = counts.areas.iter().map(|(area, measures)| {
            let lowered = |(measure, count): (&Measure, &Count)| {
                let limit = self.limit(area, *measure).unwrap_or(count.value);
                (measure.name().to_owned(), limit.min(count.value))
            };
            (area.clone(), measures.iter().map(lowered).collect())
        });
        self.areas = areas.collect();
    }

    pub(super) fn compare(&self, counts: &Counts) -> Vec<String> {
        let mut findings = Vec::new();
        for (area, measures) in &counts.areas {
            for (measure, count) in measures {
                findings.extend(self.compare_one(area, *measure, count));
            }
        }
        let is_gone = |area: &&String| !counts.areas.contains_key(*area);
        for area in self.areas.keys().filter(is_gone) {
            findings.push(format!(
                "{FILE}: there is no {area} any more; `cargo xtask tidy --lower`"
            ));
        }
        findings
    }

    fn compare_one(&self, area: &str, measure: Measure, count: &Count) -> Vec<String> {
        let has = measure.sentence(count.value);
        let Some(limit) = self.limit(area, measure) else {
            return vec![format!(
                "{FILE}: {area} has {has} and no limit; `cargo xtask tidy --lower` adds it"
            )];
        };
        if count.value < limit {
            return vec![format!(
                "{FILE}: {area} has {has}, below its limit of {limit}; `cargo xtask tidy --lower`"
            )];
        }
        if count.value == limit {
            return Vec::new();
        }
        let places = count.places.len();
        let newest = count.places.iter().skip(places.saturating_sub(PLACES_MAX));
        let mut findings: Vec<String> = newest.cloned().collect();
        findings.push(format!(
            "{area} has {has}, above its limit of {limit} in {FILE}"
        ));
        findings
    }
}
