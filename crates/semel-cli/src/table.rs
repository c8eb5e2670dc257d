//! Tables and lists of JSON, for people.

use semel_gate::invisible::is_invisible;
use serde_json::Value;

/// A column: its heading, and the member it shows.
pub(crate) type Column = (&'static str, &'static str);

/// Aligned columns with a heading; nothing at all for no rows.
pub(crate) fn table(columns: &[Column], rows: &[Value]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heading = columns.iter().map(|(heading, _)| (*heading).to_owned());
    let mut lines: Vec<Vec<String>> = vec![heading.collect()];
    for row in rows {
        let cells = columns
            .iter()
            .map(|(_, member)| text(row.get(member).unwrap_or(&Value::Null)));
        lines.push(cells.collect());
    }
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns.len()).map(width).collect();
    lines.iter().map(|line| aligned(line, &widths)).collect()
}

fn aligned(line: &[String], widths: &[usize]) -> String {
    let mut out = String::new();
    for (cell, width) in line.iter().zip(widths) {
        out.push_str(&format!("{cell:width$}  "));
    }
    format!("{}\n", out.trim_end())
}

/// One line per member, in the order given; absent ones are left out.
pub(crate) fn members(names: &[Column], object: &Value) -> String {
    let width = names.iter().map(|(heading, _)| heading.len()).max();
    let width = width.unwrap_or(0);
    names
        .iter()
        .filter_map(|(heading, member)| {
            let value = object.pointer(member).filter(|value| !value.is_null())?;
            Some(format!("{heading:width$}  {}\n", text(value)))
        })
        .collect()
}

/// A value without quotes. What a stranger wrote must not move the cursor of a terminal.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => harmless(text),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            harmless(&value.to_string())
        }
    }
}

/// The text of a member; empty when it is not there.
pub(crate) fn member(object: &Value, name: &str) -> String {
    object.get(name).map(text).unwrap_or_default()
}

/// The same on many lines.
pub(crate) fn lines(text: &str) -> String {
    text.lines()
        .map(|line| format!("{}\n", harmless(line)))
        .collect()
}

/// The same text, with what nobody sees spelled out: it could move the cursor, or turn the line around.
pub(crate) fn harmless(text: &str) -> String {
    let shown = |c: char| {
        if is_invisible(c) {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [json!({"a": "x", "b": 1}), json!({"a": "long", "b": null})];
        let said = table(&[("A", "a"), ("B", "b")], &rows);
        assert_eq!(said, "A     B\nx     1\nlong  -\n");
        assert_eq!(table(&[("A", "a")], &[]), "");
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(text(&json!("a\u{1b}[2Jb\n")), "a\\u{1b}[2Jb\\n");
        assert_eq!(text(&json!("a\u{202e}b\u{200b}")), "a\\u{202e}b\\u{200b}");
        assert_eq!(text(&json!(["\u{202e}"])), "[\"\\u{202e}\"]");
        assert_eq!(lines("a\r\nb\u{7}"), "a\nb\\u{7}\n");
    }
}
