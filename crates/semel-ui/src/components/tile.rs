//! One number that matters.

use maud::{Markup, html};

/// One number that matters, what it is, and what else there is to say.
#[derive(Clone, Debug)]
pub struct Tile {
    number: String,
    name: String,
    about: String,
    href: Option<String>,
    mood: Mood,
    trend: Option<Markup>,
}

#[derive(Clone, Copy, Debug)]
enum Mood {
    Calm,
    Good,
    Warn,
}

/// Tiles beside each other.
#[must_use]
pub fn tiles(label: &str, tiles: &[Tile]) -> Markup {
    html! {
        section.tiles aria-label=(label) {
            @for tile in tiles { (tile.render()) }
        }
    }
}

// === impl Tile ===

impl Tile {
    /// A number and what it counts.
    #[must_use]
    pub fn new(number: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            number: number.into(),
            name: name.into(),
            about: String::new(),
            href: None,
            mood: Mood::Calm,
            trend: None,
        }
    }

    /// What else there is to say.
    #[must_use]
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// Leads there, a relative address.
    #[must_use]
    pub fn href(mut self, href: impl Into<String>) -> Self {
        self.href = Some(href.into());
        self
    }

    /// Something to be glad of.
    #[must_use]
    pub fn good(mut self) -> Self {
        self.mood = Mood::Good;
        self
    }

    /// Somebody should act.
    #[must_use]
    pub fn warn(mut self) -> Self {
        self.mood = Mood::Warn;
        self
    }

    /// How it went, a small picture.
    #[must_use]
    pub fn trend(mut self, trend: Markup) -> Self {
        self.trend = Some(trend);
        self
    }

    fn render(&self) -> Markup {
        let class = match self.mood {
            Mood::Calm => "tile",
            Mood::Good => "tile good",
            Mood::Warn => "tile warn",
        };
        let inside = html! {
            span.n { (self.number) }
            span.t { (self.name) }
            @if !self.about.is_empty() { small { (self.about) } }
            @if let Some(trend) = &self.trend { (trend) }
        };
        html! {
            @if let Some(href) = &self.href { a class=(class) href=(href) { (inside) } }
            @else { div class=(class) { (inside) } }
        }
    }
}
