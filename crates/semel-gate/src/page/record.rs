//! One record: what happened to this piece of work, in a sentence and in order; the answer that duplicates hear; what may be
//! done.

mod answer;
mod sections;
mod sentence;
mod timeline;

pub(super) use answer::{beginning, quoted};

use super::Screen;
use super::act::{self, read_key};
use super::rows::about;
use super::screen::tone;
use crate::audit::AuditedAct;
use crate::label::Label;
use crate::operate::{Refused, set};
use crate::recent::RecentDelivery;
use axum::extract::{Path, Query};
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use semel::Key;
use semel::clock::Time;
use semel::letter::{LetterHead, LetterId, Reason};
use semel::protocol::{Record, StepRecord};
use semel::store::StoreExt;
use semel_ui::{Markup, Tone, copyable_text, html, note, state};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Whether somebody has just acted on it.
#[derive(Debug, Deserialize)]
pub(super) struct After {
    #[serde(default)]
    done: u8,
}

/// All that is known of one piece of work.
struct Work {
    key: Key,
    record: Option<Record>,
    label: Label,
    deliveries: Vec<Arc<RecentDelivery>>,
    steps: Vec<(String, StepRecord)>,
    letters: Vec<LetterHead>,
    acts: Vec<Arc<AuditedAct>>,
}

pub(super) async fn show(
    screen: Screen,
    Path(key): Path<String>,
    Query(after): Query<After>,
) -> Response {
    let work = async { Work::look(&screen, read_key(&key)?).await };
    match work.await {
        Ok(work) => {
            let main = work.page(&screen, after.done > 0);
            screen.show(&work.title(), "search", &main)
        }
        Err(why) => screen.refuse("", &why),
    }
}

/// The same as JSON, to keep or to send on.
pub(super) async fn download(screen: Screen, Path(key): Path<String>) -> Response {
    let told = async {
        let work = Work::look(&screen, read_key(&key)?).await?;
        work.json(&screen).await
    };
    match told.await {
        Ok(told) => {
            let name = format!("attachment; filename=\"{key}.json\"");
            let kind = (CONTENT_TYPE, "application/json".to_owned());
            let body = format!("{told:#}\n");
            ([kind, (CONTENT_DISPOSITION, name)], body).into_response()
        }
        Err(why) => screen.refuse("", &why),
    }
}

// === impl Work ===

impl Work {
    async fn look(screen: &Screen, key: Key) -> Result<Self, Refused> {
        let state = &screen.state;
        let record = state.store().look(&key).await?;
        let deliveries = match &state.gate {
            Some(gate) => gate.recent.of_key(&key),
            None => Vec::new(),
        };
        let acts = state.audit.of_key(&key);
        let steps = match &record {
            Some(_) => state.store().steps(&key).await?,
            None => Vec::new(),
        };
        let label = record.as_ref().and_then(|it| Label::read(&it.label));
        let mut work = Self {
            key,
            label: label.unwrap_or_default(),
            record,
            deliveries,
            steps,
            letters: Vec::new(),
            acts,
        };
        work.letters = match &work.record {
            Some(_) => work.open_letters(screen).await?,
            None => screen.operator("").letters_of_key(&key).await?,
        };
        if work.is_unknown() {
            return Err(Refused::absent(
                "nothing is known of this key",
                "its record has expired, was forgotten, or never was; search for something else",
            ));
        }
        Ok(work)
    }

    fn is_unknown(&self) -> bool {
        let nobody_was_here = self.deliveries.is_empty() && self.acts.is_empty();
        self.record.is_none() && self.letters.is_empty() && nobody_was_here
    }

    /// The letters of its own work, and those that deliveries of it were kept as.
    async fn open_letters(&self, screen: &Screen) -> Result<Vec<LetterHead>, Refused> {
        let own = self.record.iter().flat_map(|record| {
            let reasons = Reason::ALL.into_iter();
            reasons.map(|reason| LetterId::of_key(reason, &self.key, &record.fingerprint))
        });
        let kept = self.deliveries.iter().filter_map(|it| it.letter);
        let mut letters: Vec<_> = own.chain(kept).collect();
        letters.sort_unstable();
        letters.dedup();
        let mut open = Vec::new();
        for id in letters {
            let letter = screen.state.letters.get(&id).await?;
            open.extend(letter.map(|letter| letter.head(Time(0))));
        }
        Ok(open)
    }

    fn route(&self) -> &str {
        let delivered = self.deliveries.first().map(|it| &*it.route);
        let kept = || self.letters.first().map(|it| it.route.as_str());
        match self.label.route.as_str() {
            "" => delivered.or_else(kept).unwrap_or_default(),
            route => route,
        }
    }

    fn title(&self) -> String {
        let about = self.record.as_ref().map(about);
        let about = about.filter(|it| !it.is_empty());
        let delivered = || self.deliveries.first().map(|it| it.about());
        let about = about.or_else(delivered).filter(|it| !it.is_empty());
        let about = about.unwrap_or_else(|| self.key.to_string().chars().take(15).collect());
        match self.route() {
            "" => about,
            route => format!("{route} · {about}"),
        }
    }

    fn page(&self, screen: &Screen, done: bool) -> Markup {
        let now = screen.now();
        html! {
            p.lead { a href=(screen.to("")) { "Overview" } " / record" }
            h1 { (self.title()) " " (self.state()) }
            p.lead { (sentence::sentence(self.record.as_ref(), &self.deliveries, now)) }
            @if done && let Some(act) = self.acts.last() { (did(act)) }
            @if let Some(record) = &self.record { (act::decision(screen, &self.key, record, now)) }
            div.two {
                section {
                    h2 { "What happened (UTC)" }
                    (timeline::timeline(self.record.as_ref(), &self.deliveries, &self.steps, now))
                    (self.remembers(screen))
                    (self.steps())
                    (self.acts(now))
                }
                section {
                    @let download = html! {
                        a.button href=(screen.to(&format!("records/{}/download", self.key))) { "Download as JSON" }
                    };
                    @match self.record.as_ref().and_then(|it| answer::answer(screen, it, self.route(), &download)) {
                        Some(answer) => (answer),
                        None => div.bar { (download) },
                    }
                    (self.letters(screen))
                    h2 { "Facts" }
                    (self.facts(now))
                    h2 { "Ask for it again" }
                    (copyable_text("Copy as curl", &self.curl(screen)))
                    @if let Some(record) = &self.record {
                        (act::forms(screen, &self.key, record))
                    }
                }
            }
        }
    }

    /// What the timeline cannot show.
    fn remembers(&self, screen: &Screen) -> Markup {
        html! {
            @if screen.state.gate.is_none() {
                p.lead { "Deliveries are not here: gates remember them, and this page looks at a store without one." }
            } @else if self.deliveries.is_empty() {
                p.lead {
                    "This gate remembers no delivery of it: they came before its memory reaches back, or to another gate."
                }
            }
        }
    }

    fn state(&self) -> Markup {
        html! {
            @match &self.record {
                Some(record) => {
                    (state(tone(record.state), record.state.word()))
                    @if record.in_doubt && record.state.ending().is_none() { " " (state(Tone::Doubt, "in doubt")) }
                }
                None => (state(Tone::Busy, "not remembered")),
            }
        }
    }

    /// How a program asks for this record.
    fn curl(&self, screen: &Screen) -> String {
        match &screen.state.gate {
            Some(gate) => {
                let (admin, key) = (gate.settings.admin, self.key);
                let token = match gate.settings.admin_token {
                    Some(_) => " -H \"Authorization: Bearer $SEMEL_ADMIN_TOKEN\"",
                    None => "",
                };
                format!(
                    "curl{token} {}",
                    quoted(&format!("http://{admin}/records/{key}?body=true"))
                )
            }
            None => format!(
                "semel records show {} --body --store \"$SEMEL_STORE\"",
                self.key
            ),
        }
    }

    async fn json(&self, screen: &Screen) -> Result<Value, Refused> {
        let shows = screen.state.shows_bodies(self.route());
        let operator = match shows {
            true => screen.operator(""),
            false => screen.operator("").who_views(),
        };
        let mut told = match &self.record {
            Some(_) => operator.record(&self.key, shows).await?,
            None => serde_json::json!({"key": self.key.to_string()}),
        };
        let deliveries = self.deliveries.iter().map(|it| it.json()).collect();
        set(&mut told, "deliveries", Value::Array(deliveries));
        Ok(told)
    }
}

fn did(act: &AuditedAct) -> Markup {
    note(
        Tone::Ran,
        &html! { p { b { "Done: " } (act.act) ", " (act.before) " → " (act.after) ". It is in the audit." } },
    )
}
