//! One letter: why it was kept, its delivery, what a redrive would do, and doing it.

use super::act::{Fields, field, reason};
use super::format::{bytes, since};
use super::letters::{tone, without_a_gate};
use super::record::beginning;
use super::screen::header_lines;
use super::{Screen, mismatches};
use crate::hiding::shown_path;
use crate::label::Label;
use crate::letters::{StoredDelivery, status};
use crate::operate::Refused;
use crate::redrive::{self, Foreseen, IfUnknown, foresee};
use crate::settings::Source;
use crate::source;
use axum::extract::{Form, Path};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use semel::clock::Time;
use semel::letter::{Letter, LetterHead, LetterId, Reason};
use semel::store::StoreExt;
use semel_ui::{Act, Markup, Tone, copyable, copyable_text, facts, html, note, state};
use std::sync::Arc;

pub(super) async fn show(screen: Screen, Path(id): Path<String>) -> Response {
    let main = look(&screen, &id).await;
    screen.answer("Letter", "letters", main)
}

/// The whole body, as it came.
pub(super) async fn download(screen: Screen, Path(id): Path<String>) -> Response {
    let body = async {
        let letter = screen.operator("").find(&id).await?;
        let stored = StoredDelivery::decode(&letter.delivery)?;
        if screen.state.shows_bodies(&stored.head.route) {
            return Ok((letter.id, stored.body));
        }
        Err(Refused::new(
            StatusCode::FORBIDDEN,
            "bodies of this route are not shown",
            "they are where the route says `show_bodies = true`",
        ))
    };
    match body.await {
        Ok((id, body)) => {
            let name = format!("attachment; filename=\"{id}\"");
            let kind = (CONTENT_TYPE, "application/octet-stream".to_owned());
            ([kind, (CONTENT_DISPOSITION, name)], body).into_response()
        }
        Err(why) => screen.refuse("letters", &why),
    }
}

async fn look(screen: &Screen, id: &str) -> Result<Markup, Refused> {
    let operator = screen.operator("");
    let letter = operator.find(id).await?;
    let id = letter.id.to_string();
    let foreseen = match &screen.state.gate {
        Some(gate) => {
            let foretold = foresee(gate, &operator, &id, IfUnknown::Refuse, screen.now());
            Some(foretold.await?.foreseen)
        }
        None => None,
    };
    let kept = operator.head_of(&letter.id).await?;
    let latest = status::latest_run(operator.letter_store(), &letter.head(Time(0))).await?;
    let differs = compared(screen, &letter).await?;
    Ok(html! {
        p.lead { a href=(screen.to("letters")) { "Letters" } " / " (letter.route) }
        h1 { (letter.route) " · a letter " (state(tone(letter.reason), letter.reason.word())) }
        (delivery(screen, &letter, kept.as_ref(), &latest))
        (differs)
        h2 { "Act" }
        (without_a_gate(screen))
        @if let Some(foreseen) = foreseen { (would(foreseen)) }
        (acts(screen, &id, foreseen))
    })
}

fn delivery(screen: &Screen, letter: &Letter, kept: Option<&LetterHead>, latest: &str) -> Markup {
    let now = screen.now();
    let created = kept.map_or(Time(0), |head| head.created_at);
    let stored = match StoredDelivery::decode(&letter.delivery) {
        Ok(stored) => stored,
        Err(error) => return note(Tone::Failed, &html! { (error) }),
    };
    let key = letter.key.map(|key| key.to_string());
    let shows = screen.state.shows_bodies(&stored.head.route);
    let gate = screen.state.gate.as_ref();
    let private_path = gate.and_then(|gate| gate.private_path(&stored.head.route));
    let lines = header_lines(
        stored
            .head
            .headers
            .iter()
            .map(|(name, value)| (name, value)),
        shows,
    )
    .join("\n");
    let rows = [
        (
            "kept",
            html! { @if created == Time(0) { "–" } @else { (since(created, now)) } },
        ),
        ("latest run", html! { (latest) }),
        (
            "request",
            html! { code { (stored.head.method) " " (shown_path(&stored.head.path, private_path, shows)) } },
        ),
        ("body", html! { (bytes(stored.body.len() as u64)) }),
        ("fence", html! { code { (letter.fence) } }),
        (
            "redriven before",
            html! { (if letter.redriven { "yes" } else { "no" }) },
        ),
        (
            "needs an operator",
            html! { @if letter.head(Time(0)).is_for_operator() { "yes" } @else { "no: its sender may deliver it again" } },
        ),
        (
            "record",
            html! {
                @if let Some(key) = &key { a href=(screen.to(&format!("records/{key}"))) { "open" } } @else { "it has no key" }
            },
        ),
    ];
    html! {
        p.lead { (stored.head.why) }
        div.card {
            (facts(&rows))
            dl {
                dt { "letter" } dd { (copyable(&letter.id.to_string())) }
                @if let Some(key) = &key { dt { "key" } dd { (copyable(key)) } }
            }
        }
        h2 { "Headers, without credentials" }
        (copyable_text("Headers", &lines))
        h2 { "Body" }
        (body(screen, &letter.id, &stored))
    }
}

/// Why nothing is compared where the route keeps payloads.
const NOT_KEPT: &str = "The record has no payload to compare with: it did not fit beside the rest of the label (1 KiB in all), \
                        is no text, or was recorded before the route kept payloads.";
const NOT_OBJECTS: &str = "Only two JSON objects are compared field by field, and these are not.";

/// What a mismatched delivery has other than the record of its key: the parts, and the fields where payloads are kept.
async fn compared(screen: &Screen, letter: &Letter) -> Result<Markup, Refused> {
    let (Reason::Mismatched, Some(key)) = (letter.reason, letter.key) else {
        return Ok(html! {});
    };
    let Some(record) = screen.state.store().look(&key).await? else {
        return Ok(html! {});
    };
    let gate = screen.state.gate.as_ref();
    let route = gate.and_then(|gate| gate.route_state(&letter.route));
    // Without a gate nobody knows what the route says, and a label may be older than what it says now.
    let keeps = match route {
        Some(route) => route.settings.keep_payload,
        None => screen.state.shows_bodies(&letter.route),
    };
    if !keeps {
        return Ok(html! {});
    }
    let was = Label::read(&record.label).and_then(|label| label.payload);
    let compared = match (was, payload(letter)) {
        (Some(was), Some(is)) => mismatches::fields(&was, &is).ok_or(NOT_OBJECTS),
        (Some(_), None) => Err(NOT_OBJECTS),
        (None, _) => Err(NOT_KEPT),
    };
    Ok(match compared {
        Ok(fields) => html! { h2 #compared { "Field by field" } (fields) },
        Err(why) => html! { h2 #compared { "Field by field" } p.lead { (why) } },
    })
}

/// The payload of a kept delivery, as text.
fn payload(letter: &Letter) -> Option<String> {
    let request = StoredDelivery::decode(&letter.delivery)
        .ok()?
        .request()
        .ok()?;
    let sender = source::sender(&Source::ALL, &request);
    let delivery = source::read(sender, &request).ok()?;
    String::from_utf8(delivery.payload.to_vec()).ok()
}

fn body(screen: &Screen, id: &LetterId, stored: &StoredDelivery) -> Markup {
    if !screen.state.shows_bodies(&stored.head.route) {
        return super::screen::hidden_body(screen, stored.body.len() as u64);
    }
    html! {
        @match std::str::from_utf8(&stored.body) {
            Ok(text) => @match beginning(text) {
                Some(beginning) => pre tabindex="0" role="region" aria-label="Body" { (beginning) },
                None => (copyable_text("Body", text)),
            },
            Err(_) => p.lead { "It is not text: " (bytes(stored.body.len() as u64)) " of binary data." },
        }
        div.bar { a.button href=(screen.to(&format!("letters/{id}/body"))) { "Download the body" } }
    }
}

fn would(foreseen: Foreseen) -> Markup {
    note(
        Tone::Doubt,
        &html! { p { b { "Tried out: " } "letters like this one " (foreseen.says()) "." } },
    )
}

fn acts(screen: &Screen, id: &str, foreseen: Option<Foreseen>) -> Markup {
    let unknown = foreseen == Some(Foreseen::NeedsRunAgain);
    let redrive = Act::new(
        screen.to(&format!("letters/{id}/redrive")),
        "Redrive",
        html! {
            p { "Its delivery goes through the normal flow again, and the letter is closed when its run has succeeded. If its \
                work has succeeded already, the letter is only closed." }
        },
    );
    let redrive = redrive.reason().with(html! {
        @if unknown {
            label.field {
                input type="checkbox" name="run_again" value="yes";
                " Run it although nobody knows whether it took effect: if it did, it takes effect " b { "twice" } "."
            }
        }
    });
    let discard = Act::new(
        screen.to(&format!("letters/{id}/discard")),
        "Discard",
        html! {
            p { "This delivery is " b { "gone for good" } ": it is not run. Its record, if there is one, stays as it is." }
        },
    );
    html! {
        div.grid {
            @if foreseen.is_some() { div.card { (redrive.form(&screen.visitor)) } }
            div.card { (discard.reason().hard().form(&screen.visitor)) }
        }
    }
}

// === Doing ===

pub(super) async fn discard(
    screen: Screen,
    Path(id): Path<String>,
    Form(fields): Fields,
) -> Response {
    let told = async { screen.operator(reason(&fields)?).discard(&id).await };
    ended(&screen, told.await.map(drop))
}

/// In a task of its own: whoever closes the page does not leave a run without its letter's end.
pub(super) async fn redrive(
    screen: Screen,
    Path(id): Path<String>,
    Form(fields): Fields,
) -> Response {
    let told = async {
        let operator = screen.operator(reason(&fields)?);
        let Some(gate) = screen.state.gate.clone() else {
            let what = "open the page of a running gate; nothing was done";
            return Err(Refused::conflict("a redrive needs a gate", what));
        };
        let if_unknown = match field(&fields, "run_again") {
            "yes" => IfUnknown::RunAgain,
            _ => IfUnknown::Refuse,
        };
        let tasks = gate.deliveries.clone();
        let task =
            async move { redrive::redrive(&Arc::clone(&gate), &operator, &id, if_unknown).await };
        let failed = |_| Err(Refused::conflict("the gate failed", "look at its log"));
        tasks.spawn(task).await.unwrap_or_else(failed)
    };
    ended(&screen, told.await.map(drop))
}

fn ended(screen: &Screen, told: Result<(), Refused>) -> Response {
    screen.state.census.letters_changed();
    match told {
        Ok(()) => screen.lead_to("letters"),
        Err(why) => screen.refuse("letters", &why),
    }
}
