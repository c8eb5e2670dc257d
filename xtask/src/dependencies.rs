//! What we build from: licences, bans, sources and duplicate versions, judged by `deny.toml` with cargo's own metadata.
//! `cargo deny` reads the same file; only it knows advisories, and it runs where it is installed.

use crate::run;
use crate::workspace::{self, Package};
use anyhow::{Context, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

/// The version of `cargo machete`, from crates.io.
const MACHETE: &str = "0.9.2";

/// What we read of `deny.toml`; the rest is for `cargo deny`.
#[derive(Debug, Deserialize)]
struct Rules {
    licenses: Licences,
    bans: Bans,
    sources: Sources,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Entry>,
    skip: Vec<Entry>,
}

/// A crate (`name` or `name@version`), and why it is listed.
#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

/// Gives what could not be checked.
pub(crate) fn check() -> anyhow::Result<Option<&'static str>> {
    let text =
        fs::read_to_string(run::root().join("deny.toml")).context("cannot read deny.toml")?;
    let rules: Rules = toml::from_str(&text).context("cannot read deny.toml")?;
    let complaints = rules.complaints(&workspace::with_dependencies()?);
    if !complaints.is_empty() {
        bail!("deny.toml does not permit:\n{}", complaints.join("\n"));
    }
    if !has_cargo_deny() {
        return Ok(Some("advisories: cargo-deny is not installed"));
    }
    run::run(&mut run::cargo("deny --all-features check")).map(|()| None)
}

/// Refuses a dependency that its package does not use.
pub(crate) fn unused() -> anyhow::Result<()> {
    let installed = run::root().join("target/tools");
    let machete = format!("install cargo-machete --version {MACHETE} --locked --quiet --root");
    let mut install = run::cargo(&machete);
    // One run takes two seconds, and more optimisation takes longer to compile than it saves.
    install
        .arg(&installed)
        .args(["--config", "profile.release.opt-level=1"]);
    run::run(&mut install)?;
    run::run(Command::new(installed.join("bin/cargo-machete")).current_dir(run::root()))
}

fn has_cargo_deny() -> bool {
    let mut version = Command::new("cargo-deny");
    version.arg("--version").stdout(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

// === impl Licences ===

impl Licences {
    /// Whether what is allowed is enough for an expression like `(MIT OR Apache-2.0) AND Unicode-3.0`: one alternative of
    /// each part between ANDs. That is never too kind, and too strict where AND and OR mix without parentheses.
    fn permit(&self, expression: &str) -> bool {
        let plain = |name: &str| name.trim_matches(['(', ')', ' ']).to_owned();
        let expression = expression.replace('/', " OR ");
        let mut parts = expression.split(" AND ");
        parts.all(|part| part.split(" OR ").any(|it| self.allow.contains(&plain(it))))
    }
}

// === impl Rules ===

impl Rules {
    fn complaints(&self, packages: &[Package]) -> Vec<String> {
        let foreign = packages.iter().filter(|package| package.source.is_some());
        let mut complaints: Vec<String> = foreign.flat_map(|it| self.about(it)).collect();
        complaints.extend(self.about_versions(packages));
        complaints
    }

    fn about<'a>(&'a self, package: &'a Package) -> impl Iterator<Item = String> + 'a {
        let Package { name, version, .. } = package;
        let licence = package.license.as_deref().unwrap_or_default();
        let unlicensed = !self.licenses.permit(licence);
        let source = package.source.as_deref().unwrap_or_default();
        let mut registries = self.sources.allow_registry.iter();
        let unknown = !registries.any(|known| source.strip_prefix("registry+") == Some(known));
        let banned = self.bans.deny.iter().filter(|entry| entry.package == *name);
        let banned = banned.map(move |entry| format!("{name}: {}", entry.reason));
        banned
            .chain(unlicensed.then(|| format!("{name} {version}: licence {licence:?}")))
            .chain(unknown.then(|| format!("{name} {version}: source {source}")))
    }

    /// Of each crate one version, besides those that are listed; and nothing listed that is gone.
    fn about_versions(&self, packages: &[Package]) -> Vec<String> {
        let mut versions = BTreeMap::<&str, Vec<&str>>::new();
        let mut skipped: Vec<&str> = self
            .bans
            .skip
            .iter()
            .map(|it| it.package.as_str())
            .collect();
        for package in packages {
            let spec = format!("{}@{}", package.name, package.version);
            match skipped.iter().position(|it| *it == spec) {
                Some(listed) => drop(skipped.remove(listed)),
                None => versions
                    .entry(&package.name)
                    .or_default()
                    .push(&package.version),
            }
        }
        let several = versions.iter().filter(|(_, versions)| versions.len() > 1);
        several
            .map(|(name, versions)| format!("{name} in {}", versions.join(" and ")))
            .chain(
                skipped
                    .iter()
                    .map(|it| format!("skip {it}: it is not used")),
            )
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        licenses = { allow = ["MIT"] }
        bans = { deny = [{ crate = "bad", reason = "use good" }], skip = [{ crate = "old@1.0.0", reason = "x" }] }
        sources = { allow-registry = ["https://here"] }
    "#;

    fn package(name: &str, version: &str, license: &str, source: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some(license.to_owned()),
            source: Some(source.to_owned()),
            features: BTreeMap::new(),
            manifest_path: "Cargo.toml".into(),
        }
    }

    #[test]
    fn each_broken_rule_is_named() {
        let rules: Rules = toml::from_str(RULES).unwrap();
        let here = "registry+https://here";
        let complaints = rules.complaints(&[
            package("good", "1.0.0", "MIT", here),
            package("good", "2.0.0", "MIT", here),
            package("bad", "1.0.0", "MIT", here),
            package("copyleft", "1.0.0", "GPL-3.0", here),
            package("far", "1.0.0", "MIT", "git+https://there"),
        ]);
        assert_eq!(
            complaints,
            [
                "bad: use good",
                "copyleft 1.0.0: licence \"GPL-3.0\"",
                "far 1.0.0: source git+https://there",
                "good in 1.0.0 and 2.0.0",
                "skip old@1.0.0: it is not used",
            ]
        );
    }

    #[test]
    fn licence_expressions_are_never_read_too_kindly() {
        let licences = Licences {
            allow: ["MIT", "Unicode-3.0"].map(str::to_owned).into(),
        };
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT/Apache-2.0", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR Apache-2.0) AND GPL-3.0", false),
            ("(MIT AND GPL-3.0) OR (GPL-2.0 AND MIT)", false),
            ("MIT WITH LLVM-exception", false),
            ("", false),
        ] {
            assert_eq!(licences.permit(expression), expected, "{expression}");
        }
    }

    #[test]
    fn skipped_version_may_stand_beside_another() {
        let rules: Rules = toml::from_str(RULES).unwrap();
        let versions = ["1.0.0", "2.0.0"];
        let packages = versions.map(|it| package("old", it, "MIT", "registry+https://here"));
        assert_eq!(rules.complaints(&packages), Vec::<String>::new());
    }
}
