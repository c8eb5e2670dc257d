//! Counts what is limited, per area of the repository and for the whole.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{self, File};
use super::phrases::{self, Phrases};
use super::sources::{Sources, Text};

/// Lines are counted in hundreds, so that a change of a few lines needs no new limit.
const LINES_STEP: usize = 100;

/// Crates outside these folders are tools and tests: their lines are no product.
const PRODUCT_FOLDERS: [&str; 2] = ["crates", "python"];

const FIELDS: &str = "crates/semel-cli/src/config/fields.toml";

/// A quantity with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Measure {
    /// Modules of the largest cycle of top-level modules; 1 is no cycle.
    Cycle,
    /// Files in the fullest folder.
    Folder,
    /// Doc comments that begin with a clause, in percent, rounded up.
    Clauses,
    /// Lines that carry a phrase of the table.
    Phrases,
    /// Lines of Rust under `src/` without tests, rounded up to hundreds.
    Product,
    /// All lines of Rust, rounded up to hundreds.
    Rust,
    /// Settings of one route.
    Settings,
}

/// One value, and the places behind it.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) value: usize,
    pub(super) places: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    /// By area; the whole is [`WHOLE`].
    pub(super) areas: BTreeMap<String, BTreeMap<Measure, Count>>,
}

pub(super) const WHOLE: &str = "whole";

// === impl Measure ===

impl Measure {
    pub(super) const ALL: [Self; 7] = [
        Self::Cycle,
        Self::Folder,
        Self::Clauses,
        Self::Phrases,
        Self::Product,
        Self::Rust,
        Self::Settings,
    ];

    /// The name in `limits.toml` and in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cycle => "cycle",
            Self::Folder => "folder",
            Self::Clauses => "clauses",
            Self::Phrases => "phrases",
            Self::Product => "product",
            Self::Rust => "rust",
            Self::Settings => "settings",
        }
    }

    /// For findings: "semel-gate has …".
    pub(super) fn sentence(self, value: usize) -> String {
        match self {
            Self::Cycle => format!("a cycle of {value} modules"),
            Self::Folder => format!("{value} files in one folder"),
            Self::Clauses => format!("{value} % doc comments that begin with a clause"),
            Self::Phrases => format!("{value} lines with phrases that the field does not use"),
            Self::Product => format!("{value} product lines"),
            Self::Rust => format!("{value} lines of Rust"),
            Self::Settings => format!("{value} settings per route"),
        }
    }
}

// === impl Counts ===

impl Counts {
    pub(super) fn of(sources: &Sources, phrases: &Phrases) -> Self {
        let mut by_area: BTreeMap<&str, Vec<&Text>> = BTreeMap::new();
        for text in &sources.texts {
            by_area.entry(&text.area).or_default().push(text);
        }
        let mut areas: BTreeMap<String, BTreeMap<Measure, Count>> = BTreeMap::new();
        let mut whole = BTreeMap::new();
        for (area, texts) in by_area {
            let mut counts = BTreeMap::from([(Measure::Phrases, phrases_of(&texts, phrases))]);
            if sources.paths.contains(&format!("{area}/Cargo.toml")) {
                counts.extend(crate_counts(area, &texts, sources));
            }
            for measure in [Measure::Phrases, Measure::Product, Measure::Rust] {
                let value = counts.get(&measure).map_or(0, |count| count.value);
                whole.entry(measure).or_insert_with(Count::default).value += value;
            }
            areas.insert(area.to_owned(), counts);
        }
        whole.insert(Measure::Settings, settings(sources));
        areas.insert(WHOLE.into(), whole);
        Self { areas }
    }

    /// Returns the places behind every count of an area.
    pub(super) fn places(&self, area: &str) -> impl Iterator<Item = &String> {
        let counts = self.areas.get(area).into_iter().flat_map(BTreeMap::values);
        counts.flat_map(|count| &count.places)
    }
}

fn crate_counts(area: &str, texts: &[&Text], sources: &Sources) -> BTreeMap<Measure, Count> {
    let rust: Vec<&Text> = texts
        .iter()
        .filter(|it| it.has_extension("rs"))
        .copied()
        .collect();
    let is_product = PRODUCT_FOLDERS.contains(&area.split('/').next().unwrap_or(""));
    let product = rust.iter().filter(|it| is_product && it.is_product());
    BTreeMap::from([
        (Measure::Cycle, cycle(&rust)),
        (Measure::Folder, folder(area, sources)),
        (Measure::Clauses, clauses(&rust)),
        (Measure::Product, lines(product.copied())),
        (Measure::Rust, lines(rust.iter().copied())),
    ])
}

fn phrases_of(texts: &[&Text], phrases: &Phrases) -> Count {
    let places: Vec<String> = texts.iter().flat_map(|it| phrases.findings(it)).collect();
    let value = places.len();
    Count { value, places }
}

fn cycle(rust: &[&Text]) -> Count {
    let product = rust.iter().filter(|text| text.is_product());
    let files: Vec<File<'_>> = product
        .filter_map(|text| {
            let path = text.in_package()?.strip_prefix("src/")?;
            let (shown, text) = (&text.path, &text.text);
            Some(File { path, shown, text })
        })
        .collect();
    let cycle = modules::largest_cycle(&files);
    Count {
        value: cycle.modules.len().max(1),
        places: cycle.edges,
    }
}

fn folder(area: &str, sources: &Sources) -> Count {
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    let folders: BTreeSet<&str> = sources.paths.iter().filter_map(|it| parent(it)).collect();
    for path in &sources.paths {
        let is_inside = |it: &str| {
            it.strip_prefix(area)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        if let Some(folder) = parent(path)
            && is_inside(path)
            && !folders.contains(path.as_str())
        {
            *files.entry(folder).or_default() += 1;
        }
    }
    let fullest = files.into_iter().max_by_key(|(_, count)| *count);
    fullest.map_or_else(Count::default, |(folder, value)| Count {
        value,
        places: vec![folder.to_owned()],
    })
}

fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(folder, _)| folder)
}

fn clauses(rust: &[&Text]) -> Count {
    let mut all = 0;
    let mut places = Vec::new();
    for text in rust {
        for comment in phrases::doc_comments(&text.text) {
            all += 1;
            if comment.begins_with_clause() {
                let (path, line, word) = (&text.path, comment.line, comment.first_word);
                places.push(format!(
                    "{path}:{line}: begins with \"{word}\": use a noun or a verb"
                ));
            }
        }
    }
    let value = (places.len() * 100).div_ceil(all.max(1));
    Count { value, places }
}

fn lines<'a>(texts: impl Iterator<Item = &'a Text>) -> Count {
    let lines: usize = texts.map(|text| text.text.lines().count()).sum();
    Count {
        value: lines.div_ceil(LINES_STEP) * LINES_STEP,
        places: Vec::new(),
    }
}

fn settings(sources: &Sources) -> Count {
    let fields = sources.texts.iter().find(|text| text.path == FIELDS);
    let is_route = |line: &&str| line.trim() == "[[route]]";
    let value = fields.map_or(0, |text| text.text.lines().filter(is_route).count());
    Count {
        value,
        places: Vec::new(),
    }
}
