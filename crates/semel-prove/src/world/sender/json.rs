//! The same JSON in other bytes, as another serialiser writes it.

use serde_json::{Map, Value};

/// How whole numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    AsTheyAre,
    /// `1.0` for `1`.
    Decimal,
}

/// The same value with its members in another order, or at least with other spaces. None: it is not an object, or would
/// say the same in the same way.
pub(super) fn rewritten(text: &str, numbers: Numbers) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let members = value.as_object().filter(|members| !members.is_empty())?;
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let reordered = |descending: &bool| {
        let way = object(members, *descending, Numbers::AsTheyAre);
        bare(&way) != bare(text)
    };
    let descending = [true, false].into_iter().find(reordered).unwrap_or(true);
    let as_they_are = object(members, descending, Numbers::AsTheyAre);
    match numbers {
        Numbers::AsTheyAre => Some(as_they_are),
        Numbers::Decimal => {
            Some(object(members, descending, numbers)).filter(|other| *other != as_they_are)
        }
    }
}

fn written(value: &Value, descending: bool, numbers: Numbers) -> String {
    match value {
        Value::Object(members) => object(members, descending, numbers),
        Value::Array(items) => {
            let items = items.iter().map(|item| written(item, descending, numbers));
            format!("[{}]", items.collect::<Vec<_>>().join(" , "))
        }
        Value::Number(number) if numbers == Numbers::Decimal && !number.is_f64() => {
            format!("{number}.0")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn object(members: &Map<String, Value>, descending: bool, numbers: Numbers) -> String {
    let mut names: Vec<&String> = members.keys().collect();
    names.sort();
    if descending {
        names.reverse();
    }
    let members = names.into_iter().filter_map(|name| {
        let value = written(members.get(name)?, descending, numbers);
        Some(format!("{} : {value}", Value::from(name.as_str())))
    });
    format!("{{ {} }}", members.collect::<Vec<_>>().join(" , "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_spaces_differ_and_the_value_does_not() {
        for text in [
            r#"{"a":1,"b":[{"d":"x y","c":2.5}]}"#,
            r#"{"b": true, "a": 1}"#,
        ] {
            let other = rewritten(text, Numbers::AsTheyAre).unwrap();
            let first = |text: &str| text.find("\"a\"") < text.find("\"b\"");
            assert_ne!(first(text), first(&other), "{other}");
            let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(read(text), read(&other));
        }
    }

    #[test]
    fn only_whole_numbers_become_decimals() {
        let other = rewritten(r#"{"a": 1, "b": 2.5}"#, Numbers::Decimal).unwrap();
        assert_eq!(other, r#"{ "b" : 2.5 , "a" : 1.0 }"#);
        assert_ne!(rewritten(r#"{"a": "1"}"#, Numbers::AsTheyAre), None);
        assert_eq!(rewritten(r#"{"a": "1"}"#, Numbers::Decimal), None);
    }

    #[test]
    fn what_is_no_object_cannot_be_rewritten() {
        for text in ["", "[1]", "a=1", "{}"] {
            assert_eq!(rewritten(text, Numbers::AsTheyAre), None, "{text}");
        }
    }
}
