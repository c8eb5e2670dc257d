//! A value as a part of a key: the text of a string, the canonical JSON (RFC 8785, with integers of 64
//! bits kept exact) of everything else. No more of it is made than a part may be long.

use super::Unfit;
use super::literal::Literal;
use super::number;
use super::tokens::{Container, Scalar, Token, Tokens};
use crate::key::Field;

/// Canonical text that is being written.
#[derive(Debug)]
struct Out {
    text: String,
    /// How long the whole is, be it written or only counted.
    bytes: usize,
    bytes_max: usize,
}

/// An open array or object.
struct Level {
    kind: Container,
    /// Where its content begins.
    begin: usize,
    items: usize,
    members: Vec<WrittenMember>,
}

/// Where a member's name stands in the text, and where the member stands in what was written. Payloads are
/// under 4 GiB.
struct WrittenMember {
    name_at: u32,
    name_bytes: u32,
    begin: u32,
    end: u32,
}

/// The part that a value makes, from its text, which was read before and found good.
pub(crate) fn part(text: &str, bytes_max: usize) -> Result<Field, Unfit> {
    let mut out = Out {
        text: String::new(),
        bytes: 0,
        bytes_max,
    };
    let kind = match Tokens::new(text).next() {
        Ok(Some((_, Token::Scalar(scalar)))) => out.scalar_part(scalar)?,
        Ok(Some((_, Token::Begin(kind)))) => {
            canonical(text, &mut out)?;
            match kind {
                Container::Array => 'a',
                Container::Object => 'o',
            }
        }
        Ok(Some((_, Token::Name(_) | Token::End)) | None) | Err(_) => 'z',
    };
    if out.bytes > bytes_max {
        return Err(Unfit::TooLong(out.bytes));
    }
    Ok(Field {
        kind,
        bytes: out.text.into_bytes(),
    })
}

/// The text of a value that is a string, if it is one.
pub(crate) fn string(text: &str) -> Option<String> {
    match Tokens::new(text).next() {
        Ok(Some((_, Token::Scalar(Scalar::String(literal))))) => {
            let mut string = String::with_capacity(literal.raw().len());
            literal.pieces(|piece| string.push_str(piece));
            Some(string)
        }
        Ok(Some(_) | None) | Err(_) => None,
    }
}

/// Writes an array or object.
fn canonical(text: &str, out: &mut Out) -> Result<(), Unfit> {
    let mut levels: Vec<Level> = Vec::new();
    let mut tokens = Tokens::new(text);
    while let Ok(Some((at, token))) = tokens.next() {
        if let (Some(level), Token::Begin(_) | Token::Scalar(_)) = (levels.last_mut(), token) {
            level.next_item(out);
        }
        match token {
            Token::Begin(kind) => {
                out.push(kind.opens());
                levels.push(Level {
                    kind,
                    begin: out.text.len(),
                    items: 0,
                    members: Vec::new(),
                });
            }
            Token::End => {
                if let Some(level) = levels.pop() {
                    level.close(text, out);
                }
            }
            Token::Name(name) => {
                if let Some(level) = levels.last_mut() {
                    level.next_member(at + 1, name, out);
                }
                out.quoted(name);
                out.push(":");
            }
            Token::Scalar(Scalar::String(literal)) => out.quoted(literal),
            Token::Scalar(scalar) => drop(out.scalar_part(scalar)?),
        }
    }
    Ok(())
}

// === impl Out ===

impl Out {
    /// Beyond the limit there is only counting.
    fn push(&mut self, text: &str) {
        self.bytes += text.len();
        if self.fits() {
            self.text.push_str(text);
        }
    }

    const fn fits(&self) -> bool {
        self.bytes <= self.bytes_max
    }

    /// A value that holds no other, a string without its quotes; returns the kind of part it is.
    fn scalar_part(&mut self, scalar: Scalar<'_>) -> Result<char, Unfit> {
        Ok(match scalar {
            Scalar::Null => {
                self.push("null");
                'z'
            }
            Scalar::Bool(is) => {
                self.push(if is { "true" } else { "false" });
                'b'
            }
            Scalar::Number(literal) => {
                self.push(&number::canonical(literal)?);
                'd'
            }
            Scalar::String(literal) => {
                literal.pieces(|piece| self.push(piece));
                's'
            }
        })
    }

    /// A string as RFC 8785 quotes it.
    fn quoted(&mut self, literal: Literal<'_>) {
        self.push("\"");
        for character in literal.chars() {
            match character {
                '"' => self.push("\\\""),
                '\\' => self.push("\\\\"),
                '\u{8}' => self.push("\\b"),
                '\u{c}' => self.push("\\f"),
                '\n' => self.push("\\n"),
                '\r' => self.push("\\r"),
                '\t' => self.push("\\t"),
                '\0'..='\u{1f}' => self.push(&format!("\\u{:04x}", u32::from(character))),
                other => self.push(other.encode_utf8(&mut [0; 4])),
            }
        }
        self.push("\"");
    }
}

// === impl Level ===

impl Level {
    /// An array's item begins.
    fn next_item(&mut self, out: &mut Out) {
        if self.kind == Container::Array {
            out.push(if self.items == 0 { "" } else { "," });
            self.items += 1;
        }
    }

    /// An object's member begins.
    fn next_member(&mut self, name_at: usize, name: Literal<'_>, out: &Out) {
        self.items += 1;
        self.end_member(out);
        if out.fits() {
            let begin = place(out.text.len());
            self.members.push(WrittenMember {
                name_at: place(name_at),
                name_bytes: place(name.raw().len()),
                begin,
                end: begin,
            });
        }
    }

    fn end_member(&mut self, out: &Out) {
        if let Some(last) = self.members.last_mut() {
            last.end = place(out.text.len());
        }
    }

    /// Ends it. Members were written one behind the other as they came; now they are put in order.
    fn close(mut self, text: &str, out: &mut Out) {
        self.end_member(out);
        if self.kind == Container::Object && out.fits() {
            let order = |one: &WrittenMember, other: &WrittenMember| {
                one.name(text).order_utf16(other.name(text))
            };
            self.members.sort_unstable_by(order);
            let written = out.text.split_off(self.begin);
            for (number, member) in self.members.iter().enumerate() {
                out.text.push_str(if number == 0 { "" } else { "," });
                let [begin, end] = [member.begin, member.end].map(|at| at as usize - self.begin);
                out.text
                    .push_str(written.get(begin..end).unwrap_or_default());
            }
        }
        if self.kind == Container::Object {
            out.bytes += self.items.saturating_sub(1);
        }
        out.push(self.kind.closes());
    }
}

fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

// === impl WrittenMember ===

impl WrittenMember {
    fn name<'a>(&self, text: &'a str) -> Literal<'a> {
        let (at, bytes) = (self.name_at as usize, self.name_bytes as usize);
        Literal::new(text.get(at..at + bytes).unwrap_or_default())
    }
}

// === impl Container ===

impl Container {
    const fn opens(self) -> &'static str {
        match self {
            Self::Array => "[",
            Self::Object => "{",
        }
    }

    const fn closes(self) -> &'static str {
        match self {
            Self::Array => "]",
            Self::Object => "}",
        }
    }
}
