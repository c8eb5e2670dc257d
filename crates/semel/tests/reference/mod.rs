//! A JSON reader that builds a tree: slow and plain, to compare the real one with.

use proptest::sample::Index;
use std::collections::BTreeMap;

const DEPTH_MAX: usize = 64;

/// A JSON value whose numbers are still literals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<Self>),
    Object(BTreeMap<MemberName, Self>),
}

/// A member name that sorts by its UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberName(String);

/// Why there is no value, or no canonical text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    NotJson,
    DuplicateMember,
    LoneSurrogate,
    TooDeep,
    WideInteger,
    NumberOverflow,
    InexactNumber,
}

/// Sign, digits without zeros around them, and the power of ten of the last digit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal(bool, String, i128);

struct ReferenceReader<'a> {
    text: &'a str,
    at: usize,
}

/// A stream of choices that a seed makes.
struct Choices(u64);

// === impl Json ===

impl Json {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|_| Refusal::NotJson)?;
        let mut reader = ReferenceReader { text, at: 0 };
        let value = reader.value(0)?;
        reader.space();
        if reader.at == text.len() {
            Ok(value)
        } else {
            Err(Refusal::NotJson)
        }
    }

    /// An object; of two members with one name the last is kept.
    pub(crate) fn members(members: Vec<(String, Self)>) -> Self {
        let named = members
            .into_iter()
            .map(|(name, value)| (MemberName(name), value));
        Self::Object(named.collect())
    }

    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.get(&MemberName(name.into())),
            Self::Array(items) => items.get(name.parse::<usize>().ok()?),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => None,
        }
    }

    /// RFC 8785, with integers of 64 bits kept exact.
    pub(crate) fn canonical(&self) -> Result<String, Refusal> {
        self.rendered(canonical_number)
    }

    /// One text for all spellings of a value, whatever its numbers.
    pub(crate) fn normal(&self) -> String {
        let number = |literal: &str| Ok(format!("{:?}", Decimal::of(literal)));
        self.rendered(number).unwrap()
    }

    fn rendered(&self, number: fn(&str) -> Result<String, Refusal>) -> Result<String, Refusal> {
        Ok(match self {
            Self::Null => "null".into(),
            Self::Bool(is) => is.to_string(),
            Self::Number(literal) => number(literal)?,
            Self::String(text) => quoted(text),
            Self::Array(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(|it| it.rendered(number)).collect();
                format!("[{}]", items?.join(","))
            }
            Self::Object(members) => {
                let member = |(name, value): (&MemberName, &Self)| {
                    Ok(format!("{}:{}", quoted(&name.0), value.rendered(number)?))
                };
                let members: Result<Vec<_>, _> = members.iter().map(member).collect();
                format!("{{{}}}", members?.join(","))
            }
        })
    }

    /// One of the many ways to write it.
    pub(crate) fn written(&self, seed: u64) -> String {
        let mut choices = Choices(seed | 1);
        let mut out = String::new();
        self.write(&mut out, &mut choices);
        out
    }

    fn write(&self, out: &mut String, choices: &mut Choices) {
        choices.space(out);
        match self {
            Self::Null | Self::Bool(_) => out.push_str(&self.canonical().unwrap()),
            Self::Number(literal) => out.push_str(&choices.number(literal)),
            Self::String(text) => choices.string(text, out),
            Self::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    item.write(out, choices);
                }
                choices.space(out);
                out.push(']');
            }
            Self::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                for i in (1..members.len()).rev() {
                    members.swap(i, choices.below(i + 1));
                }
                out.push('{');
                for (i, (name, value)) in members.into_iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    choices.space(out);
                    choices.string(&name.0, out);
                    choices.space(out);
                    out.push(':');
                    value.write(out, choices);
                }
                choices.space(out);
                out.push('}');
            }
        }
        choices.space(out);
    }

    /// The same with something in it replaced, which may come out equal.
    pub(crate) fn changed(&self, at: Index) -> Self {
        let mut changed = self.clone();
        match &mut changed {
            Self::Array(items) if !items.is_empty() => {
                let one = at.index(items.len());
                items[one] = items[one].changed(at);
            }
            Self::Object(members) if !members.is_empty() => {
                let one = at.index(members.len());
                let (name, value) = members.iter().nth(one).unwrap();
                let (mut name, value) = (name.clone(), value.changed(at));
                members.remove(&name.clone());
                if at.index(7) == 3 {
                    name.0.push('a');
                }
                members.insert(name, value);
            }
            Self::Null => changed = Self::Array(Vec::new()),
            Self::Bool(is) => changed = Self::Bool(!*is),
            Self::Number(literal) => changed = Self::Number(literal.replace('1', "2")),
            Self::String(text) => text.push('x'),
            Self::Array(_) => changed = Self::Object(BTreeMap::new()),
            Self::Object(_) => changed = Self::Null,
        }
        changed
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn canonical_number(literal: &str) -> Result<String, Refusal> {
    if literal.contains(['.', 'e', 'E']) {
        let double: f64 = literal.parse().map_err(|_| Refusal::NotJson)?;
        if double.is_infinite() {
            return Err(Refusal::NumberOverflow);
        }
        let text = ryu_js::Buffer::new().format(double).to_owned();
        if Decimal::of(&text) != Decimal::of(literal) {
            return Err(Refusal::InexactNumber);
        }
        return Ok(text);
    }
    match literal.parse::<i128>() {
        Ok(n) if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&n) => Ok(n.to_string()),
        Ok(_) | Err(_) => Err(Refusal::WideInteger),
    }
}

// === impl Decimal ===

impl Decimal {
    pub(crate) fn of(literal: &str) -> Self {
        let lower = literal.to_lowercase();
        let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{}{fraction}", whole.trim_start_matches('-'));
        let digits = all.trim_matches('0').to_owned();
        if digits.is_empty() {
            return Self(false, digits, 0);
        }
        let behind = all.len() - all.trim_end_matches('0').len();
        let shift = i128::try_from(behind).unwrap() - i128::try_from(fraction.len()).unwrap();
        let power = exponent.parse::<i128>().unwrap() + shift;
        Self(literal.starts_with('-'), digits, power)
    }

    /// One of its literals, which has an exponent.
    fn written(&self, zeros: usize, point: usize) -> String {
        let Self(is_negative, digits, power) = self;
        let sign = if *is_negative { "-" } else { "" };
        let digits = match digits.as_str() {
            "" => "0",
            digits => digits,
        };
        let all = format!("{digits}{}", "0".repeat(zeros));
        let (whole, fraction) = all.split_at(1 + point % digits.len());
        let exponent = power - i128::try_from(zeros).unwrap();
        match fraction.len() {
            0 => format!("{sign}{whole}e{exponent}"),
            behind => {
                let exponent = exponent + i128::try_from(behind).unwrap();
                format!("{sign}{whole}.{fraction}E{exponent:+}")
            }
        }
    }
}

// === impl Choices ===

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    fn space(&mut self, out: &mut String) {
        let spaces = ["", "", "", " ", "\n", "\t \r"];
        out.push_str(spaces[self.below(spaces.len())]);
    }

    /// Another literal of the same number, as keys read them.
    fn number(&mut self, literal: &str) -> String {
        let integer = literal.parse::<i64>().ok();
        let exact = integer.filter(|n| n.unsigned_abs() < 1 << 50);
        match (self.below(4), exact) {
            (1, Some(n)) => format!("{n}.0"),
            (2, Some(n)) if n != 0 => format!("{n}0E-1"),
            (3, Some(n)) if n % 10 == 0 => format!("{}e+1", n / 10),
            (1, None) if literal.contains(['.', 'e', 'E']) => {
                let (zeros, point) = (self.below(4), self.below(30));
                Decimal::of(literal).written(zeros, point)
            }
            _ => literal.to_owned(),
        }
    }

    fn string(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for character in text.chars() {
            let must = character < ' ' || matches!(character, '"' | '\\');
            if must || self.below(4) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                out.push(character);
            }
        }
        out.push('"');
    }
}

// === impl ReferenceReader ===

impl<'a> ReferenceReader<'a> {
    fn value(&mut self, depth: usize) -> Result<Json, Refusal> {
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) | None => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, Refusal> {
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
            if members.insert(MemberName(name), value).is_some() {
                return Err(Refusal::DuplicateMember);
            }
            if self.next_is(b'}') {
                return Ok(Json::Object(members));
            }
            self.expect(b',')?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, Refusal> {
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

    fn open(&mut self, depth: usize) -> Result<(), Refusal> {
        self.at += 1;
        if depth > DEPTH_MAX {
            Err(Refusal::TooDeep)
        } else {
            Ok(())
        }
    }

    /// Finds the end of a string and lets `serde_json` read it.
    fn string(&mut self) -> Result<String, Refusal> {
        if self.peek() != Some(b'"') {
            return Err(Refusal::NotJson);
        }
        let rest = &self.text[self.at..];
        let mut escaped = false;
        let closes = |byte: u8| {
            let end = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            end
        };
        let end = rest.bytes().skip(1).position(closes);
        let literal = &rest[..2 + end.ok_or(Refusal::NotJson)?];
        self.at += literal.len();
        serde_json::from_str(literal).map_err(|error| {
            let said = error.to_string();
            if said.contains("surrogate") || said.contains("hex escape") {
                Refusal::LoneSurrogate
            } else {
                Refusal::NotJson
            }
        })
    }

    fn number(&mut self) -> Result<Json, Refusal> {
        let rest = &self.text[self.at..];
        let part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let literal = &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())];
        self.at += literal.len();
        // The grammar is serde_json's; only overflow is its own affair.
        match serde_json::from_str::<serde_json::Value>(literal) {
            Err(error) if !error.to_string().contains("out of range") => Err(Refusal::NotJson),
            Ok(_) | Err(_) => Ok(Json::Number(literal.into())),
        }
    }

    fn word(&mut self) -> Result<Json, Refusal> {
        let words = [
            ("null", Json::Null),
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
        ];
        for (word, value) in words {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(Refusal::NotJson)
    }

    fn next_is(&mut self, byte: u8) -> bool {
        self.space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), Refusal> {
        if self.next_is(byte) {
            Ok(())
        } else {
            Err(Refusal::NotJson)
        }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

// === impl MemberName ===

impl Ord for MemberName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.encode_utf16().cmp(other.0.encode_utf16())
    }
}

impl PartialOrd for MemberName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
