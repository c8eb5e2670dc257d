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

/// A function of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Claim,
    Renew,
    Complete,
    Fail,
    Release,
    Look,
    StepBegin,
    StepRestart,
    StepComplete,
    Resolve,
    Redrive,
    ReleaseByOperator,
    Forget,
    LetterPut,
    LetterList,
    LetterGet,
    LetterMark,
    Touch,
    Ready,
}

struct Library {
    text: String,
    names: Vec<String>,
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

// === impl Library ===

impl Library {
    fn new() -> Self {
        let digest = Sha256::digest(TEXT);
        let version = hex::encode(digest.get(..DIGEST_BYTES).unwrap_or(&digest));
        let name = |function: Function| format!("semel_{version}_{}", function.word());
        Self {
            text: TEXT.replace("VERSION", &version),
            names: Function::ALL.into_iter().map(name).collect(),
        }
    }
}

// === impl Function ===

impl Function {
    const ALL: [Self; 19] = [
        Self::Claim,
        Self::Renew,
        Self::Complete,
        Self::Fail,
        Self::Release,
        Self::Look,
        Self::StepBegin,
        Self::StepRestart,
        Self::StepComplete,
        Self::Resolve,
        Self::Redrive,
        Self::ReleaseByOperator,
        Self::Forget,
        Self::LetterPut,
        Self::LetterList,
        Self::LetterGet,
        Self::LetterMark,
        Self::Touch,
        Self::Ready,
    ];

    /// Its name on the server.
    pub(crate) fn name(self) -> &'static str {
        LIBRARY
            .names
            .get(self as usize)
            .expect("ALL names every function, in order")
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::Release => "release",
            Self::Look => "look",
            Self::StepBegin => "step_begin",
            Self::StepRestart => "step_restart",
            Self::StepComplete => "step_complete",
            Self::Resolve => "resolve",
            Self::Redrive => "redrive",
            Self::ReleaseByOperator => "release_op",
            Self::Forget => "forget",
            Self::LetterPut => "letter_put",
            Self::LetterList => "letter_list",
            Self::LetterGet => "letter_get",
            Self::LetterMark => "letter_mark",
            Self::Touch => "touch",
            Self::Ready => "ready",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_registered_under_its_own_name() {
        for (place, function) in Function::ALL.into_iter().enumerate() {
            assert_eq!(function as usize, place, "{function:?}");
            let registered = format!("\nregister('{}',", function.word());
            assert_eq!(TEXT.matches(&registered).count(), 1, "{function:?}");
            assert!(function.name().ends_with(function.word()));
        }
        assert_eq!(TEXT.matches("\nregister(").count(), Function::ALL.len());
    }

    #[test]
    fn another_text_has_another_name() {
        assert!(!library().contains("VERSION"));
        let name = library().lines().next().unwrap();
        let version = name.strip_prefix("#!lua name=semel_").unwrap();
        assert_eq!(version.len(), 2 * DIGEST_BYTES);
        assert!(Function::Claim.name().contains(version));
    }
}
