//! The Lua functions: their text, and the names they have on the server.
//!
//! The names carry a digest of the text. So two versions of Semel can share a server, each calling
//! its own functions, and a library that is there under its name is the right one.

use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The library as it is written, with `VERSION` where the digest goes.
const TEXT: &str = include_str!("lua/semel.lua");

/// How many bytes of the digest name a version.
const DIGEST_BYTES: usize = 6;

static LIBRARY: LazyLock<Library> = LazyLock::new(Library::new);

/// The functions of the library: one for each operation, those for letters and for the two sides of the index, and what `WAIT` waits for.
const FUNCTIONS: [&str; 25] = [
    "claim",
    "renew",
    "complete",
    "fail",
    "release",
    "look",
    "step_begin",
    "step_restart",
    "step_complete",
    "resolve",
    "redrive",
    "retain",
    "release_by_operator",
    "forget",
    "steps",
    "index",
    "find",
    "index_ids",
    "unindex",
    "ready",
    "letter_put",
    "letter_list",
    "letter_get",
    "letter_mark",
    "touch",
];

struct Library {
    text: String,
    /// The names that [`FUNCTIONS`] have on the server.
    names: [String; FUNCTIONS.len()],
}

/// The Lua library that this version of the store calls, ready for `FUNCTION LOAD`.
///
/// The store loads it by itself when the server does not have it. Where its user may not, somebody
/// who may loads it once per version, on every master:
/// `redis-cli -x FUNCTION LOAD REPLACE < semel.lua`. Older versions stay until `FUNCTION DELETE`.
///
/// ```
/// assert!(semel_redis::library().starts_with("#!lua name=semel_"));
/// ```
#[must_use]
pub fn library() -> &'static str {
    &LIBRARY.text
}

/// The name of a function on the server.
pub(crate) fn function(word: &str) -> &'static str {
    let names = FUNCTIONS.iter().zip(&LIBRARY.names);
    let mut named = names.filter(|(function, _)| **function == word);
    let (_, name) = named.next().expect("every operation has a function");
    name
}

// === impl Library ===

impl Library {
    fn new() -> Self {
        let digest = Sha256::digest(TEXT);
        let version = hex::encode(digest.get(..DIGEST_BYTES).unwrap_or(&digest));
        Self {
            text: TEXT.replace("VERSION", &version),
            names: FUNCTIONS.map(|function| format!("semel_{version}_{function}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_registered_under_its_own_name() {
        for word in FUNCTIONS {
            let registered = format!("\nregister('{word}',");
            assert_eq!(TEXT.matches(&registered).count(), 1, "{word}");
            assert!(function(word).ends_with(word));
        }
        assert_eq!(TEXT.matches("\nregister(").count(), FUNCTIONS.len());
    }

    #[test]
    fn another_text_has_another_name() {
        assert!(!library().contains("VERSION"));
        let name = library().lines().next().unwrap();
        let version = name.strip_prefix("#!lua name=semel_").unwrap();
        assert_eq!(version.len(), 2 * DIGEST_BYTES);
        assert!(function("claim").contains(version));
    }
}
