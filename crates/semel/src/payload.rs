//! A payload, read once for everything that names work by it: the parts of its key, what a route
//! requires, and the value that its fingerprint is taken of.

use crate::json::{Encoding, Pointer, Read, Refused, Unfit, part, read, string};
use crate::key::{FORM, Field, JSON, KeyError, NULL, PART_BYTES_MAX, form};
use std::borrow::Cow;

/// A payload that was read as JSON, be it JSON or not.
///
/// Reading takes less than three times the payload's own memory, whatever is in it. Each level of JSON in
/// a string that a pointer leads into takes as much for that string, and a copy of it.
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
    layer: Layer,
}

/// A text that was read, and the strings in it that hold JSON.
#[derive(Clone, Debug)]
struct Layer {
    /// Where the values of these pointers stand, none of which leads into a string.
    pointers: Vec<String>,
    read: Result<Read, Refused>,
    inner: Vec<Inner>,
}

/// JSON in a string.
#[derive(Clone, Debug)]
struct Inner {
    /// Where the string stands.
    pointer: String,
    text: String,
    layer: Layer,
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
        match payload.layer.read {
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
            layer: Layer {
                pointers: Vec::new(),
                read: Err(Refused::NotJson),
                inner: Vec::new(),
            },
        }
    }

    fn new<'p>(
        bytes: &'a [u8],
        pointers: impl IntoIterator<Item = &'p str>,
        room: &mut dyn FnMut(usize) -> bool,
    ) -> Self {
        let pointers: Vec<_> = pointers.into_iter().map(plain).collect();
        Self {
            bytes,
            layer: Layer::read(bytes, &pointers, room),
            pointers: pointers.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The payload as it was delivered.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether there is a value where a pointer leads, or in a field `form:NAME` of a form. A payload that is
    /// not JSON, or not a form, has none. `null`, `[]` and `{}` are none, unless the pointer ends in `?null`.
    ///
    /// # Errors
    /// When two readers could take the payload differently.
    pub fn has(&self, part: &str) -> Result<bool, KeyError> {
        if let Some(name) = part.strip_prefix(FORM) {
            return Ok(form::field(self.bytes, name)?.is_some());
        }
        let text = self.find(plain(part))?;
        Ok(text.is_some_and(|text| part.ends_with(NULL) || nothing(&text).is_none()))
    }

    /// The value where a pointer leads, as it is written in the payload; `null` is one.
    ///
    /// ```
    /// use semel::Payload;
    ///
    /// let payload = Payload::read(br#"{"version": 7}"#, ["/version"]);
    /// assert_eq!(payload.written("/version").unwrap().as_deref(), Some("7"));
    /// ```
    ///
    /// # Errors
    /// When two readers could take the payload differently.
    pub fn written(&self, pointer: &str) -> Result<Option<Cow<'_, str>>, KeyError> {
        self.find(plain(pointer))
    }

    /// The value where a pointer leads, as a part of a key.
    pub(crate) fn field(&self, pointer: &str) -> Result<Option<Field>, KeyError> {
        let Some(text) = self.find(plain(pointer))? else {
            return Ok(None);
        };
        match nothing(&text) {
            Some(value) if !pointer.ends_with(NULL) => Err(KeyError::NullPart {
                part: pointer.into(),
                value,
            }),
            Some(_) | None => match part(&text, PART_BYTES_MAX) {
                Ok(field) => Ok(Some(field)),
                Err(unfit) => Err(unfit.of(pointer)),
            },
        }
    }

    /// The encoding that all spellings of the payload share, when it is JSON.
    pub(crate) fn encoding(&self) -> Option<&Encoding> {
        self.layer.read.as_ref().ok().map(|read| &read.whole)
    }

    fn find(&self, pointer: &str) -> Result<Option<Cow<'_, str>>, KeyError> {
        if self.layer.read.is_err() || self.pointers.iter().any(|known| known == pointer) {
            let found = self.layer.find(self.bytes, pointer)?;
            return Ok(found.map(Cow::Borrowed));
        }
        // The reader did not look for it.
        let layer = Layer::read(self.bytes, &[pointer], &mut |_| true);
        let found = layer.find(self.bytes, pointer)?;
        Ok(found.map(|text| Cow::Owned(text.to_owned())))
    }
}

/// A pointer without its `?null`.
fn plain(pointer: &str) -> &str {
    pointer.strip_suffix(NULL).unwrap_or(pointer)
}

/// The text of a value that counts as missing, if it is one.
fn nothing(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let within = |open, close| text.strip_prefix(open)?.strip_suffix(close).map(str::trim);
    if text == "null" {
        Some("null")
    } else if within('[', ']') == Some("") {
        Some("[]")
    } else if within('{', '}') == Some("") {
        Some("{}")
    } else {
        None
    }
}

// === impl Layer ===

impl Layer {
    /// Reads a text, and the strings in it that pointers lead into.
    fn read(bytes: &[u8], pointers: &[&str], room: &mut dyn FnMut(usize) -> bool) -> Self {
        let mut outer: Vec<&str> = pointers.iter().map(|pointer| split(pointer).0).collect();
        outer.sort_unstable();
        outer.dedup();
        let wanted: Vec<_> = outer.iter().map(|pointer| Pointer::new(pointer)).collect();
        let mut layer = Self {
            read: read(bytes, &wanted, room),
            pointers: outer.iter().map(|pointer| (*pointer).to_owned()).collect(),
            inner: Vec::new(),
        };
        for pointer in outer {
            let within = pointers.iter().filter_map(|whole| {
                let (outer, inner) = split(whole);
                inner.filter(|_| outer == pointer)
            });
            let within: Vec<_> = within.collect();
            let place = layer.place(bytes, pointer).filter(|_| !within.is_empty());
            let is_room = place.is_none_or(|text| room(text.len()));
            let inner = place
                .filter(|_| is_room)
                .and_then(string)
                .map(|text| Inner {
                    layer: Self::read(text.as_bytes(), &within, room),
                    pointer: pointer.to_owned(),
                    text,
                });
            let has_room = |inner: &Inner| !matches!(inner.layer.read, Err(Refused::NoRoom));
            if !is_room || !inner.as_ref().is_none_or(has_room) {
                layer.read = Err(Refused::NoRoom);
            }
            layer.inner.extend(inner);
        }
        layer
    }

    /// The value where a pointer leads that was given when the text was read.
    fn find<'t>(&'t self, bytes: &'t [u8], pointer: &str) -> Result<Option<&'t str>, KeyError> {
        if let Err(refused) = &self.read {
            return refused.means_missing(bytes.len());
        }
        let (outer, inner) = split(pointer);
        let Some(pointer) = inner else {
            return Ok(self.place(bytes, outer));
        };
        match self.inner.iter().find(|inner| inner.pointer == outer) {
            Some(inner) if pointer.is_empty() => match &inner.layer.read {
                Ok(_) => Ok(Some(&inner.text)),
                Err(refused) => refused.means_missing(inner.text.len()),
            },
            Some(inner) => inner.layer.find(inner.text.as_bytes(), pointer),
            None => Ok(None),
        }
    }

    /// The value of a pointer that leads into no string.
    fn place<'t>(&self, bytes: &'t [u8], pointer: &str) -> Option<&'t str> {
        let read = self.read.as_ref().ok()?;
        let number = self.pointers.iter().position(|known| known == pointer)?;
        let range = read.places.get(number)?.clone()?;
        std::str::from_utf8(bytes.get(range)?).ok()
    }
}

/// The pointer to the first string that holds JSON, and the rest of a pointer that leads into it.
fn split(pointer: &str) -> (&str, Option<&str>) {
    let ends = |(at, _): &(usize, &str)| {
        let rest = pointer.get(at + JSON.len()..).unwrap_or_default();
        rest.is_empty() || rest.starts_with('/')
    };
    match pointer.match_indices(JSON).find(ends) {
        Some((at, _)) => {
            let (outer, rest) = pointer.split_at(at);
            (outer, rest.strip_prefix(JSON))
        }
        None => (pointer, None),
    }
}

// === impl Refused ===

impl Refused {
    /// A payload that is not JSON has no parts; one that two readers could take differently is an
    /// error.
    fn means_missing<T>(&self, bytes: usize) -> Result<Option<T>, KeyError> {
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
            Self::InexactNumber(literal) => KeyError::InexactNumber { part, literal },
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
