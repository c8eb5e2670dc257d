//! Reading a path: its one canonical form, which is matched and forwarded, and the loosest form that
//! any handler could read in it, by which it is kept away from routes that it only looks like.

use super::{PathAllowance, PathPattern};
use std::str::Bytes;

/// A path, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParsedPath {
    /// Encodings of unreserved characters are decoded, all others have upper-case digits, and what may
    /// not stand in a path is encoded.
    pub(crate) canonical: String,
    /// See [`loosest`].
    pub(crate) loosest: String,
    /// What only some routes allow.
    pub(crate) spellings: Vec<PathAllowance>,
}

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AmbiguousPath {
    /// A percent sign without two hex digits.
    BrokenEncoding,
    /// An encoded percent sign that begins another encoding.
    EncodedTwice,
    /// Encoded bytes that are not UTF-8, overlong forms among them.
    NotUtf8,
    /// A control character, NUL among them.
    Control,
    Backslash,
    /// `.` or `..`, encoded or with a parameter, too.
    DotSegment,
    /// Some read `//host/path` as another host.
    DoubleSlashFirst,
    /// Only some routes allow it.
    NotAllowed(PathAllowance),
    /// It is a route's path but for letter case, a slash at the end or an encoding.
    LooksLikeRoute,
    /// Its canonical form is longer than a path can be.
    TooLong,
}

/// All paths that some handler could take for those of a pattern.
#[derive(Clone, Debug)]
pub(crate) struct LoosePattern {
    /// Each name in its loosest form; `None` is any.
    names: Vec<Option<String>>,
    below: bool,
}

/// One byte of a path, and whether it was encoded.
#[derive(Clone, Copy)]
struct Octet {
    byte: u8,
    encoded: bool,
}

// === impl ParsedPath ===

impl ParsedPath {
    /// Reads the path of a request, without its query.
    pub(crate) fn of(path: &str) -> Result<Self, AmbiguousPath> {
        let octets = decoded(path)?;
        let bytes = octets.iter().map(|octet| octet.byte).collect();
        let text = String::from_utf8(bytes).map_err(|_| AmbiguousPath::NotUtf8)?;
        if text.chars().any(char::is_control) {
            return Err(AmbiguousPath::Control);
        }
        // Encoded ones have a word of their own.
        if path.contains('\\') {
            return Err(AmbiguousPath::Backslash);
        }
        if encodes_again(&octets) {
            return Err(AmbiguousPath::EncodedTwice);
        }
        if path.starts_with("//") {
            return Err(AmbiguousPath::DoubleSlashFirst);
        }
        let text: String = text.chars().map(narrow).collect();
        if segments(&text).any(is_dots) {
            return Err(AmbiguousPath::DotSegment);
        }
        Ok(Self {
            canonical: canonical(&octets),
            loosest: loosest(&text),
            spellings: spellings(&octets),
        })
    }
}

fn decoded(path: &str) -> Result<Vec<Octet>, AmbiguousPath> {
    let mut octets = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let encoded = byte == b'%';
        let byte = if encoded {
            escape(&mut bytes).ok_or(AmbiguousPath::BrokenEncoding)?
        } else {
            byte
        };
        octets.push(Octet { byte, encoded });
    }
    Ok(octets)
}

/// The byte that two hex digits stand for.
fn escape(bytes: &mut Bytes<'_>) -> Option<u8> {
    let mut digit = || {
        let digit = char::from(bytes.next()?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    let (high, low) = (digit()?, digit()?);
    Some(high << 4 | low)
}

/// `%2563` is `%63` to whoever decodes once, and `c` to whoever decodes twice.
fn encodes_again(octets: &[Octet]) -> bool {
    octets.windows(3).any(|three| match three {
        [percent, high, low] => {
            percent.byte == b'%' && high.byte.is_ascii_hexdigit() && low.byte.is_ascii_hexdigit()
        }
        _ => false,
    })
}

/// The one form of a path.
fn canonical(octets: &[Octet]) -> String {
    let mut canonical = String::with_capacity(octets.len());
    for Octet { byte, encoded } in octets {
        let plain = is_unreserved(*byte) || (!encoded && is_path_byte(*byte));
        if plain {
            canonical.push(char::from(*byte));
        } else {
            canonical.push_str(&format!("%{byte:02X}"));
        }
    }
    canonical
}

/// Unreserved characters mean the same encoded and plain (RFC 3986, 2.3).
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// What else may stand in a path as it is.
fn is_path_byte(byte: u8) -> bool {
    b"/!$&'()*+,;=:@".contains(&byte)
}

fn spellings(octets: &[Octet]) -> Vec<PathAllowance> {
    let has = |bytes: &[u8], encoded_only: bool| {
        let meant = |octet: &Octet| bytes.contains(&octet.byte) && (octet.encoded || !encoded_only);
        octets.iter().any(meant)
    };
    let plain_slash = |octet: &Octet| octet.byte == b'/' && !octet.encoded;
    let found = |spelling: &PathAllowance| match spelling {
        PathAllowance::Semicolon => has(b";", false),
        PathAllowance::EncodedSlash => has(b"/\\", true),
        PathAllowance::DoubleSlash => octets.windows(2).any(|two| two.iter().all(plain_slash)),
        PathAllowance::EncodedDelimiter => has(b"?#", true),
    };
    PathAllowance::ALL.into_iter().filter(found).collect()
}

/// The loosest form of a decoded path: what is left when every slash is one slash, parameters,
/// dots and spaces at the end of a name do not count, nothing follows a `?` or `#`, and all letters have
/// one case. Two paths that no handler takes for one differ here, too.
fn loosest(text: &str) -> String {
    let path = text.split(['?', '#']).next().unwrap_or(text);
    let mut loosest = String::with_capacity(path.len());
    for name in segments(path) {
        let name = name
            .trim_start()
            .trim_end_matches(|c: char| c == '.' || c.is_whitespace());
        if !name.is_empty() {
            loosest.push('/');
            loosest.extend(name.chars().flat_map(fold));
        }
    }
    loosest
}

/// The loosest form of a canonical path.
pub(super) fn loosest_of(canonical: &str) -> String {
    ParsedPath::of(canonical).map_or_else(|_| canonical.into(), |reading| reading.loosest)
}

/// The names between slashes of either kind, without their parameters.
fn segments(text: &str) -> impl Iterator<Item = &str> {
    text.split(['/', '\\'])
        .map(|segment| segment.split(';').next().unwrap_or(segment))
}

/// Some handlers trim names before they look for dots.
fn is_dots(name: &str) -> bool {
    let name = name.trim();
    !name.is_empty() && name.chars().all(|c| c == '.')
}

/// Some handlers read full-width forms as the ASCII that they look like.
fn narrow(c: char) -> char {
    const DISTANCE: u32 = 0xFEE0;
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - DISTANCE).unwrap_or(c),
        _ => c,
    }
}

/// One case for all letters: `ſ` is an `s` and the Kelvin sign a `k` to handlers that ignore case.
fn fold(c: char) -> impl Iterator<Item = char> {
    c.to_uppercase().flat_map(char::to_lowercase)
}

// === impl LoosePattern ===

impl LoosePattern {
    pub(crate) fn of(pattern: &PathPattern) -> Self {
        let template = pattern.template();
        let loose = |name: Option<&str>| match name {
            Some(name) => {
                let loosest = loosest_of(&format!("/{name}"));
                let name = loosest.strip_prefix('/')?;
                Some(Some(name.to_owned()))
            }
            None => Some(None),
        };
        Self {
            names: template.names().filter_map(loose).collect(),
            below: template.is_below(),
        }
    }

    /// Whether a path of this loosest form could be taken for one of the pattern's.
    pub(crate) fn takes(&self, loosest: &str) -> bool {
        let mut found = loosest.split('/').skip(1);
        let mut names = self.names.iter();
        let begins = names.all(|name| {
            let found = found.next();
            found.is_some_and(|found| name.as_ref().is_none_or(|name| name == found))
        });
        begins && (self.below || found.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical_of(path: &str) -> Result<String, AmbiguousPath> {
        ParsedPath::of(path).map(|reading| reading.canonical)
    }

    #[test]
    fn there_is_one_form_for_equal_paths() {
        for (path, canonical) in [
            ("/charge", "/charge"),
            ("/%63h%61rge", "/charge"),
            ("/a%2db%2E%5f%7Ec", "/a-b._~c"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/a%20b", "/a%20b"),
            ("/a{b}|\"", "/a%7Bb%7D%7C%22"),
            // Encoded and plain, these may mean two things: both stay as they are.
            ("/a%40b", "/a%40b"),
            ("/a@b!$&'()*+,=:", "/a@b!$&'()*+,=:"),
            ("/", "/"),
            ("/a.b/..c/d...", "/a.b/..c/d..."),
            ("/100%25", "/100%25"),
        ] {
            let read = ParsedPath::of(path).unwrap();
            assert_eq!(read.canonical, canonical, "{path}");
            assert_eq!(read.spellings, [], "{path}");
            let again = ParsedPath::of(&read.canonical).unwrap();
            assert_eq!(again, read, "{path} is not canonical yet");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_canonical_path_is_read_as_itself(path in "/(%[0-9a-fA-F]{2}|[ -~]|\\PC){0,12}") {
            // A path ends before them.
            let path = path.replace(['?', '#'], "");
            if let Ok(read) = ParsedPath::of(&path) {
                proptest::prop_assert_eq!(ParsedPath::of(&read.canonical), Ok(read));
            }
        }
    }

    #[test]
    fn what_no_route_can_allow_is_refused() {
        use AmbiguousPath::*;
        for (why, paths) in [
            (
                DotSegment,
                "/a/../b /a/%2e%2E/b /. /x/..;/charge /x/..%3B/charge /x/..%2fcharge \
                 /x/..%5ccharge /x/.;a=b /x/..%20/charge /x/\u{FF0E}\u{FF0E}/charge",
            ),
            (Backslash, "/a\\b"),
            (DoubleSlashFirst, "//charge"),
            (Control, "/charge%00 /charge%0d%0a /charge%7F /charge%C2%85"),
            (
                NotUtf8,
                "/charge%C0%AF /charge%E0%80%AF /charge%ff /charge%C3 /charge%ED%A0%80",
            ),
            (BrokenEncoding, "/charge% /charge%6 /%u0063harge /charge%+1"),
            (EncodedTwice, "/%2563harge /%252e%252e/charge"),
        ] {
            for path in paths.split_whitespace() {
                assert_eq!(canonical_of(path), Err(why), "{path}");
            }
        }
    }

    #[test]
    fn what_a_route_may_allow_is_named() {
        use PathAllowance::*;
        for (path, spelling) in [
            ("/a;b=c", Semicolon),
            ("/a%3bb", Semicolon),
            ("/a%2Fb", EncodedSlash),
            ("/a%5cb", EncodedSlash),
            ("/a//b", DoubleSlash),
            ("/a%3Fb", EncodedDelimiter),
            ("/a%23b", EncodedDelimiter),
        ] {
            let read = ParsedPath::of(path).unwrap();
            assert_eq!(read.spellings, [spelling], "{path}");
        }
    }

    #[test]
    fn a_path_that_some_handler_takes_for_another_has_its_loosest_form() {
        let takes = |pattern: &str, path: &str| {
            let pattern = LoosePattern::of(&pattern.parse().unwrap());
            pattern.takes(&ParsedPath::of(path).unwrap().loosest)
        };
        let alike = "/charge /CHARGE /charge/ /charge// /charge;x /charge. /charge%20 /%20charge /charge%3Fx \
                     /charge%23 /%2Fcharge /charge%2f /charge%5C /;x/charge /\u{FF23}harge /charge%C2%A0";
        for path in alike.split_whitespace() {
            assert!(takes("/charge", path), "{path}");
        }
        let others = "/ /charges /charge/x /char/ge /x/charge /charge.json";
        for path in others.split_whitespace() {
            assert!(!takes("/charge", path), "{path}");
        }
        let below = "/kiosk /KIOSK/x /kiosk%2Fx /kiosk;a/x /\u{212A}io\u{17F}k/x";
        for path in below.split_whitespace() {
            assert!(takes("/kiosk/*", path), "{path}");
        }
        assert!(!takes("/kiosk/*", "/kiosks/x"));
        let pays =
            "/users/7/PAY /users/7/pay/ /USERS/x/pay /users/a%2Fpay /users//7/pay /users/7/pay;x";
        for path in pays.split_whitespace() {
            assert!(takes("/users/{id}/pay", path), "{path}");
        }
        let others = "/users/pay /users/7/8/pay /users/7/pays /users/7";
        for path in others.split_whitespace() {
            assert!(!takes("/users/{id}/pay", path), "{path}");
        }
        assert!(takes("/users/{id}/*", "/users/7") && takes("/users/{id}/*", "/users/7/x/y"));
        assert!(takes("/*", "/") && takes("/*", "/x"));
    }
}
