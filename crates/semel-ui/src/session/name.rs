//! What people call themselves when they sign in: for the audit, unproved.

use crate::Role;
use std::net::IpAddr;

/// The longest name, in characters: a record's history has room for little more.
pub(super) const NAME_CHARS_MAX: usize = 32;

/// Letters that nobody sees.
const FILLERS: [char; 4] = ['\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}'];

/// As much of a name as can be told apart from the words around it: letters, digits, and what stands between them.
pub(super) fn plain(name: &str) -> String {
    let is_plain =
        |it: &char| (it.is_alphanumeric() && !FILLERS.contains(it)) || " .-_'@+".contains(*it);
    let kept: String = name
        .trim()
        .chars()
        .filter(is_plain)
        .take(NAME_CHARS_MAX)
        .collect();
    kept.trim().to_owned()
}

/// Who acts, for the audit: `Ada (act from 127.0.0.1)`.
pub(super) fn who(name: &str, role: Role, peer: Option<IpAddr>) -> String {
    let role = match peer {
        Some(peer) => format!("{} from {peer}", role.word()),
        None => role.word().into(),
    };
    if name.is_empty() {
        role
    } else {
        format!("{name} ({role})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pose_as_more() {
        for (given, kept) in [
            (" Ada Lovelace ", "Ada Lovelace"),
            ("José O'Neill-Ruiz", "José O'Neill-Ruiz"),
            ("root (act from 10.0.0.1): x", "root act from 10.0.0.1 x"),
            ("a\u{202e}b\u{200b}\u{3164}\r\nc<d>", "abcd"),
            ("\u{3164} ", ""),
        ] {
            assert_eq!(plain(given), kept);
        }
        assert_eq!(plain(&"x".repeat(99)).len(), NAME_CHARS_MAX);
    }
}
