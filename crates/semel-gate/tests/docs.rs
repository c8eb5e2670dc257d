//! What documents say of the source is so: docs/errors.md has every problem's `type`, and the files that
//! ARCHITECTURE.md names exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The words in quotes that follow one of these are the codes of problems.
const BEFORE_A_CODE: [&str; 4] = ["Invalid::new(", "refuse(", "required(", "StatusCode::"];

/// What speaks to operators and to handlers, who hear of what is wrong in other words.
const OTHER_WORDS: [&str; 5] = ["admin.rs", "admin", "bulk", "page", "steps.rs"];

#[test]
fn every_problem_is_documented_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/errors.md")).unwrap();
    let anchor = |line: &str| Some(line.split_once("<a id=\"")?.1.split_once('"')?.0.to_owned());
    let documented: BTreeSet<_> = page.lines().filter_map(anchor).collect();
    let used: BTreeSet<_> = files(&root.join("src"))
        .iter()
        .flat_map(|file| codes(file))
        .collect();
    assert!(used.len() > 40, "{used:?}");
    assert_eq!(used, documented);
}

/// A file's name stands in backticks, relative to the last `crates/…/src` that was named before.
#[test]
fn every_file_that_the_architecture_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let (mut source, mut named) = (root.clone(), 0);
    for name in page.split('`').skip(1).step_by(2) {
        if name.starts_with("crates/") && name.ends_with("/src") {
            source = root.join(name);
        }
        if name.ends_with(".rs") {
            named += 1;
            assert!(source.join(name).is_file(), "{name} in {source:?}");
        }
    }
    assert!(named > 60, "only {named} files are named");
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if OTHER_WORDS.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Codes are kebab-case words in quotes, soon after whatever makes a problem of them.
fn codes(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let product = text.split("#[cfg(test)]").next().unwrap();
    let mut found = Vec::new();
    for before in BEFORE_A_CODE {
        for rest in product.split(before).skip(1) {
            let soon: String = rest.chars().take(200).collect();
            let word = soon.split('"').nth(1).unwrap_or_default();
            // Only replies have codes of one word.
            if is_code(word) && (word.contains('-') || before == "StatusCode::") {
                found.push(word.to_owned());
            }
        }
    }
    // Parts of keys are named where their errors are told apart.
    found.extend(product.split("=> \"key-part-").skip(1).map(|rest| {
        let end = rest.split('"').next().unwrap();
        format!("key-part-{end}")
    }));
    found
}

fn is_code(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}
