//! Links between Markdown files that lead nowhere.

use std::collections::{BTreeMap, BTreeSet};

use super::sources::{Sources, Text};

pub(super) fn dead(sources: &Sources) -> Vec<String> {
    // A page below `src/` is a part of a generated page or of rustdoc: its links are relative to that.
    let is_page = |text: &&Text| text.has_extension("md") && !text.path.contains("/src/");
    let pages: Vec<&Text> = sources.texts.iter().filter(is_page).collect();
    let anchors: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|page| (page.path.as_str(), anchors(&page.text)))
        .collect();
    let mut findings = Vec::new();
    for page in &pages {
        for (target, line) in links(&page.text) {
            if let Some(why) = broken(page, target, sources, &anchors) {
                findings.push(format!("{}:{line}: dead link {target}: {why}", page.path));
            }
        }
    }
    findings
}

fn broken(
    page: &Text,
    target: &str,
    sources: &Sources,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") || target.starts_with('<') {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        page.path.clone()
    } else {
        joined(&page.path, file)
    };
    if !path.is_empty() && !sources.paths.contains(&path) {
        return Some(format!("there is no {path}"));
    }
    let known = anchors.get(path.as_str())?;
    let is_known = anchor.is_empty() || known.contains(anchor);
    (!is_known).then(|| format!("{path} has no heading #{anchor}"))
}

fn joined(page: &str, file: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Returns the targets of `[text](target)` and `[name]: target`, with their lines, outside code.
fn links(text: &str) -> Vec<(&str, usize)> {
    let mut links = Vec::new();
    for (line, number) in prose(text) {
        for (at, _) in line.match_indices("](") {
            if line[..at].matches('`').count() % 2 == 1 {
                continue;
            }
            let rest = &line[at + 2..];
            let end = rest.find([')', ' ']).unwrap_or(rest.len());
            links.push((&rest[..end], number));
        }
        let reference = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "));
        links.extend(reference.map(|(_, target)| (target.trim(), number)));
    }
    links
}

/// The lines outside fences, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut is_code = false;
    text.lines().zip(1..).filter(move |(line, _)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors of headings, as GitHub makes them; a repeated heading gets a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (line, _) in prose(text) {
        if let Some(id) = line.split_once("id=\"").and_then(|it| it.1.split_once('"')) {
            anchors.insert(id.0.to_owned());
        }
        if !line.starts_with('#') {
            continue;
        }
        let slug = slug(line.trim_start_matches('#').trim());
        let before = seen.entry(slug.clone()).or_default();
        let anchor = match *before {
            0 => slug,
            count => format!("{slug}-{count}"),
        };
        *before += 1;
        anchors.insert(anchor);
    }
    anchors
}

fn slug(heading: &str) -> String {
    let without_target = |text: &str| match text.split_once("](") {
        Some((before, after)) => {
            let after = after.split_once(')').map_or("", |(_, rest)| rest);
            format!("{}{after}", before.replacen('[', "", 1))
        }
        None => text.to_owned(),
    };
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let text: String = without_target(heading).to_lowercase();
    text.chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}
