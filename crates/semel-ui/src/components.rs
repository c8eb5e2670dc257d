//! The parts that screens are made of. Everything that is handed in is escaped.

mod act;
mod live;
mod moment;
mod table;
mod tile;

pub use act::Act;
pub use live::{live, part};
pub use moment::{Moment, timeline};
pub use table::{Column, Rows, table};
pub use tile::{Tile, tiles};

use maud::{Markup, html};

/// What something means, which is a colour, and always a word beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Took effect; all is well.
    Ran,
    /// Answered from the record.
    Replayed,
    /// Will be tried again.
    Waiting,
    /// Nobody knows whether it took effect.
    Doubt,
    /// A person must look.
    Parked,
    /// Failed for good.
    Failed,
    /// Turned away before anything ran.
    Refused,
    /// Under way.
    Busy,
}

/// A state, by its word and its colour.
#[must_use]
pub fn state(tone: Tone, word: &str) -> Markup {
    html! { span class={ "state " (tone.word()) } { (word) } }
}

/// Something that a person should read.
#[must_use]
pub fn note(tone: Tone, what: &Markup) -> Markup {
    html! { div class={ "note " (tone.word()) } role="note" { div.inside { (what) } } }
}

/// Instead of a list of nothing: what it would have, and what to do.
#[must_use]
pub fn empty(what: &Markup) -> Markup {
    html! { div.empty { (what) } }
}

/// Names and values, in columns where there is room.
#[must_use]
pub fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts { div { dt { (name) } dd { (value) } } }
        }
    }
}

/// A value in full, with a button to copy it where there is JavaScript.
#[must_use]
pub fn copyable(value: &str) -> Markup {
    html! { span.copyable { code { (breakable(value)) } button.quiet.copy hidden type="button" data-copy=(value) { "Copy" } } }
}

/// A name with slashes, which a narrow column breaks behind them instead of within a word.
#[must_use]
pub fn breakable(name: &str) -> Markup {
    html! { @for (place, part) in name.split_inclusive('/').enumerate() { @if place > 0 { wbr; } (part) } }
}

/// A text in full, in lines as they are, with a button to copy it.
#[must_use]
pub fn copyable_text(label: &str, text: &str) -> Markup {
    copyable_text_and(label, text, &html! {})
}

/// The same, with what else can be done with it beside the button. One line is broken where it must be.
#[must_use]
pub fn copyable_text_and(label: &str, text: &str, more: &Markup) -> Markup {
    let is_line = !text.contains('\n');
    html! {
        pre class=[is_line.then_some("line")] tabindex="0" role="region" aria-label=(label) { (text) }
        div.bar { button.copy hidden type="button" data-copy=(text) { "Copy" } (more) }
    }
}

/// The inside of a page that says why something was not done, and what to do.
#[must_use]
pub fn refused(what: &str, what_to_do: &str, back: &str) -> Markup {
    html! {
        h1.says { (what) }
        (note(Tone::Failed, &html! { p.says { (what_to_do) } }))
        p { a href=(back) { "Back" } }
    }
}

// === impl Tone ===

impl Tone {
    /// The name of its class.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Replayed => "replayed",
            Self::Waiting => "waiting",
            Self::Doubt => "doubt",
            Self::Parked => "parked",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Busy => "busy",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKUP: &str = r#""><script>alert(1)</script>"#;

    /// Whatever a delivery says stays text, in whichever component it is shown.
    #[test]
    fn markup_in_values_stays_text() {
        let text = html! { (MARKUP) };
        let visitor = crate::visitor::tests::anybody();
        let shown = [
            state(Tone::Ran, MARKUP),
            note(Tone::Doubt, &text),
            facts(&[(MARKUP, text.clone())]),
            copyable(MARKUP),
            copyable_text(MARKUP, MARKUP),
            live(MARKUP, MARKUP, 1, &part(MARKUP, &text)),
            Rows::live(MARKUP, MARKUP).table(MARKUP, &[], &[]),
            refused(MARKUP, MARKUP, MARKUP),
            tiles(
                MARKUP,
                &[Tile::new(MARKUP, MARKUP).about(MARKUP).href(MARKUP)],
            ),
            timeline(&[Moment::new(MARKUP, Tone::Ran, text.clone()).about(MARKUP)]),
            table(MARKUP, &[Column::text(MARKUP)], &[vec![text.clone()]]),
            Act::new(MARKUP, MARKUP, text.clone())
                .hidden(MARKUP, MARKUP)
                .with(text)
                .form(&visitor),
        ];
        for markup in shown {
            let html = markup.into_string();
            assert!(!html.contains("<script"), "{html}");
            assert!(!html.contains(r#"=""><"#), "{html}");
        }
    }
}
