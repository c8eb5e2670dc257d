//! Directories below `target/` with other people's packages in them, made once and again when something else is asked for.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Packages in a directory of their own.
pub(crate) struct Environment<'a> {
    /// The directory below `target/`.
    pub(crate) name: &'a str,
    /// The file in it that says what it was made for. Written last.
    pub(crate) stamp: &'a str,
    /// All that decides which packages there are.
    pub(crate) asked: &'a str,
}

// === impl Environment ===

impl Environment<'_> {
    /// Its directory, after `make` if it is not there, or not whole, or was made for something else. Only one process
    /// makes it; others wait.
    pub(crate) fn made(
        &self,
        whole: impl FnOnce(&Path) -> bool,
        make: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<PathBuf> {
        let name = self.name;
        let home = root().join("target").join(name);
        fs::create_dir_all(&home).with_context(|| format!("cannot make target/{name}"))?;
        let turn = home.with_extension("turn");
        let turn = File::create(turn).with_context(|| format!("cannot make target/{name}.turn"))?;
        // The kernel gives the turn back when this process ends, however it ends.
        turn.lock()
            .with_context(|| format!("cannot wait for target/{name}.turn"))?;
        let stamp = home.join(self.stamp);
        let made_for = fs::read_to_string(&stamp).unwrap_or_default();
        if made_for != self.asked || !whole(&home) {
            make(&home)?;
            fs::write(stamp, self.asked).with_context(|| format!("cannot finish target/{name}"))?;
        }
        Ok(home)
    }
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("testbed is a directory of the repository")
}
