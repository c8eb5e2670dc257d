//! The recorded answer, exactly as it is: JSON is only broken into lines, never read into numbers and written anew.

use crate::page::Screen;
use crate::page::format::bytes;
use crate::page::screen::{header_lines, hidden_body};
use bytes::Bytes;
use http::StatusCode;
use semel::Outcome;
use semel::outcome::Body;
use semel::protocol::{Record, State};
use semel_ui::{Markup, Tone, copyable_text_and, html, note};
use serde_json::value::RawValue;

/// What is shown of a body at the most; the download has all of it.
const SHOWN_BYTES_MAX: usize = 64 * 1024;

/// The answer, if there is one, with what can be done with it.
pub(super) fn answer(
    screen: &Screen,
    record: &Record,
    route: &str,
    download: &Markup,
) -> Option<Markup> {
    let title = match record.state {
        State::Succeeded | State::Failed => "The recorded answer",
        State::Running | State::Waiting | State::Parked => "What the last run left behind",
    };
    let result = record.result.as_ref()?;
    Some(html! {
        h2 { (title) }
        @if let Some(hears) = hears(record.state) { p.lead { (hears) } }
        @match Outcome::decode(result) {
            Ok(outcome) => (whole(screen, &outcome, route, download)),
            Err(error) => {
                (note(Tone::Failed, &html! { "It cannot be read: " (error) }))
                div.bar { (download) }
            },
        }
    })
}

/// What duplicates hear, if it is settled: a client this answer, a broker only that it need not come again.
const fn hears(state: State) -> Option<&'static str> {
    match state {
        State::Succeeded => Some("A client that asks again hears this answer, and a broker 200."),
        State::Failed => Some(
            "A client that asks again hears this answer; a broker hears 200: the first delivery was kept as a letter.",
        ),
        State::Running | State::Waiting | State::Parked => None,
    }
}

fn whole(screen: &Screen, outcome: &Outcome, route: &str, download: &Markup) -> Markup {
    let shows = screen.state.shows_bodies(route);
    let headers = outcome.headers.iter();
    let headers = headers.flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let mut lines = vec![status_line(outcome.status)];
    lines.extend(header_lines(headers, shows));
    let head = lines.join("\n");
    match &outcome.body {
        Body::NotKept => html! {
            (copyable_text_and("The recorded answer", &head, download))
            p.lead { "Its body was not kept." }
        },
        Body::Kept(body) if !shows => html! {
            (copyable_text_and("The recorded answer", &head, download))
            (hidden_body(screen, body.len() as u64))
        },
        Body::Kept(body) => html! {
            (copyable_text_and("The recorded answer", &format!("{head}\n\n{}", text(body)), download))
        },
    }
}

fn status_line(status: u16) -> String {
    let reason = StatusCode::from_u16(status)
        .ok()
        .and_then(|it| it.canonical_reason());
    format!("{status} {}", reason.unwrap_or_default())
}

fn text(body: &Bytes) -> String {
    match std::str::from_utf8(body) {
        Ok(text) => match beginning(text) {
            Some(beginning) => beginning,
            None => indented(text).unwrap_or_else(|| text.to_owned()),
        },
        Err(_) => format!("{} of binary data", bytes(body.len() as u64)),
    }
}

/// The beginning of a text that is too long to be shown.
pub(in crate::page) fn beginning(text: &str) -> Option<String> {
    let begin = text.get(..text.floor_char_boundary(SHOWN_BYTES_MAX))?;
    let size = bytes(text.len() as u64);
    let is_long = text.len() > SHOWN_BYTES_MAX;
    is_long.then(|| format!("{begin}\n… {size} in all: download it to see the rest"))
}

/// JSON in lines, every value written as it came; `None` for what is not JSON.
pub(in crate::page) fn indented(text: &str) -> Option<String> {
    let _: &RawValue = serde_json::from_str(text).ok()?;
    let (mut out, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if quoted {
            out.push(c);
            quoted = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            continue;
        }
        match c {
            '"' => {
                quoted = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while rest.next_if(|it| it.is_ascii_whitespace()).is_some() {}
                match rest.next_if(|it| matches!(it, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    Some(out)
}

/// Deeper than this nothing moves to the right any more: a body of brackets alone would grow by the square of its length.
const INDENT_MAX: usize = 32;

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth.min(INDENT_MAX)));
}

/// A word as a shell takes it.
pub(in crate::page) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_broken_into_lines_and_nothing_else() {
        let text =
            r#"{"cents":90000000000000001,"rate":1.0e0,"a":[ ],"s":"x\",{ y","o":{"b":[1,null]}}"#;
        let lines = indented(text).unwrap();
        assert_eq!(
            lines,
            "{\n  \"cents\": 90000000000000001,\n  \"rate\": 1.0e0,\n  \"a\": [],\n  \"s\": \"x\\\",{ y\",\n  \"o\": {\n    \
             \"b\": [\n      1,\n      null\n    ]\n  }\n}"
        );
        let squeezed: String = lines.split('\n').map(str::trim_start).collect();
        assert_eq!(squeezed.replace(": ", ":"), text.replace("[ ]", "[]"));
        assert_eq!(indented("not json"), None);
        assert_eq!(indented("7").as_deref(), Some("7"));
    }

    #[test]
    fn brackets_alone_do_not_fill_the_page() {
        let text = format!("{}{}", "[1,".repeat(100), "1") + &"]".repeat(100);
        let lines = indented(&text).unwrap();
        let longest = lines.lines().map(str::len).max();
        assert!(longest <= Some(2 * INDENT_MAX + 3), "{longest:?}");
    }

    #[test]
    fn a_shell_takes_a_quoted_word_as_it_is() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
