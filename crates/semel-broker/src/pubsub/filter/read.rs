//! Reading a filter.

use super::{BadFilter, Filter};
use std::iter::Peekable;
use std::vec::IntoIter;

/// One word of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Name(String),
    Text(String),
    Sign(&'static str),
}

const SIGNS: [&str; 8] = ["!=", "=", "(", ")", ",", ".", ":", "-"];

struct Reader {
    words: Peekable<IntoIter<Word>>,
}

/// Reads a filter from beginning to end.
pub(super) fn whole(text: &str) -> Result<Filter, BadFilter> {
    let words = words(text)?;
    let mut reader = Reader {
        words: words.into_iter().peekable(),
    };
    let filter = reader.expression()?;
    match reader.words.next() {
        None => Ok(filter),
        Some(word) => Err(unexpected(Some(word), "AND, OR or the end")),
    }
}

// === impl Reader ===

impl Reader {
    fn expression(&mut self) -> Result<Filter, BadFilter> {
        let first = self.term()?;
        let joint = match self.words.peek() {
            Some(Word::Name(name)) if name == "AND" || name == "OR" => name.clone(),
            Some(_) | None => return Ok(first),
        };
        let mut all = vec![first];
        while self.takes(&Word::Name(joint.clone())) {
            all.push(self.term()?);
        }
        match joint.as_str() {
            "AND" => Ok(Filter::And(all)),
            _ => Ok(Filter::Or(all)),
        }
    }

    fn term(&mut self) -> Result<Filter, BadFilter> {
        if self.takes(&Word::Sign("-")) || self.takes(&Word::Name("NOT".into())) {
            return Ok(Filter::Not(Box::new(self.term()?)));
        }
        if self.takes(&Word::Sign("(")) {
            let inner = self.expression()?;
            self.sign(")")?;
            return Ok(inner);
        }
        if self.takes(&Word::Name("hasPrefix".into())) {
            return self.prefix();
        }
        self.comparison()
    }

    fn prefix(&mut self) -> Result<Filter, BadFilter> {
        self.sign("(")?;
        self.attributes()?;
        self.sign(".")?;
        let key = self.key()?;
        self.sign(",")?;
        let prefix = self.text()?;
        self.sign(")")?;
        Ok(Filter::HasPrefix(key, prefix))
    }

    fn comparison(&mut self) -> Result<Filter, BadFilter> {
        self.attributes()?;
        if self.takes(&Word::Sign(":")) {
            return Ok(Filter::Has(self.key()?));
        }
        self.sign(".")?;
        let key = self.key()?;
        if self.takes(&Word::Sign("!=")) {
            return Ok(Filter::IsNot(key, self.text()?));
        }
        self.sign("=")?;
        Ok(Filter::Is(key, self.text()?))
    }

    fn attributes(&mut self) -> Result<(), BadFilter> {
        match self.words.next() {
            Some(Word::Name(name)) if name == "attributes" => Ok(()),
            other => Err(unexpected(other, "attributes")),
        }
    }

    fn key(&mut self) -> Result<String, BadFilter> {
        match self.words.next() {
            Some(Word::Name(key) | Word::Text(key)) => Ok(key),
            other => Err(unexpected(other, "an attribute's key")),
        }
    }

    fn text(&mut self) -> Result<String, BadFilter> {
        match self.words.next() {
            Some(Word::Text(text)) => Ok(text),
            other => Err(unexpected(other, "a text in double quotes")),
        }
    }

    fn sign(&mut self, sign: &'static str) -> Result<(), BadFilter> {
        match self.words.next() {
            Some(Word::Sign(found)) if found == sign => Ok(()),
            other => Err(unexpected(other, sign)),
        }
    }

    fn takes(&mut self, word: &Word) -> bool {
        self.words.next_if_eq(word).is_some()
    }
}

fn words(text: &str) -> Result<Vec<Word>, BadFilter> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let after = if first == '"' {
            let (word, after) = quoted(rest)?;
            words.push(Word::Text(word));
            after
        } else if is_of_name(first) {
            let end = rest.find(|it| !is_of_name(it) && it != '-');
            let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
            words.push(Word::Name(name.into()));
            after
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| BadFilter(format!("{first:?} means nothing in it")))?;
            words.push(Word::Sign(sign));
            rest.get(sign.len()..).unwrap_or_default()
        };
        rest = after.trim_start();
    }
    Ok(words)
}

fn is_of_name(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

/// The text in quotes at the beginning, and what follows it.
fn quoted(text: &str) -> Result<(String, &str), BadFilter> {
    let mut value = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((value, text.get(at + 1..).unwrap_or_default())),
            '\\' => value.push(escaped(&mut letters)?),
            plain => value.push(plain),
        }
    }
    Err(BadFilter("a text in it has no closing quote".into()))
}

/// What stands for one letter after a backslash.
fn escaped(letters: &mut impl Iterator<Item = (usize, char)>) -> Result<char, BadFilter> {
    let bad = || BadFilter("a backslash in it is not followed by what it may be".into());
    let (_, letter) = letters.next().ok_or_else(bad)?;
    let mut number = |first: u32, digits: usize, base: u32| {
        let mut value = first;
        for _ in 0..digits {
            let (_, digit) = letters.next().ok_or_else(bad)?;
            value = value * base + digit.to_digit(base).ok_or_else(bad)?;
        }
        char::from_u32(value).ok_or_else(bad)
    };
    match letter {
        'a' => Ok('\x07'),
        'b' => Ok('\x08'),
        'f' => Ok('\x0c'),
        'n' => Ok('\n'),
        'r' => Ok('\r'),
        't' => Ok('\t'),
        'v' => Ok('\x0b'),
        'x' => number(0, 2, 16),
        'u' => number(0, 4, 16),
        'U' => number(0, 8, 16),
        first @ '0'..='3' => number(first.to_digit(8).unwrap_or_default(), 2, 8),
        itself @ ('"' | '\\' | '\'' | '`' | '?') => Ok(itself),
        _ => Err(bad()),
    }
}

fn unexpected(word: Option<Word>, expected: &str) -> BadFilter {
    let found = match word {
        Some(Word::Name(name)) => name,
        Some(Word::Text(text)) => format!("{text:?}"),
        Some(Word::Sign(sign)) => sign.into(),
        None => "the end".into(),
    };
    BadFilter(format!("{expected} is expected before {found}"))
}
