//! Phrases that this field does not use, and the share of doc comments that begin with a clause.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use super::sources::Text;

const FILE: &str = "xtask/tidy/phrases.toml";

/// A doc comment begins with a noun or a verb, not with one of these.
const CLAUSE_WORDS: [&str; 11] = [
    "what", "who", "whoever", "whether", "where", "how", "when", "why", "which", "whom", "whose",
];

/// The phrases by their first word.
#[derive(Debug)]
pub(super) struct Phrases {
    by_first_word: HashMap<String, Vec<Phrase>>,
}

#[derive(Debug)]
struct Phrase {
    words: Vec<String>,
    suggestion: String,
}

#[derive(Debug, Deserialize)]
struct Table {
    phrase: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    find: Vec<String>,
    write: String,
}

/// A doc comment: the lines of `///` or `//!` that stand together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DocComment<'a> {
    pub(super) line: usize,
    pub(super) first_word: &'a str,
}

// === impl Phrases ===

impl Phrases {
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
        let table: Table = toml::from_str(&text).with_context(|| format!("cannot read {FILE}"))?;
        let mut by_first_word: HashMap<_, Vec<_>> = HashMap::new();
        for row in table.phrase {
            for find in row.find {
                let words: Vec<String> = words(&find).map(str::to_lowercase).collect();
                let first = words.first().context("an empty phrase")?.clone();
                let suggestion = row.write.clone();
                by_first_word
                    .entry(first)
                    .or_default()
                    .push(Phrase { words, suggestion });
            }
        }
        Ok(Self { by_first_word })
    }

    /// Returns one finding per line that carries a phrase. The table itself carries all of them.
    pub(super) fn findings(&self, text: &Text) -> Vec<String> {
        if text.path == FILE {
            return Vec::new();
        }
        let numbered = text.text.lines().zip(1..);
        let finding = |(line, number)| {
            let phrase = self.find(line)?;
            let (found, write) = (phrase.words.join(" "), &phrase.suggestion);
            Some(format!("{}:{number}: \"{found}\": {write}", text.path))
        };
        numbered.filter_map(finding).collect()
    }

    fn find(&self, line: &str) -> Option<&Phrase> {
        let line = line.to_lowercase();
        let words: Vec<&str> = words(&line).collect();
        let mut starts = (0..words.len()).filter_map(|at| words.get(at..));
        starts.find_map(|rest| {
            let here = self.by_first_word.get(*rest.first()?)?;
            here.iter().find(|it| {
                rest.len() >= it.words.len() && it.words.iter().zip(rest).all(|(a, b)| a == b)
            })
        })
    }
}

/// Words within a line: an underscore parts them, so that names count like prose.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| !c.is_alphanumeric() && c != '\'';
    line.split(is_between).filter(|word| !word.is_empty())
}

// === impl DocComment ===

impl DocComment<'_> {
    pub(super) fn begins_with_clause(&self) -> bool {
        let lower = self.first_word.to_lowercase();
        CLAUSE_WORDS.contains(&lower.as_str())
    }
}

pub(super) fn doc_comments(text: &str) -> Vec<DocComment<'_>> {
    let mut comments = Vec::new();
    let mut is_inside = false;
    for (line, number) in text.lines().zip(1..) {
        let doc = doc_line(line);
        if let Some(doc) = doc
            && !is_inside
        {
            comments.push(DocComment {
                line: number,
                first_word: words(doc).next().unwrap_or(""),
            });
        }
        is_inside = doc.is_some();
    }
    comments
}

fn doc_line(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let outer = line
        .strip_prefix("///")
        .filter(|rest| !rest.starts_with('/'));
    outer.or_else(|| line.strip_prefix("//!"))
}
