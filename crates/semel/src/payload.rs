//! A payload, read once for everything that names work by it: the parts of its key, what a route
//! requires, and the value that its fingerprint is taken of.

use crate::json::{Encoding, Pointer, Read, Refused, Unfit, part, read};
use crate::key::{Field, KeyError, PART_BYTES_MAX};
use std::ops::Range;

/// A payload that was read as JSON, be it JSON or not.
///
/// Reading takes less than three times the payload's own memory, whatever is in it.
///
/// ```
/// use semel::Payload;
///
/// let payload = Payload::read(br#"{"order": {"id": 7}}"#, ["/order/id", "/note"]);
/// assert_eq!(payload.has("/order/id"), Ok(true));
/// assert_eq!(payload.has("/note"), Ok(false));
/// let twice = Payload::read(br#"{"id": 7, "id": 8}"#, ["/id"]);
/// assert!(twice.has("/id").unwrap_err().to_string().contains("\"id\" twice"));
/// ```
#[derive(Clone, Debug)]
pub struct Payload<'a> {
    bytes: &'a [u8],
    pointers: Vec<String>,
    read: Result<Read, Refused>,
}

/// There is no room in memory to read a payload now. Nothing is wrong with it: a retry is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no room in memory to read the payload now; nothing was run, a retry is safe")]
pub struct NoRoom;

// === impl Payload ===

impl<'a> Payload<'a> {
    /// Reads a payload and notes where the values of these JSON pointers stand.
    pub fn read<'p>(bytes: &'a [u8], pointers: impl IntoIterator<Item = &'p str>) -> Self {
        Self::new(bytes, pointers, &mut |_| true)
    }

    /// The same, asking before memory is taken that grows with the payload.
    ///
    /// # Errors
    /// When `room` says no.
    pub fn read_within<'p>(
        bytes: &'a [u8],
        pointers: impl IntoIterator<Item = &'p str>,
        room: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Self, NoRoom> {
        let payload = Self::new(bytes, pointers, room);
        match payload.read {
            Err(Refused::NoRoom) => Err(NoRoom),
            Ok(_) | Err(_) => Ok(payload),
        }
    }

    /// A payload that nobody looks into: it has no parts, and is compared as bytes.
    #[must_use]
    pub const fn unread(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            pointers: Vec::new(),
            read: Err(Refused::NotJson),
        }
    }

    fn new<'p>(
        bytes: &'a [u8],
        pointers: impl IntoIterator<Item = &'p str>,
        room: &mut dyn FnMut(usize) -> bool,
    ) -> Self {
        let pointers: Vec<String> = pointers.into_iter().map(str::to_owned).collect();
        let wanted: Vec<_> = pointers
            .iter()
            .map(|pointer| Pointer::new(pointer))
            .collect();
        Self {
            bytes,
            pointers,
            read: read(bytes, &wanted, room),
        }
    }

    /// The payload as it was delivered.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether there is a value where a pointer leads; `null` is one. A payload that is not JSON has
    /// none.
    ///
    /// # Errors
    /// When two readers could take the payload differently.
    pub fn has(&self, pointer: &str) -> Result<bool, KeyError> {
        self.find(pointer).map(|range| range.is_some())
    }

    /// The value where a pointer leads, as it is written in the payload.
    ///
    /// ```
    /// use semel::Payload;
    ///
    /// let payload = Payload::read(br#"{"version": 7}"#, ["/version"]);
    /// assert_eq!(payload.written("/version"), Ok(Some("7")));
    /// ```
    ///
    /// # Errors
    /// When two readers could take the payload differently.
    pub fn written(&self, pointer: &str) -> Result<Option<&'a str>, KeyError> {
        let range = self.find(pointer)?;
        let text = range.and_then(|range| self.bytes.get(range));
        Ok(text.and_then(|text| std::str::from_utf8(text).ok()))
    }

    /// The value where a pointer leads, as a part of a key.
    pub(crate) fn field(&self, pointer: &str) -> Result<Option<Field>, KeyError> {
        let Some(range) = self.find(pointer)? else {
            return Ok(None);
        };
        let text = self.bytes.get(range).unwrap_or_default();
        let text = std::str::from_utf8(text).unwrap_or_default();
        match part(text, PART_BYTES_MAX) {
            Ok(field) => Ok(Some(field)),
            Err(unfit) => Err(unfit.of(pointer)),
        }
    }

    /// The encoding that all spellings of the payload share, when it is JSON and every number in it
    /// can be told from every other.
    pub(crate) fn encoding(&self) -> Option<&Encoding> {
        self.read.as_ref().ok()?.whole.as_ref().ok()
    }

    fn find(&self, pointer: &str) -> Result<Option<Range<usize>>, KeyError> {
        let read = match &self.read {
            Ok(read) => read,
            Err(refused) => return refused.means_missing(self.bytes.len()),
        };
        match self.pointers.iter().position(|known| known == pointer) {
            Some(number) => Ok(read.places.get(number).cloned().flatten()),
            // Nobody said so when it was read.
            None => Payload::read(self.bytes, [pointer]).find(pointer),
        }
    }
}

// === impl Refused ===

impl Refused {
    /// A payload that is not JSON has no parts; one that two readers could take differently is an
    /// error.
    fn means_missing(&self, bytes: usize) -> Result<Option<Range<usize>>, KeyError> {
        let (what, max) = ("the payload".into(), u32::MAX as usize);
        Err(match self {
            Self::NotJson => return Ok(None),
            Self::DuplicateMember(name) => KeyError::DuplicateMember { name: name.clone() },
            Self::LoneSurrogate => KeyError::LoneSurrogate,
            Self::TooDeep => KeyError::TooDeep,
            Self::TooManyMembers => KeyError::TooManyMembers,
            Self::TooLarge | Self::NoRoom => KeyError::TooLong { what, bytes, max },
        })
    }
}

// === impl Unfit ===

impl Unfit {
    fn of(self, part: &str) -> KeyError {
        let part = part.to_owned();
        match self {
            Self::WideInteger(literal) => KeyError::WideInteger { part, literal },
            Self::NumberOverflow(literal) => KeyError::NumberOverflow { part, literal },
            Self::TooLong(bytes) => KeyError::TooLong {
                what: format!("key part {part}"),
                bytes,
                max: PART_BYTES_MAX,
            },
        }
    }
}

/// Whether a `Content-Type` says JSON: `application/json` or a type that ends in `+json`, whatever its
/// parameters.
///
/// ```
/// use semel::payload::is_json;
///
/// assert!(is_json("Application/JSON; charset=utf-8") && is_json("application/vnd.api+json"));
/// assert!(!is_json("text/plain") && !is_json("application/jsonlines") && !is_json("+json"));
/// ```
#[must_use]
pub fn is_json(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    match media_type.split_once('/') {
        Some(("application", "json")) => true,
        Some((kind, subtype)) => !kind.is_empty() && subtype.ends_with("+json"),
        None => false,
    }
}
