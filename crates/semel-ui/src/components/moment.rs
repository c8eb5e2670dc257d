//! What happened, in order.

use super::Tone;
use maud::{Markup, html};

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Moment {
    at: String,
    whole: Option<String>,
    tone: Tone,
    what: Markup,
    about: String,
}

/// What happened, one below the other.
#[must_use]
pub fn timeline(moments: &[Moment]) -> Markup {
    html! {
        ol.timeline {
            @for moment in moments {
                li class=(moment.tone.word()) {
                    time datetime=[moment.whole.as_deref()] title=[moment.whole.as_deref()] { (moment.at) }
                    span.dot aria-hidden="true" {}
                    div {
                        p { (moment.what) }
                        @if !moment.about.is_empty() { small { (moment.about) } }
                    }
                }
            }
        }
    }
}

// === impl Moment ===

impl Moment {
    /// At a time of day, to the millisecond.
    #[must_use]
    pub fn new(at: impl Into<String>, tone: Tone, what: Markup) -> Self {
        Self {
            at: at.into(),
            whole: None,
            tone,
            what,
            about: String::new(),
        }
    }

    /// The whole time, RFC 3339.
    #[must_use]
    pub fn whole(mut self, at: impl Into<String>) -> Self {
        self.whole = Some(at.into());
        self
    }

    /// What else there is to say.
    #[must_use]
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }
}
