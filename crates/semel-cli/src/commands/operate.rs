//! How answers to an operator are printed: data on stdout, talk on stderr.

use crate::out::{to_stderr, to_stdout};
use crate::table::{lines, member, text};
use semel_gate::operate::Refused;
use serde_json::Value;

type Answer = anyhow::Result<Value>;

/// Prints an answer as JSON, or as `shown` makes it readable. With `--json` a refusal is data, too.
pub(crate) fn printed(
    json: bool,
    answer: Answer,
    shown: impl FnOnce(&Value) -> String,
) -> anyhow::Result<()> {
    match answer {
        Ok(answer) if json => to_stdout(&format!("{answer}\n")),
        Ok(answer) => to_stdout(&shown(&answer)),
        Err(error) => {
            if let Some(refused) = error.downcast_ref::<Refused>()
                && json
            {
                to_stdout(&format!("{}\n", refused.json()))?;
            }
            Err(error)
        }
    }
}

/// Prints a list.
pub(crate) fn found(
    json: bool,
    answer: Answer,
    name: &str,
    table: impl FnOnce(&[Value]) -> String,
) -> anyhow::Result<()> {
    printed(json, answer, |answer| {
        let rows = answer.get(name).and_then(Value::as_array);
        let rows = rows.map_or(&[][..], Vec::as_slice);
        if rows.is_empty() {
            to_stderr(&format!("no {name}\n"));
        }
        if answer.get("next").is_some_and(Value::is_string) {
            to_stderr(&format!(
                "there are more {name}: ask for them with --limit\n"
            ));
        }
        table(rows)
    })
}

/// Prints what an act did.
pub(crate) fn acted(json: bool, answer: Answer) -> anyhow::Result<()> {
    printed(json, answer, |answer| {
        let word = |name: &str| member(answer, name);
        let what = match answer.get("letter") {
            Some(letter) => format!("letter {}", text(letter)),
            None => format!("record {}", word("key")),
        };
        let became = match answer.get("outcome") {
            Some(outcome) => text(outcome),
            None => format!("{} -> {}", word("before"), word("after")),
        };
        let promise = answer.get("promise").map(text);
        let promise = promise.map_or_else(String::new, |promise| format!("promise {promise}\n"));
        format!(
            "{}  {what}  {became}\n{}\n{promise}",
            word("act"),
            word("says")
        )
    })
}

/// A body below its heads, one empty line apart.
pub(crate) fn body(body: &Value) -> String {
    let part = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    if part("encoding") == "base64" {
        format!("\nbase64:{}\n", part("text"))
    } else {
        format!("\n{}", lines(part("text")))
    }
}
