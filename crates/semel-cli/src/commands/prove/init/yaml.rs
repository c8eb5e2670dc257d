//! YAML as the JSON value that it stands for, as far as OpenAPI documents go: names are texts, plain scalars are read as
//! YAML 1.2 does, and an alias is a copy of what it names.

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// Deeper documents are refused: each level is a call.
const DEPTH_MAX: u32 = 64;
/// Aliases of aliases may stand for more than fits into memory.
const VALUES_MAX: usize = 1_000_000;

/// Reads one event after the other.
struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    anchors: BTreeMap<usize, Value>,
    values: usize,
}

/// The first document of a text.
pub(super) fn value(text: &str) -> Result<Value, String> {
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        anchors: BTreeMap::new(),
        values: 0,
    };
    loop {
        let event = reader.next()?;
        if matches!(event, Event::StreamEnd) {
            return Ok(Value::Null);
        }
        if !matches!(event, Event::StreamStart | Event::DocumentStart(_)) {
            return reader.value(event, DEPTH_MAX);
        }
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, String> {
        let next = self.events.next().ok_or("it ends in the middle")?;
        next.map(|(event, _)| event).map_err(|why| why.to_string())
    }

    /// The value that begins with this event.
    fn value(&mut self, first: Event<'a>, depth: u32) -> Result<Value, String> {
        let depth = depth.checked_sub(1);
        let depth = depth.ok_or_else(|| format!("it is deeper than {DEPTH_MAX} levels"))?;
        let (anchor, value) = match first {
            Event::Scalar(text, style, anchor, _) => (anchor, scalar(&text, style)),
            Event::SequenceStart(anchor, _) => (anchor, self.sequence(depth)?),
            Event::MappingStart(anchor, _) => (anchor, self.mapping(depth)?),
            Event::Alias(anchor) => {
                let named = self.anchors.get(&anchor).cloned();
                let named = named.ok_or("an alias stands for something around it")?;
                self.values += size(&named);
                (0, named)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err("it ends in the middle".to_owned()),
        };
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(format!("it has more than {VALUES_MAX} values"));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn sequence(&mut self, depth: u32) -> Result<Value, String> {
        let mut items = Vec::new();
        loop {
            let first = self.next()?;
            if first == Event::SequenceEnd {
                return Ok(Value::Array(items));
            }
            items.push(self.value(first, depth)?);
        }
    }

    fn mapping(&mut self, depth: u32) -> Result<Value, String> {
        let mut members = Map::new();
        loop {
            let name = self.next()?;
            if name == Event::MappingEnd {
                return Ok(Value::Object(members));
            }
            let Event::Scalar(name, ..) = name else {
                return Err("a name is not a text".to_owned());
            };
            let first = self.next()?;
            members.insert(name.into_owned(), self.value(first, depth)?);
        }
    }
}

/// Quoted, it is a text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::from(text);
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Value::from(whole);
    }
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    let number = text.parse().ok().filter(|_| begins);
    let number = number.and_then(Number::from_f64);
    number.map_or_else(|| Value::from(text), Value::Number)
}

/// How many values it is, with all that is in it.
fn size(value: &Value) -> usize {
    let within: usize = match value {
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.values().map(size).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    within + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn document_is_the_value_that_it_stands_for() {
        let text = "openapi: 3.1.0\n---\nsecond: 1\n";
        assert_eq!(value(text).unwrap(), json!({"openapi": "3.1.0"}));
        let text = "
responses: {200: ok, '404': \"404\"}
order: &order
  type: object
  required: [id, ~]
  minimum: -1.5
  nullable: yes
again: *order
note: |
  two
  lines
";
        let order =
            json!({"type": "object", "required": ["id", null], "minimum": -1.5, "nullable": "yes"});
        let expected = json!({
            "responses": {"200": "ok", "404": "404"}, "order": order, "again": order, "note": "two\nlines\n"
        });
        assert_eq!(value(text).unwrap(), expected);
        assert_eq!(value("").unwrap(), Value::Null);
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let laughs =
            (1..9).map(|n| format!("a{n}: &a{n} [{}]\n", format!("*a{},", n - 1).repeat(9)));
        let bomb = format!("a0: &a0 [lol]\n{}", laughs.collect::<String>());
        assert!(value(&bomb).unwrap_err().contains("more than"), "{bomb}");
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert!(value(&deep).is_err());
        assert!(value("a: [1").is_err());
    }
}
