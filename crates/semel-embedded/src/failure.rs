//! What goes wrong on a disk, in words: which file, what to do, whether a retry is safe.

use crate::recovery;
use semel::Error;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// A file or row that cannot be trusted.
pub(crate) fn corrupt(what: impl Display, how: impl Display) -> Error {
    Error::Corrupt(format!(
        "{what} {how}; nothing is replayed or run from it, and a retry fails again: put the \
         store's directory back from a copy, or move it away and start an empty one, after which \
         settled keys run again"
    ))
}

/// What to do about a fault of the machine. Nothing has to be restarted.
const HOW_TO_GO_ON: &str = "fix it (room on the disk, permissions), after which a store in use opens \
                            again by itself; repeating the call is safe";

/// An operation on a file that failed.
pub(crate) fn unavailable(doing: impl Display, path: &Path, error: impl Display) -> Error {
    Error::Unavailable(format!(
        "cannot {doing} {}: {error}; {HOW_TO_GO_ON}",
        path.display()
    ))
}

/// The same, when only somebody who fixes the machine can help.
fn denied(doing: impl Display, path: &Path, error: impl Display) -> Error {
    Error::Denied(format!(
        "cannot {doing} {}: {error}; {HOW_TO_GO_ON}",
        path.display()
    ))
}

/// Says what the engine's error means for whoever asked. `data` is the engine's directory.
pub(crate) fn from_engine(doing: &str, data: &Path, error: &fjall::Error) -> Error {
    if let Some(passing) = passing(doing, data, error) {
        return passing;
    }
    match recovery::find_damage(data) {
        Some(damage) => damage,
        None if is_failed_earlier(error) => denied(doing, data, "an earlier write failed"),
        None => corrupt(data.display(), format!("cannot be read ({error})")),
    }
}

/// The engine's error, if it is one of the machine and not of the files.
pub(crate) fn passing(doing: &str, data: &Path, error: &fjall::Error) -> Option<Error> {
    let io = engine_io(error).filter(|io| !is_damage(io))?;
    Some(if is_for_somebody_to_fix(io) {
        denied(doing, data, io)
    } else {
        unavailable(doing, data, io)
    })
}

const fn engine_io(error: &fjall::Error) -> Option<&io::Error> {
    if let fjall::Error::Io(io) | fjall::Error::Storage(fjall::LsmError::Io(io)) = error {
        return Some(io);
    }
    None
}

const fn is_failed_earlier(error: &fjall::Error) -> bool {
    matches!(error, fjall::Error::Poisoned)
}

/// No room, no right to write: it does not pass by itself.
fn is_for_somebody_to_fix(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::FileTooLarge
    )
}

/// A file that ends early or is gone is damage, not a passing fault.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound | io::ErrorKind::InvalidData
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_must_fix_is_denied_and_what_may_pass_is_unavailable() {
        let data = Path::new("/store");
        let said = |error: &fjall::Error| from_engine("write to", data, error);
        for kind in [
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::ReadOnlyFilesystem,
            io::ErrorKind::PermissionDenied,
        ] {
            let error = said(&fjall::Error::Io(kind.into()));
            assert!(
                matches!(&error, Error::Denied(why) if why.contains("/store")),
                "{error}"
            );
            let said = error.to_string();
            assert!(said.contains("opens again by itself"), "{said}");
            assert!(!said.contains("restart"), "{said}");
        }
        let error = said(&fjall::Error::Io(io::ErrorKind::TimedOut.into()));
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }
}
