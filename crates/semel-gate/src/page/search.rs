//! Search: one box for whatever somebody has in hand. A key, a part of one (an order's number), a task, a message, a
//! trace, or a letter. One hit leads straight to it.

use super::Screen;
use super::format::shortened;
use super::letters::letter_id;
use super::rows::Row;
use super::screen::tone;
use crate::find::{self, KEYS_LOOKED_MAX, Question, named_parts};
use crate::operate::Refused;
use axum::extract::Query;
use axum::response::Response;
use semel::Key;
use semel::letter::LetterId;
use semel::store::StoreExt;
use semel_ui::{Column, Markup, Tone, html, note, state, table};
use serde::Deserialize;
use serde_json::Value;

/// The longest text that is searched for.
const TEXT_BYTES_MAX: usize = 2048;

/// How many hits are shown.
const HITS_MAX: usize = 100;

#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    q: String,
}

/// What was found.
#[derive(Debug, Default)]
struct Found {
    keys: Vec<Key>,
    letters: Vec<LetterId>,
    /// Whether there may be more, in letters that were not opened.
    partial: bool,
    /// Whether there may be more, under keys that were not looked for.
    keys_left: bool,
}

const HITS: [Column<'_>; 4] = [
    Column::text("about"),
    Column::text("route"),
    Column::text("state"),
    Column::text("key"),
];

pub(super) async fn show(screen: Screen, Query(asked): Query<Asked>) -> Response {
    let text = asked.q.trim();
    if text.is_empty() {
        return screen.show_found("Search", "", &hints(&screen));
    }
    if text.len() > TEXT_BYTES_MAX {
        let what = "search for a key, an order, a task, a message or a trace";
        return screen.refuse(
            "",
            &Refused::mistaken("this is too long to be a name", what),
        );
    }
    match find(&screen, text).await {
        Ok(found) => match (found.keys.as_slice(), found.letters.as_slice()) {
            ([key], []) => screen.lead_to(&format!("records/{key}")),
            ([], [letter]) => screen.lead_to(&format!("letters/{letter}")),
            _ => match hits(&screen, text, &found).await {
                Ok(main) => screen.show_found("Search", text, &main),
                Err(why) => screen.refuse("", &why),
            },
        },
        Err(why) => screen.refuse("", &why),
    }
}

/// The quick ways first: letters are opened one by one only when nothing else knows the name.
async fn find(screen: &Screen, text: &str) -> Result<Found, Refused> {
    let mut found = Found::default();
    let mut candidates = candidates(screen, text);
    found.keys_left = candidates.len() > KEYS_LOOKED_MAX;
    candidates.truncate(KEYS_LOOKED_MAX);
    for key in &candidates {
        if is_known(screen, key).await? {
            found.add(*key);
        }
    }
    if let Some(gate) = &screen.state.gate {
        for delivery in gate.recent.find(text) {
            delivery.key.into_iter().for_each(|key| found.add(key));
            found
                .letters
                .extend(delivery.letter.filter(|_| delivery.key.is_none()));
        }
    }
    for key in screen.operator("").indexed(text).await? {
        found.add(key);
    }
    if found.is_empty()
        && let Some(letter) = by_letter_id(screen, text).await?
    {
        found.letters.push(letter);
    }
    if found.is_empty() {
        found.in_letters(screen, candidates, text).await?;
    }
    Ok(found)
}

/// The keys that the text may stand for.
fn candidates(screen: &Screen, text: &str) -> Vec<Key> {
    match &screen.state.gate {
        Some(gate) => {
            let routes = gate.settings.routes.iter();
            find::keys_of_text(&gate.settings.namespace, routes, text)
        }
        None => match text.parse() {
            Ok(key) => vec![key],
            Err(_) => without_rules(screen, text),
        },
    }
}

/// The keys of `route name=value`, as the library and Python name their work.
fn without_rules(screen: &Screen, text: &str) -> Vec<Key> {
    let mut words = text.split_whitespace();
    let question = Question {
        route: words.next().map(str::to_owned),
        parts: named_parts(words).unwrap_or_default(),
        ..Question::default()
    };
    // Other text stands for something else.
    question
        .keys_unruled(&screen.state.namespace)
        .unwrap_or_default()
}

async fn is_known(screen: &Screen, key: &Key) -> Result<bool, Refused> {
    if screen.state.store().look(key).await?.is_some() {
        return Ok(true);
    }
    let gate = screen.state.gate.as_ref();
    Ok(gate.is_some_and(|gate| !gate.recent.of_key(key).is_empty()))
}

async fn by_letter_id(screen: &Screen, text: &str) -> Result<Option<LetterId>, Refused> {
    let text = text.to_ascii_lowercase();
    let looks_so = (8..=64).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_hexdigit());
    if !looks_so {
        return Ok(None);
    }
    match screen.operator("").find(&text).await {
        Ok(letter) => Ok(Some(letter.id)),
        Err(refused) if refused.status.is_client_error() => Ok(None),
        Err(refused) => Err(refused),
    }
}

// === Showing ===

async fn hits(screen: &Screen, text: &str, found: &Found) -> Result<Markup, Refused> {
    let mut rows = Vec::new();
    for key in found.keys.iter().take(HITS_MAX) {
        rows.push(row(screen, *key).await?);
    }
    Ok(html! {
        h1 { "Search" }
        @if found.is_empty() {
            p.lead { "Nothing is known of " strong { (text) } "." }
            (note(Tone::Busy, &html! {
                @if found.partial { p { "Not all letters were opened to look for it." } }
                @if found.keys_left { (keys_left()) }
                p { "Names of tasks, messages and traces are known of what this gate remembers and what letters keep; with "
                    code { "index = true" } ", for as long as the work is remembered. Of a key with several parts write all of \
                    them: " code { "bucket=b object=o" } "." }
            }))
            (hints(screen))
        } @else {
            p.lead { "Several pieces of work are known by " strong { (text) } "." }
            @if found.keys_left { (note(Tone::Busy, &keys_left())) }
            @if !rows.is_empty() { (table("Records found", &HITS, &rows)) }
            @if !found.letters.is_empty() {
                h2 { "Letters without a key" }
                ul {
                    @for id in found.letters.iter().take(HITS_MAX) {
                        @let id = id.to_string();
                        li { a href=(screen.to(&format!("letters/{id}"))) { "letter " (shortened(&id, 12)) } }
                    }
                }
            }
        }
    })
}

/// There are more routes than one search looks at.
fn keys_left() -> Markup {
    html! {
        p { "It may stand for more keys than one search looks for (" (KEYS_LOOKED_MAX) "): ask for one route, "
            code { "semel find --route NAME PART=VALUE" } "." }
    }
}

async fn row(screen: &Screen, key: Key) -> Result<Vec<Markup>, Refused> {
    let text = key.to_string();
    Ok(match screen.state.store().look(&key).await? {
        Some(record) => {
            let row = Row::new(key, record);
            vec![
                row.about(screen),
                html! { (row.route()) },
                html! { (state(tone(row.record.state), row.record.state.word())) },
                shortened(&text, 15),
            ]
        }
        None => vec![
            html! { a href=(screen.to(&format!("records/{text}"))) { (shortened(&text, 15)) } },
            html! {},
            html! { (state(Tone::Busy, "not remembered")) },
            shortened(&text, 15),
        ],
    })
}

fn hints(screen: &Screen) -> Markup {
    html! {
        h2 { "What can be searched for" }
        ul {
            @if screen.state.gate.is_some() {
                li { "an order, or whatever a route's key rule reads: " code { "A-1" } }
                li { "all parts of a rule that has several: " code { "bucket=b object=o" } }
                li { "what a client sent as its " code { "Idempotency-Key" } ": while this gate remembers the delivery, as it is; \
                    later with its caller, " code { "key-1 caller=mobile-2" } ", and " code { "method=PUT" } " if not POST" }
            } @else {
                li { "what names the work, after its route (in Python, the function's name): "
                    code { "shop.charge order_id=A-1" } }
            }
            li { "a key: " code { "v1_…" } }
            li { "a task, message, event or trace, as its sender calls it" }
            li { "a letter, by the first 8 digits of its id or more" }
        }
        @if screen.state.gate.is_none() {
            p.lead { "Without a gate no route's rule is known here: write all parts of the key, in the order of its rule. The \
                namespace is " code { (screen.state.namespace) } "." }
        }
    }
}

// === impl Found ===

impl Found {
    fn add(&mut self, key: Key) {
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }

    const fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.letters.is_empty()
    }

    /// The letters of these keys, and what letters keep, opened one by one.
    async fn in_letters(
        &mut self,
        screen: &Screen,
        candidates: Vec<Key>,
        text: &str,
    ) -> Result<(), Refused> {
        let told = screen
            .operator("")
            .find_work(candidates, Some(text))
            .await?;
        let all = |name: &str, member: &'static str| -> Vec<String> {
            let items = told.get(name).and_then(Value::as_array);
            let texts = items.into_iter().flatten();
            let texts = texts.filter_map(|it| it.get(member)?.as_str().map(str::to_owned));
            texts.collect()
        };
        let keys = all("works", "key");
        keys.iter()
            .filter_map(|key| key.parse().ok())
            .for_each(|key| self.add(key));
        let letters = all("letters", "id");
        self.letters
            .extend(letters.iter().filter_map(|id| letter_id(id)));
        self.partial = told.get("letters_all_read").and_then(Value::as_bool) == Some(false);
        Ok(())
    }
}
