//! Each crate builds alone, with each of its features. In a build of the whole workspace, one crate's features serve
//! another that forgot to ask for them.

use crate::run;
use crate::workspace::{self, Package};

pub(crate) fn check() -> anyhow::Result<()> {
    for package in workspace::packages()?.iter().filter(is_published) {
        run::run(&mut run::cargo(&alone(package)))?;
        for feature in package.features.keys() {
            run::run(&mut run::cargo(&format!(
                "{} --features {feature}",
                alone(package)
            )))?;
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

fn alone(package: &Package) -> String {
    format!(
        "check --quiet --package {} --no-default-features",
        package.name
    )
}
