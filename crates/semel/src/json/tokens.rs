//! A JSON text as a stream of tokens, in the order in which they stand in it. Nothing recurses.

use super::literal::{self, Literal};
use super::number;
use super::{DEPTH_MAX, Refused};

/// What stands next in a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token<'a> {
    /// An array or object begins.
    Begin(Container),
    /// The innermost one ends.
    End,
    /// The name of a member; its value is next.
    Name(Literal<'a>),
    /// A value that is neither array nor object.
    Scalar(Scalar<'a>),
}

/// What may hold other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    Array,
    Object,
}

/// A value that holds no other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    String(Literal<'a>),
}

/// A text that is being read.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    open: Vec<Container>,
    next: Next,
}

/// What may stand next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Value,
    FirstItem,
    FirstMember,
    /// A comma, the end of what is open, or the end of the text.
    More,
}

// === impl Tokens ===

impl<'a> Tokens<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            open: Vec::new(),
            next: Next::Value,
        }
    }

    /// Where the last token ended.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The next token and where it begins; `None` at the end of the text.
    pub(super) fn next(&mut self) -> Result<Option<(usize, Token<'a>)>, Refused> {
        self.space();
        let token = match (self.next, self.open.last().copied()) {
            (Next::Value, _) => self.value(),
            (Next::FirstItem, _) if self.takes(b']') => self.end(),
            (Next::FirstItem, _) => self.value(),
            (Next::FirstMember, _) if self.takes(b'}') => self.end(),
            (Next::FirstMember, _) => self.name(),
            (Next::More, Some(Container::Array)) if self.takes(b']') => self.end(),
            (Next::More, Some(Container::Object)) if self.takes(b'}') => self.end(),
            (Next::More, Some(Container::Array)) => self.comma().and_then(|()| self.value()),
            (Next::More, Some(Container::Object)) => self.comma().and_then(|()| self.name()),
            (Next::More, None) if self.at == self.text.len() => return Ok(None),
            (Next::More, None) => Err(Refused::NotJson),
        };
        token.map(Some)
    }

    fn value(&mut self) -> Result<(usize, Token<'a>), Refused> {
        let at = self.at;
        let token = match self.peek() {
            Some(b'{') => self.begin(Container::Object, Next::FirstMember)?,
            Some(b'[') => self.begin(Container::Array, Next::FirstItem)?,
            Some(b'"') => self.scalar(Self::string, Scalar::String)?,
            Some(b'-' | b'0'..=b'9') => self.scalar(Self::number, Scalar::Number)?,
            Some(_) | None => self.scalar(Self::word, |word| word)?,
        };
        Ok((at, token))
    }

    fn begin(&mut self, kind: Container, next: Next) -> Result<Token<'a>, Refused> {
        if self.open.len() == DEPTH_MAX {
            return Err(Refused::TooDeep);
        }
        self.at += 1;
        self.open.push(kind);
        self.next = next;
        Ok(Token::Begin(kind))
    }

    fn end(&mut self) -> Result<(usize, Token<'a>), Refused> {
        self.open.pop();
        self.next = Next::More;
        Ok((self.at - 1, Token::End))
    }

    fn name(&mut self) -> Result<(usize, Token<'a>), Refused> {
        let at = self.at;
        let name = self.string()?;
        self.space();
        if !self.takes(b':') {
            return Err(Refused::NotJson);
        }
        self.next = Next::Value;
        Ok((at, Token::Name(name)))
    }

    fn scalar<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Refused>,
        of: impl FnOnce(T) -> Scalar<'a>,
    ) -> Result<Token<'a>, Refused> {
        self.next = Next::More;
        read(self).map(|value| Token::Scalar(of(value)))
    }

    fn string(&mut self) -> Result<Literal<'a>, Refused> {
        if !self.takes(b'"') {
            return Err(Refused::NotJson);
        }
        let end = literal::end(self.text.as_bytes(), self.at)?;
        let raw = self.text.get(self.at..end).ok_or(Refused::NotJson)?;
        self.at = end + 1;
        Ok(Literal::new(raw))
    }

    fn number(&mut self) -> Result<&'a str, Refused> {
        let literal = number::literal(self.rest()).ok_or(Refused::NotJson)?;
        self.at += literal.len();
        Ok(literal)
    }

    fn word(&mut self) -> Result<Scalar<'a>, Refused> {
        let words = [
            ("null", Scalar::Null),
            ("true", Scalar::Bool(true)),
            ("false", Scalar::Bool(false)),
        ];
        let rest = self.rest();
        let (word, value) = words
            .into_iter()
            .find(|(word, _)| rest.starts_with(word))
            .ok_or(Refused::NotJson)?;
        self.at += word.len();
        Ok(value)
    }

    fn comma(&mut self) -> Result<(), Refused> {
        if !self.takes(b',') {
            return Err(Refused::NotJson);
        }
        self.space();
        Ok(())
    }

    fn takes(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
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
