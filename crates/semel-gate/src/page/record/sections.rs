//! What a record's page shows beside its timeline: facts, steps, acts and letters.

use super::Work;
use crate::label::Label;
use crate::page::Screen;
use crate::page::format::{clock, shortened, span, whole};
use semel::clock::Time;
use semel::letter::{LetterHead, Standing};
use semel::protocol::State;
use semel_ui::{Markup, Tone, copyable, facts, html, state};

// === impl Work ===

impl Work {
    pub(super) fn facts(&self, now: Time) -> Markup {
        let label = &self.label;
        let text = |text: &str| html! { @if text.is_empty() { "–" } @else { (text) } };
        let mut rows = vec![
            ("route", text(self.route())),
            ("delivered by", text(&label.source)),
            ("first run at", text(&label.gate)),
            ("first delivery", text(&label.id)),
            ("from", text(&label.from)),
            ("trace", text(label.trace_id().unwrap_or_default())),
        ];
        if let Some(record) = &self.record {
            let kept = match record.state {
                State::Parked => "until somebody decides".into(),
                State::Running | State::Succeeded | State::Failed | State::Waiting => {
                    format!("{} left", span(record.expires_at.since(now)))
                }
            };
            rows.push(("runs", html! { (record.attempts) }));
            rows.push(("ended in doubt", html! { (record.doubts) }));
            rows.push(("fence", html! { code { (record.fence) } }));
            rows.push(("kept", html! { (kept) }));
        }
        html! {
            div.card {
                (facts(&rows))
                dl {
                    @for (name, value) in &label.parts { dt { (name) } dd { (copyable(value)) } }
                    dt { "key" } dd { (copyable(&self.key.to_string())) }
                    @if let Some(record) = &self.record {
                        dt { "fingerprint" } dd { (copyable(&record.fingerprint.to_string())) }
                        @if label == &Label::default() && !record.label.is_empty() {
                            dt { "label" } dd { code { (String::from_utf8_lossy(&record.label)) } }
                        }
                    }
                }
            }
        }
    }

    pub(super) fn steps(&self) -> Markup {
        html! {
            @if !self.steps.is_empty() {
                h2 { "Steps" }
                ul {
                    @for (name, step) in &self.steps {
                        li {
                            b { (name) } ": "
                            @match &step.result {
                                Some(_) => (state(Tone::Ran, "done")),
                                None => (state(Tone::Doubt, "begun, and not said to be done")),
                            }
                            " " small { "by the run with fence " (step.fence) }
                        }
                    }
                }
            }
        }
    }

    pub(super) fn acts(&self, now: Time) -> Markup {
        html! {
            @if !self.acts.is_empty() {
                h2 { "Acts on it, through this process" }
                ul {
                    @for act in &self.acts {
                        li {
                            time.mono datetime=(whole(act.at)) { (clock(act.at, now)) } " " b { (act.act) } ": "
                            (act.before) " → " (act.after) ", by " (act.who.by)
                            @if !act.who.why.is_empty() { ": " q { (act.who.why) } }
                        }
                    }
                }
            }
        }
    }

    /// Whether it is a letter of this very work, which has succeeded since.
    fn has_done(&self, letter: &LetterHead) -> bool {
        letter.work_key() == self.key
            && letter.standing(self.record.as_ref()) == Standing::Succeeded
    }

    pub(super) fn letters(&self, screen: &Screen) -> Markup {
        html! {
            @if !self.letters.is_empty() {
                h2 { "Letters" }
                ul {
                    @for letter in &self.letters {
                        @let id = letter.id.to_string();
                        li {
                            a href=(screen.to(&format!("letters/{id}"))) { "letter " (shortened(&id, 12)) }
                            @if self.has_done(letter) { ": closed, its work has succeeded" }
                        }
                    }
                }
            }
        }
    }
}
