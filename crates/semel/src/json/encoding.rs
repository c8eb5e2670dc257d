//! One encoding for all spellings of a JSON value, short whatever the value: that of a long one is a
//! digest.
//!
//! An encoding is `z` null · `t` true · `f` false · `d` and the number's own digits, laid out as RFC 8785
//! does, zeros at the end of an integer written as `e` and their count · `s` and the string's UTF-8 · `a` and each item ·
//! `o` and each name and value, sorted by name. Items, names and values are encodings too, each behind
//! a byte that is its length. One of more than 32 bytes is replaced by `#` and its SHA-256.

use super::Refused;
use super::literal::Literal;
use super::number::Decimal;
use super::tokens::Scalar;
use sha2::{Digest, Sha256};

/// The longest encoding that stands for itself, in bytes: as long as a digest.
const PLAIN_BYTES_MAX: usize = 32;

/// What a digest begins with; no other encoding does.
const DIGEST: u8 = b'#';

/// How long an encoding is that is a digest, in bytes.
const DIGEST_BYTES: u8 = 33;

/// The largest piece of memory that encodings are kept in, in bytes; of a small text it is smaller.
const CHUNK_BYTES_MAX: usize = 1 << 16;

/// The smallest one.
const CHUNK_BYTES_MIN: usize = 64;

/// The encoding of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding {
    length: u8,
    bytes: [u8; PLAIN_BYTES_MAX + 1],
}

/// An encoding that is being made.
#[derive(Clone, Debug)]
pub(super) enum Sum {
    Plain(Encoding),
    Hashed(Sha256),
}

/// Encodings that were made and are not used yet, the last one first. They stand in chunks of
/// memory, so that nothing is ever copied to a larger one.
#[derive(Debug)]
pub(super) struct Encodings {
    chunks: Vec<Vec<u8>>,
    current: usize,
    chunk_bytes: usize,
}

/// Where an encoding stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset(u32);

/// How far encodings reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watermark {
    chunk: usize,
    length: usize,
}

// === impl Encoding ===

impl Encoding {
    pub(super) fn of_scalar(scalar: Scalar<'_>) -> Self {
        match scalar {
            Scalar::Null => Sum::new(b'z').done(),
            Scalar::Bool(true) => Sum::new(b't').done(),
            Scalar::Bool(false) => Sum::new(b'f').done(),
            Scalar::Number(literal) => Self::of_number(literal),
            Scalar::String(literal) => Self::of_string(literal),
        }
    }

    pub(super) fn of_string(literal: Literal<'_>) -> Self {
        let mut sum = Sum::new(b's');
        literal.pieces(|piece| sum.add(piece.as_bytes()));
        sum.done()
    }

    fn of_number(literal: &str) -> Self {
        let mut sum = Sum::new(b'd');
        match Decimal::of(literal) {
            Some(decimal) => {
                let zeros = decimal.pieces(|piece| sum.add(piece.as_bytes()));
                // Else 1e20 would be five times as long as it was sent.
                if zeros > 0 {
                    sum.add(format!("e{zeros}").as_bytes());
                }
            }
            // Not all spellings of it are equal, but no other number has this text.
            None => sum.add(literal.as_bytes()),
        }
        sum.done()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        let length = usize::from(self.length);
        self.bytes.get(..length).unwrap_or_default()
    }

    const fn empty() -> Self {
        Self {
            length: 0,
            bytes: [0; PLAIN_BYTES_MAX + 1],
        }
    }

    /// Adds to it, if that leaves it short enough.
    fn extend(&mut self, bytes: &[u8]) -> bool {
        let begin = usize::from(self.length);
        let end = begin + bytes.len();
        if end > PLAIN_BYTES_MAX {
            return false;
        }
        let (Some(free), Ok(length)) = (self.bytes.get_mut(begin..end), u8::try_from(end)) else {
            return false;
        };
        free.copy_from_slice(bytes);
        self.length = length;
        true
    }
}

// === impl Sum ===

impl Sum {
    pub(super) fn new(tag: u8) -> Self {
        let mut plain = Encoding::empty();
        plain.extend(&[tag]);
        Self::Plain(plain)
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        match self {
            Self::Hashed(hash) => hash.update(bytes),
            Self::Plain(plain) => {
                if !plain.extend(bytes) {
                    let mut hash = Sha256::new_with_prefix(plain.as_bytes());
                    hash.update(bytes);
                    *self = Self::Hashed(hash);
                }
            }
        }
    }

    /// Adds an encoding behind its length.
    pub(super) fn add_framed(&mut self, encoding: &[u8]) {
        let length = u8::try_from(encoding.len()).expect("encodings are shorter than 256 bytes");
        self.add(&[length]);
        self.add(encoding);
    }

    pub(super) fn done(self) -> Encoding {
        match self {
            Self::Plain(plain) => plain,
            Self::Hashed(hash) => {
                let mut bytes = [DIGEST; PLAIN_BYTES_MAX + 1];
                let digest: [u8; PLAIN_BYTES_MAX] = hash.finalize().into();
                if let Some(free) = bytes.get_mut(1..) {
                    free.copy_from_slice(&digest);
                }
                Encoding {
                    length: DIGEST_BYTES,
                    bytes,
                }
            }
        }
    }
}

// === impl Encodings ===

impl Encodings {
    /// Room for the encodings of a text of this length.
    pub(super) fn new(text_bytes: usize) -> Self {
        Self {
            chunks: Vec::new(),
            current: 0,
            chunk_bytes: (text_bytes / 16).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX),
        }
    }

    /// Keeps an encoding; `room` is asked before memory is taken.
    pub(super) fn push(
        &mut self,
        encoding: &Encoding,
        room: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Offset, Refused> {
        let bytes = encoding.as_bytes();
        let fits = |chunk: &Vec<u8>| chunk.len() + bytes.len() < self.chunk_bytes;
        if self.chunks.get(self.current).is_some_and(|c| !fits(c)) {
            self.current += 1;
        }
        if self.current == self.chunks.len() {
            if !room(self.chunk_bytes) {
                return Err(Refused::NoRoom);
            }
            self.chunks.push(Vec::with_capacity(self.chunk_bytes));
        }
        let place = u32::try_from(self.current).ok().filter(|n| *n < 1 << 16);
        let (Some(number), Some(chunk)) = (place, self.chunks.get_mut(self.current)) else {
            return Err(Refused::TooLarge);
        };
        let offset = u32::try_from(chunk.len()).map_err(|_| Refused::TooLarge)?;
        chunk.push(encoding.length);
        chunk.extend_from_slice(bytes);
        Ok(Offset(number << 16 | offset))
    }

    pub(super) fn get(&self, place: Offset) -> &[u8] {
        let [high, low] = [place.0 >> 16, place.0 & 0xffff];
        let [number, offset] = [high, low].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let kept = self.chunks.get(number).and_then(|c| c.get(offset..));
        let (length, rest) = kept
            .and_then(<[u8]>::split_first)
            .expect("a place is used before what stands there is dropped");
        rest.get(..usize::from(*length)).unwrap_or_default()
    }

    pub(super) fn mark(&self) -> Watermark {
        Watermark {
            chunk: self.current,
            length: self.chunks.get(self.current).map_or(0, Vec::len),
        }
    }

    /// Drops what came after a mark; its memory is used again.
    pub(super) fn drop_to(&mut self, mark: Watermark) {
        let beyond = self.current.saturating_sub(mark.chunk);
        for chunk in self.chunks.iter_mut().skip(mark.chunk + 1).take(beyond) {
            chunk.clear();
        }
        if let Some(chunk) = self.chunks.get_mut(mark.chunk) {
            chunk.truncate(mark.length);
        }
        self.current = mark.chunk;
    }
}
