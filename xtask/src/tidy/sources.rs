//! The text files of the repository, each with the area whose limits it counts towards.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, bail};

const TEXT_EXTENSIONS: [&str; 7] = ["rs", "toml", "py", "js", "md", "sql", "html"];

/// All files, the one changed last at the end.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) texts: Vec<Text>,
    /// Every path that git lists, and every folder above one; relative to the root.
    pub(super) paths: BTreeSet<String>,
}

#[derive(Debug)]
pub(super) struct Text {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    /// The folder of the Cargo package, or the first folder of the path; `.` for files of the root.
    pub(super) area: String,
    pub(super) text: String,
}

// === impl Sources ===

impl Sources {
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let listed = listed(root)?;
        let packages: Vec<&str> = listed
            .iter()
            .filter_map(|path| path.strip_suffix("/Cargo.toml"))
            .collect();
        let mut texts = Vec::new();
        for path in &listed {
            let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
            let file = root.join(path);
            // A file that is deleted and still listed has no length.
            if !TEXT_EXTENSIONS.contains(&extension) || !file.is_file() {
                continue;
            }
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))?;
            let changed = file.metadata()?.modified()?;
            let area = area(path, &packages);
            let path = path.clone();
            texts.push((changed, Text { path, area, text }));
        }
        texts.sort_by(|a: &(SystemTime, Text), b| (a.0, &a.1.path).cmp(&(b.0, &b.1.path)));
        Ok(Self {
            texts: texts.into_iter().map(|(_, text)| text).collect(),
            paths: with_folders(&listed),
        })
    }
}

// === impl Text ===

impl Text {
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        let end = self.path.len() - extension.len();
        self.path.ends_with(extension) && self.path[..end].ends_with('.')
    }

    /// A path within `src/` of its package that is not a test.
    pub(super) fn is_product(&self) -> bool {
        let Some(within) = self.in_package() else {
            return false;
        };
        within.starts_with("src/") && !is_test(within)
    }

    pub(super) fn in_package(&self) -> Option<&str> {
        self.path.strip_prefix(&self.area)?.strip_prefix('/')
    }
}

fn is_test(path: &str) -> bool {
    path.split('/')
        .any(|part| part == "tests" || part == "tests.rs" || part.starts_with("test_"))
}

fn area(path: &str, packages: &[&str]) -> String {
    let is_below = |package: &&&str| {
        path.strip_prefix(**package)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let package = packages.iter().filter(is_below).max_by_key(|it| it.len());
    let folder = || path.split_once('/').map_or(".", |(folder, _)| folder);
    package.copied().unwrap_or_else(folder).into()
}

fn listed(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let output = git.current_dir(root).output().context("cannot run git")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    }
    let names = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    Ok(names
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(String::from)
        .collect())
}

fn with_folders(listed: &[String]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for path in listed {
        let ends = path.match_indices('/').map(|(at, _)| at);
        paths.extend(ends.map(|end| path[..end].to_owned()));
        paths.insert(path.clone());
    }
    paths
}
