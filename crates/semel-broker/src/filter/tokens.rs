//! A filter's text, cut into tokens.

use super::{FilterError, unexpected};
use std::collections::VecDeque;

/// What a language is written with.
#[derive(Debug)]
pub(crate) struct Syntax {
    /// Longer ones before those they begin with.
    pub(crate) symbols: &'static [&'static str],
    pub(crate) quotes: &'static [char],
    /// Whether a backslash in quotes stands for something else.
    pub(crate) escapes: bool,
    /// Whether AND, OR and NOT can be nothing else.
    pub(crate) reserved: bool,
    /// Whether AND may be left out, and mixed with OR.
    pub(crate) loose: bool,
    pub(crate) begins_word: fn(char) -> bool,
    pub(crate) in_word: fn(char) -> bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Symbol(&'static str),
    Word(String),
    Quoted(String),
}

/// The tokens that are still to be read.
#[derive(Debug)]
pub(crate) struct Tokens(VecDeque<Token>);

// === impl Token ===

impl Token {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Symbol(text) => text,
            Self::Word(text) | Self::Quoted(text) => text,
        }
    }

    /// Whether it is this symbol or word, outside of quotes.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text() == text && !matches!(self, Self::Quoted(_))
    }
}

// === impl Tokens ===

impl Tokens {
    pub(crate) fn read(text: &str, syntax: &Syntax) -> Result<Self, FilterError> {
        let mut tokens = VecDeque::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let (token, after) = match symbol(rest, syntax) {
                Some(symbol) => (Token::Symbol(symbol), after(rest, symbol.len())),
                None if syntax.quotes.contains(&first) => quoted(rest, first, syntax.escapes)?,
                None if (syntax.begins_word)(first) => word(rest, syntax),
                None => return Err(FilterError::UnknownCharacter(first)),
            };
            tokens.push_back(token);
            rest = after.trim_start();
        }
        Ok(Self(tokens))
    }

    pub(crate) fn peek(&self) -> Option<&Token> {
        self.0.front()
    }

    pub(crate) fn next(&mut self) -> Option<Token> {
        self.0.pop_front()
    }

    /// Takes the next token if it is this one.
    pub(crate) fn takes(&mut self, text: &str) -> bool {
        let takes = self.peek().is_some_and(|token| token.is(text));
        if takes {
            self.next();
        }
        takes
    }

    pub(crate) fn expect(&mut self, text: &'static str) -> Result<(), FilterError> {
        match self.takes(text) {
            true => Ok(()),
            false => Err(unexpected(self.next(), text)),
        }
    }
}

fn symbol(rest: &str, syntax: &Syntax) -> Option<&'static str> {
    let mut symbols = syntax.symbols.iter();
    symbols.find(|symbol| rest.starts_with(**symbol)).copied()
}

fn after(rest: &str, length: usize) -> &str {
    rest.get(length..).unwrap_or_default()
}

fn word<'a>(rest: &'a str, syntax: &Syntax) -> (Token, &'a str) {
    let end = rest.find(|it| !(syntax.in_word)(it)).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    let token = match word {
        "AND" if syntax.reserved => Token::Symbol("AND"),
        "OR" if syntax.reserved => Token::Symbol("OR"),
        "NOT" if syntax.reserved => Token::Symbol("NOT"),
        word => Token::Word(word.into()),
    };
    (token, after)
}

/// The text in quotes at the beginning, and what follows it.
fn quoted(rest: &str, quote: char, escapes: bool) -> Result<(Token, &str), FilterError> {
    let mut value = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if escapes => value.push(escaped(&mut letters)?),
            letter if letter == quote => return Ok((Token::Quoted(value), after(rest, at + 1))),
            plain => value.push(plain),
        }
    }
    Err(FilterError::UnclosedQuote)
}

/// What stands for one letter after a backslash.
fn escaped(letters: &mut impl Iterator<Item = (usize, char)>) -> Result<char, FilterError> {
    let (_, letter) = letters.next().ok_or(FilterError::UnknownEscape)?;
    let mut number = |first: u32, digits: usize, base: u32| {
        let mut value = first;
        for _ in 0..digits {
            let (_, digit) = letters.next()?;
            value = value * base + digit.to_digit(base)?;
        }
        char::from_u32(value)
    };
    let letter = match letter {
        'a' => Some('\x07'),
        'b' => Some('\x08'),
        'f' => Some('\x0c'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\x0b'),
        'x' => number(0, 2, 16),
        'u' => number(0, 4, 16),
        'U' => number(0, 8, 16),
        first @ '0'..='3' => number(first.to_digit(8).unwrap_or_default(), 2, 8),
        itself @ ('"' | '\\' | '\'' | '`' | '?') => Some(itself),
        _ => None,
    };
    letter.ok_or(FilterError::UnknownEscape)
}
