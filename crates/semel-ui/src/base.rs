//! Where the page's root is, seen from one of its screens.

use std::fmt;

/// The way from a screen back to the root of the page: some number of `../`. Whatever stands before the root, a
/// proxy's prefix for instance, is not known and not needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Base(usize);

// === impl Base ===

impl Base {
    /// Of a screen, by its path below the root, without the slash before it: `letters/7` is one level down.
    #[must_use]
    pub fn of(path: &str) -> Self {
        Self(path.matches('/').count())
    }

    /// The relative address of what is at `path` below the root. An empty path is the root itself.
    #[must_use]
    pub fn to(self, path: &str) -> String {
        match (self.0, path) {
            (0, "") => "./".into(),
            (up, path) => "../".repeat(up) + path,
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_screen_finds_the_root() {
        for (screen, root, letters) in [
            ("", "./", "letters"),
            ("letters", "./", "letters"),
            ("letters/7", "../", "../letters"),
            ("records/k/resolve", "../../", "../../letters"),
        ] {
            let base = Base::of(screen);
            assert_eq!(
                (base.to(""), base.to("letters")),
                (root.into(), letters.into())
            );
        }
    }
}
