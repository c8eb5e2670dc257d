//! A filter's text, cut into words.

use super::Relation;
use crate::tasks::errors::invalid;
use std::collections::VecDeque;
use tonic::Status;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Open,
    Close,
    And,
    Or,
    Not,
    Minus,
    Relation(Relation),
    Text(String),
    Quoted(String),
}

/// The words that are still to be read.
#[derive(Debug)]
pub(super) struct Words(VecDeque<Word>);

// === impl Words ===

impl Words {
    pub(super) fn of(text: &str) -> Result<Self, Status> {
        let mut words = VecDeque::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let (word, length) = match first {
                '(' => (Word::Open, 1),
                ')' => (Word::Close, 1),
                '-' => (Word::Minus, 1),
                '"' | '\'' => quoted(rest, first)?,
                ':' | '=' | '!' | '<' | '>' => relation(rest)?,
                _ => text_word(rest)?,
            };
            words.push_back(word);
            rest = rest.get(length..).unwrap_or_default().trim_start();
        }
        Ok(Self(words))
    }

    pub(super) fn peek(&self) -> Option<&Word> {
        self.0.front()
    }

    pub(super) fn next(&mut self) -> Option<Word> {
        self.0.pop_front()
    }
}

/// The refusal of a word that cannot stand where it stands.
pub(super) fn unexpected(word: Option<&Word>) -> Status {
    let token = match word {
        None => "<EOF>".into(),
        Some(Word::Open) => "(".into(),
        Some(Word::Close) => ")".into(),
        Some(Word::And) => "AND".into(),
        Some(Word::Or) => "OR".into(),
        Some(Word::Not) => "NOT".into(),
        Some(Word::Minus) => "-".into(),
        Some(Word::Relation(relation)) => relation_text(*relation).into(),
        Some(Word::Text(text) | Word::Quoted(text)) => text.clone(),
    };
    syntax_error(&token)
}

fn syntax_error(token: &str) -> Status {
    invalid(format!(
        "Failed to parse filter expression: syntax error at token '{token}'"
    ))
}

fn quoted(rest: &str, quote: char) -> Result<(Word, usize), Status> {
    let inside = rest.get(1..).unwrap_or_default();
    let Some(end) = inside.find(quote) else {
        return Err(syntax_error("<EOF>"));
    };
    let text = inside.get(..end).unwrap_or_default();
    Ok((Word::Quoted(text.into()), end + 2))
}

fn relation(rest: &str) -> Result<(Word, usize), Status> {
    let relations = [
        Relation::LessOrEqual,
        Relation::GreaterOrEqual,
        Relation::Unequal,
        Relation::Less,
        Relation::Greater,
        Relation::Equal,
        Relation::Has,
    ];
    let found = relations
        .into_iter()
        .find(|it| rest.starts_with(relation_text(*it)));
    let relation = found.ok_or_else(|| syntax_error("!"))?;
    Ok((Word::Relation(relation), relation_text(relation).len()))
}

fn relation_text(relation: Relation) -> &'static str {
    match relation {
        Relation::Has => ":",
        Relation::Equal => "=",
        Relation::Unequal => "!=",
        Relation::Less => "<",
        Relation::LessOrEqual => "<=",
        Relation::Greater => ">",
        Relation::GreaterOrEqual => ">=",
    }
}

fn text_word(rest: &str) -> Result<(Word, usize), Status> {
    let allowed = |it: char| it.is_alphanumeric() || "_-.*/+@".contains(it);
    let end = rest.find(|it| !allowed(it)).unwrap_or(rest.len());
    let text = rest.get(..end).unwrap_or_default();
    let word = match text {
        "" => return Err(syntax_error(rest.get(..1).unwrap_or(rest))),
        "AND" => Word::And,
        "OR" => Word::Or,
        "NOT" => Word::Not,
        text => Word::Text(text.into()),
    };
    Ok((word, end))
}
