//! A form that changes something.

use crate::Visitor;
use maud::{Markup, html};

/// How long a reason may be, in characters.
const REASON_CHARS_MAX: u32 = 200;

/// A form that changes something: first what will happen, then the button. It sends `csrf`, and `reason` if it is
/// asked for.
#[derive(Clone, Debug)]
pub struct Act {
    action: String,
    button: String,
    consequence: Markup,
    hidden: Vec<(String, String)>,
    fields: Option<Markup>,
    asks_reason: bool,
    weight: Weight,
}

/// How a button looks.
#[derive(Clone, Copy, Debug)]
enum Weight {
    /// What a screen is for.
    Main,
    /// One of several.
    Plain,
    /// Cannot be taken back.
    Hard,
}

// === impl Act ===

impl Act {
    /// Posts to `action`, a relative address; `consequence` says what then happens.
    #[must_use]
    pub fn new(action: impl Into<String>, button: impl Into<String>, consequence: Markup) -> Self {
        Self {
            action: action.into(),
            button: button.into(),
            consequence,
            hidden: Vec::new(),
            fields: None,
            asks_reason: false,
            weight: Weight::Main,
        }
    }

    /// Sends this, too.
    #[must_use]
    pub fn hidden(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.hidden.push((name.into(), value.into()));
        self
    }

    /// Has these fields, above the button.
    #[must_use]
    pub fn with(mut self, fields: Markup) -> Self {
        self.fields = Some(fields);
        self
    }

    /// Asks why, for the audit.
    #[must_use]
    pub fn reason(mut self) -> Self {
        self.asks_reason = true;
        self
    }

    /// Cannot be taken back.
    #[must_use]
    pub fn hard(mut self) -> Self {
        self.weight = Weight::Hard;
        self
    }

    /// One of several, none of which stands out.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.weight = Weight::Plain;
        self
    }

    /// The form; for those who may only look, what they would have to be.
    #[must_use]
    pub fn form(&self, visitor: &Visitor) -> Markup {
        html! {
            form.acts method="post" action=(self.action) {
                div.consequence { (self.consequence) }
                @if visitor.may_act() {
                    (visitor.csrf_field())
                    @for (name, value) in &self.hidden { input type="hidden" name=(name) value=(value); }
                    @if let Some(fields) = &self.fields { (fields) }
                    @if self.asks_reason {
                        label.field {
                            span { "Reason, for the audit" }
                            input type="text" name="reason" required maxlength=(REASON_CHARS_MAX) autocomplete="off";
                        }
                    }
                    div.bar { button class=[self.weight.class()] { (self.button) } }
                } @else {
                    p.may-not { "You may look, not act: to " q { (self.button) } ", sign in with the token that acts." }
                }
            }
        }
    }
}

// === impl Weight ===

impl Weight {
    fn class(self) -> Option<&'static str> {
        match self {
            Self::Main => Some("act"),
            Self::Plain => None,
            Self::Hard => Some("hard"),
        }
    }
}
