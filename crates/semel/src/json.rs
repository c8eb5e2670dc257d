//! JSON read strictly enough to name work by it: number literals stay as they were written,
//! duplicate member names and lone surrogates are refused, depth is bounded.
//!
//! A general reader merges integers above 2^53, keeps the last of two equal names, and so would
//! give different work the same key.

use std::collections::BTreeMap;

/// How deep arrays and objects may be nested.
pub(crate) const DEPTH_MAX: usize = 64;

/// A JSON value whose numbers are still literals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<Self>),
    /// Members by name in UTF-16 order, as RFC 8785 sorts them.
    Object(BTreeMap<Utf16Order, Self>),
}

/// A member name that sorts by its UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Utf16Order(pub(crate) String);

/// Why a text was refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refused {
    /// It is not JSON.
    NotJson,
    /// A member name appears twice in one object.
    DuplicateMember(String),
    /// A `\u` escape names half a character.
    LoneSurrogate,
    /// Nested deeper than [`DEPTH_MAX`].
    TooDeep,
    /// An integer that does not fit 64 bits.
    WideInteger(String),
    /// A number too large for a double.
    NumberOverflow(String),
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

// === impl Json ===

impl Json {
    /// Reads a whole text.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Refused> {
        let text = std::str::from_utf8(bytes).map_err(|_| Refused::NotJson)?;
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.space();
        if reader.at == text.len() {
            Ok(value)
        } else {
            Err(Refused::NotJson)
        }
    }

    /// The value a JSON pointer (RFC 6901) names.
    pub(crate) fn pointer(&self, pointer: &str) -> Option<&Self> {
        pointer.split('/').skip(1).try_fold(self, |value, segment| {
            let name = segment.replace("~1", "/").replace("~0", "~");
            match value {
                Self::Object(members) => members.get(&Utf16Order(name)),
                Self::Array(items) => items.get(array_index(&name)?),
                Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => None,
            }
        })
    }

    /// The canonical text: RFC 8785, with integers of 64 bits kept exact.
    pub(crate) fn canonical(&self) -> Result<String, Refused> {
        let mut out = String::new();
        self.write(&mut out)?;
        Ok(out)
    }

    fn write(&self, out: &mut String) -> Result<(), Refused> {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Number(literal) => out.push_str(&canonical_number(literal)?),
            Self::String(text) => out.push_str(&quoted(text)),
            Self::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    item.write(out)?;
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (i, (name, value)) in members.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    out.push_str(&quoted(&name.0));
                    out.push(':');
                    value.write(out)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }
}

fn array_index(name: &str) -> Option<usize> {
    let plain = name == "0" || !name.starts_with(['0', '+']);
    name.parse().ok().filter(|_| plain)
}

/// `serde_json` escapes exactly what RFC 8785 says, in the same way.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string always encodes")
}

fn canonical_number(literal: &str) -> Result<String, Refused> {
    if literal.contains(['.', 'e', 'E']) {
        let double: f64 = literal.parse().map_err(|_| Refused::NotJson)?;
        if double.is_infinite() {
            return Err(Refused::NumberOverflow(literal.to_owned()));
        }
        return Ok(ryu_js::Buffer::new().format(double).to_owned());
    }
    match literal.parse::<i128>() {
        Ok(n) if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&n) => Ok(n.to_string()),
        Ok(_) | Err(_) => Err(Refused::WideInteger(literal.to_owned())),
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Json, Refused> {
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) | None => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, Refused> {
        self.open(depth)?;
        let mut members = BTreeMap::new();
        if self.next_is(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.space();
            let name = self.string()?;
            self.expect(b':')?;
            let value = self.value(depth)?;
            if members.insert(Utf16Order(name.clone()), value).is_some() {
                return Err(Refused::DuplicateMember(name));
            }
            if self.next_is(b'}') {
                return Ok(Json::Object(members));
            }
            self.expect(b',')?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, Refused> {
        self.open(depth)?;
        let mut items = Vec::new();
        if self.next_is(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            if self.next_is(b']') {
                return Ok(Json::Array(items));
            }
            self.expect(b',')?;
        }
    }

    fn open(&mut self, depth: usize) -> Result<(), Refused> {
        self.at += 1;
        if depth > DEPTH_MAX {
            Err(Refused::TooDeep)
        } else {
            Ok(())
        }
    }

    /// Finds the end of a string and lets `serde_json` read it.
    fn string(&mut self) -> Result<String, Refused> {
        if self.peek() != Some(b'"') {
            return Err(Refused::NotJson);
        }
        let rest = self.rest();
        let mut escaped = false;
        let mut closes = |byte: u8| {
            let end = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            end
        };
        let end = 2 + rest
            .bytes()
            .skip(1)
            .position(&mut closes)
            .ok_or(Refused::NotJson)?;
        let literal = rest.get(..end).ok_or(Refused::NotJson)?;
        self.at += end;
        serde_json::from_str(literal).map_err(|error| {
            let half =
                error.to_string().contains("surrogate") || error.to_string().contains("hex escape");
            if half && escapes_are_well_formed(literal) {
                Refused::LoneSurrogate
            } else {
                Refused::NotJson
            }
        })
    }

    fn number(&mut self) -> Result<Json, Refused> {
        let rest = self.rest();
        let part =
            |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        let end = rest
            .bytes()
            .position(|byte| !part(byte))
            .unwrap_or(rest.len());
        let literal = rest.get(..end).ok_or(Refused::NotJson)?;
        self.at += end;
        if is_number(literal) {
            Ok(Json::Number(literal.to_owned()))
        } else {
            Err(Refused::NotJson)
        }
    }

    fn word(&mut self) -> Result<Json, Refused> {
        let words = [
            ("null", Json::Null),
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
        ];
        for (word, value) in words {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(Refused::NotJson)
    }

    fn next_is(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Refused> {
        if self.next_is(byte) {
            Ok(())
        } else {
            Err(Refused::NotJson)
        }
    }

    fn space(&mut self) {
        let rest = self.rest().bytes();
        self.at += rest
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
            .count();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        self.text
            .get(self.at..)
            .expect("the reader stops only between characters")
    }
}

/// Whether every `\u` has four hex digits, so that a refusal can only be for half a character.
fn escapes_are_well_formed(literal: &str) -> bool {
    literal
        .replace("\\\\", "")
        .split("\\u")
        .skip(1)
        .all(|after| after.bytes().take(4).filter(u8::is_ascii_hexdigit).count() == 4)
}

/// The grammar of RFC 8259: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
fn is_number(literal: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = literal.strip_prefix('-').unwrap_or(literal);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

// === impl Utf16Order ===

impl Ord for Utf16Order {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.encode_utf16().cmp(other.0.encode_utf16())
    }
}

impl PartialOrd for Utf16Order {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
