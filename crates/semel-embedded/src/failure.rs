//! What goes wrong on a disk, in words: which file, what to do, whether a retry is safe.

use crate::recovery;
use semel::Error;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// A file or row that cannot be trusted.
pub(crate) fn corrupt(what: impl Display, how: impl Display) -> Error {
    Error::corrupt(format!(
        "{what} {how}; nothing is replayed or run from it, and a retry fails again: put the \
         store's directory back from a copy, or move it away and start an empty one, after which \
         settled keys run again"
    ))
}

/// What to do about a fault of the machine. Nothing has to be restarted.
const HOW_TO_GO_ON: &str = "fix it (room on the disk, permissions), after which a store in use opens \
                            again by itself; repeating the call is safe";

/// An operation on a file that failed.
pub(crate) fn unavailable(doing: impl Display, path: &Path, error: io::Error) -> Error {
    Error::unavailable(cannot(doing, path, &error)).caused_by(error)
}

fn cannot(doing: impl Display, path: &Path, why: impl Display) -> String {
    let path = path.display();
    format!("cannot {doing} {path}: {why}; {HOW_TO_GO_ON}")
}

/// Says what the engine's error means for whoever asked. `data` is the engine's directory.
pub(crate) fn from_engine(doing: &str, data: &Path, error: fjall::Error) -> Error {
    let meaning = match passing(doing, data, &error) {
        Some(passing) => passing,
        None => match recovery::find_damage(data) {
            Some(damage) => damage,
            None if is_failed_earlier(&error) => {
                Error::denied(cannot(doing, data, "an earlier write failed"))
            }
            None => corrupt(data.display(), format!("cannot be read ({error})")),
        },
    };
    meaning.caused_by(error)
}

/// The engine's error, if it is one of the machine and not of the files.
fn passing(doing: &str, data: &Path, error: &fjall::Error) -> Option<Error> {
    let io = engine_io(error).filter(|io| !is_damage(io))?;
    let why = cannot(doing, data, io).into();
    Some(if is_for_somebody_to_fix(io) {
        Error::Denied(why)
    } else {
        Error::Unavailable(why)
    })
}

/// Whether looking for damage would be of no use.
pub(crate) fn is_passing(error: &fjall::Error) -> bool {
    engine_io(error).is_some_and(|io| !is_damage(io))
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
    use std::error::Error as _;

    #[test]
    fn what_somebody_must_fix_is_denied_and_what_may_pass_is_unavailable() {
        let data = Path::new("/store");
        let said =
            |kind: io::ErrorKind| from_engine("write to", data, fjall::Error::Io(kind.into()));
        for kind in [
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::ReadOnlyFilesystem,
            io::ErrorKind::PermissionDenied,
        ] {
            let error = said(kind);
            assert!(error.source().is_some(), "{error:?}");
            assert!(
                matches!(&error, Error::Denied(why) if why.contains("/store")),
                "{error}"
            );
            let said = error.to_string();
            assert!(said.contains("opens again by itself"), "{said}");
            assert!(!said.contains("restart"), "{said}");
        }
        let error = said(io::ErrorKind::TimedOut);
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }
}
