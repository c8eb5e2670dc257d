//! JSON read strictly enough to name work by it, in one pass and without a tree: number literals stay
//! as they were written, duplicate member names and lone surrogates are refused, depth and members
//! are bounded.
//!
//! A general reader merges integers above 2^53, keeps the last of two equal names, and so would
//! give different work the same key; and its tree is many times as large as its text.

mod tokens;
mod literal;
mod number;
mod encoding;
mod reader;
mod part;

pub(crate) use encoding::Encoding;
pub(crate) use part::{part, string};
pub(crate) use reader::{Pointer, Read, read};

/// How deep arrays and objects may be nested: deeper than anything people design, and little enough
/// that what is remembered of each open level is nothing.
pub(crate) const DEPTH_MAX: usize = 64;

/// How many members all objects of a payload may have together. They are sorted, and until an object
/// ends its names are kept to find one that is there twice; what has more is a table, not a piece of
/// work.
pub(crate) const MEMBERS_MAX: usize = 1_000_000;

/// How much of a name or number is repeated in an error, in characters.
const SHOWN_CHARS_MAX: usize = 64;

/// Why a text was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is not JSON.
    NotJson,
    /// A member name appears twice in one object.
    DuplicateMember(String),
    /// A `\u` escape names half a character.
    LoneSurrogate,
    /// Nested deeper than [`DEPTH_MAX`].
    TooDeep,
    /// More than [`MEMBERS_MAX`] members.
    TooManyMembers,
    /// Places in it do not fit 32 bits.
    TooLarge,
    /// There is no room in memory to read it now.
    NoRoom,
}

/// Why a value has no canonical text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// An integer that does not fit 64 bits.
    WideInteger(String),
    /// A number too large for a double.
    NumberOverflow(String),
    /// A number that is another decimal than the shortest text of the nearest double.
    InexactNumber(String),
    /// Its text would be longer than it may be: how long.
    TooLong(usize),
}

/// The beginning of a text that may be as long as the body.
fn shown(text: impl Iterator<Item = char>) -> String {
    let mut text = text.peekable();
    let mut shown: String = text.by_ref().take(SHOWN_CHARS_MAX).collect();
    if text.peek().is_some() {
        shown.push('…');
    }
    shown
}
