//! Each crate builds alone, with each of its features. In a build of the whole workspace, one crate's features serve
//! another that forgot to ask for them.

use crate::run;
use crate::workspace::{self, Package};

pub(crate) fn check() -> anyhow::Result<()> {
    for package in workspace::packages()?.iter().filter(is_published) {
        let name = &package.name;
        let alone = format!("check --quiet --package {name} --no-default-features");
        run::run(&mut run::cargo(&alone))?;
        for feature in package.features.keys() {
            run::run(&mut run::cargo(&format!("{alone} --features {feature}")))?;
        }
    }
    Ok(())
}

/// The crates that users build; tests and tools are only built together.
fn is_published(package: &&Package) -> bool {
    package
        .manifest_path
        .starts_with(run::root().join("crates"))
}
