//! What surrounds every screen.

use crate::assets::Asset;
use crate::headers::protect;
use crate::visitor::{Role, Visitor};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use maud::{DOCTYPE, Markup, html};

/// htmx needs neither `eval` nor a style of its own, asks this origin only, and keeps no page in the browser's storage.
const HTMX: &str = r#"{"allowEval":false,"allowScriptTags":false,"includeIndicatorStyles":false,"selfRequestsOnly":true,"historyCacheSize":0,"refreshOnHistoryMiss":true}"#;

/// What surrounds one screen.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The screen's name: `Letters`, `charge · A-1`.
    pub title: &'a str,
    /// What is looked at, behind the brand: `shop · gate-7`.
    pub place: &'a str,
    /// The other screens.
    pub nav: &'a [NavItem],
    /// The `href` of the one that is shown, or that the shown one belongs to.
    pub current: &'a str,
    /// The box to find things, if there is one: what can be asked for.
    pub search: Option<Search<'a>>,
    /// Who looks.
    pub visitor: &'a Visitor,
}

/// The one box that finds things; it asks `search?q=`.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// What can be asked for.
    pub hint: &'a str,
    /// What was asked for.
    pub query: &'a str,
}

/// A way to another screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NavItem {
    /// Its path below the root: `letters`.
    pub href: &'static str,
    /// Its name.
    pub label: &'static str,
    /// How much there is for a person to do.
    pub badge: Option<u64>,
}

/// A whole page, with its headers.
#[must_use]
pub fn page(frame: &Frame<'_>, main: &Markup) -> Response {
    page_with(StatusCode::OK, frame, main)
}

/// A whole page that answers with this status.
#[must_use]
pub fn page_with(status: StatusCode, frame: &Frame<'_>, main: &Markup) -> Response {
    fragment_with(status, &frame.render(main))
}

/// A part of a page, for htmx, with the same headers.
#[must_use]
pub fn fragment(part: &Markup) -> Response {
    fragment_with(StatusCode::OK, part)
}

/// Look there instead, at a relative address: after an act, so that a reload does not repeat it.
#[must_use]
pub fn see(address: &str) -> Response {
    let address = HeaderValue::try_from(address).unwrap_or(HeaderValue::from_static("./"));
    (StatusCode::SEE_OTHER, [(LOCATION, address)]).into_response()
}

fn fragment_with(status: StatusCode, markup: &Markup) -> Response {
    let mut response = (status, markup.0.clone()).into_response();
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    protect(response.headers_mut());
    response
}

// === impl NavItem ===

impl NavItem {
    /// Without a badge.
    #[must_use]
    pub const fn new(href: &'static str, label: &'static str) -> Self {
        Self {
            href,
            label,
            badge: None,
        }
    }

    /// With a badge, unless there is nothing.
    #[must_use]
    pub const fn count(mut self, count: u64) -> Self {
        self.badge = if count == 0 { None } else { Some(count) };
        self
    }
}

// === impl Frame ===

impl Frame<'_> {
    fn render(&self, main: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                (self.head())
                body {
                    a.skip href="#main" { "Skip to the content" }
                    (self.header())
                    main #main tabindex="-1" { (main) }
                    (self.footer())
                }
            }
        }
    }

    fn head(&self) -> Markup {
        let asset = |asset: Asset| self.visitor.base.to(&asset.path());
        html! {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="htmx-config" content=(HTMX);
                title { (self.title) " · " (self.place) " · semel" }
                link rel="icon" href=(asset(Asset::Icon)) type="image/svg+xml";
                link rel="stylesheet" href=(asset(Asset::Style));
                script src=(asset(Asset::Htmx)) defer {}
                script src=(asset(Asset::Script)) defer {}
            }
        }
    }

    fn header(&self) -> Markup {
        let base = self.visitor.base;
        html! {
            header {
                a.brand href=(base) { "semel " span { (self.place) } }
                @if !self.nav.is_empty() {
                    nav aria-label="Screens" {
                        @for item in self.nav {
                            a href=(base.to(item.href)) aria-current=[(item.href == self.current).then_some("page")] {
                                (item.label)
                                @if let Some(badge) = item.badge { " " b { (badge) } }
                            }
                        }
                    }
                }
                @if let Some(search) = self.search {
                    form.find role="search" action=(base.to("search")) {
                        input type="search" name="q" value=(search.query) placeholder=(search.hint)
                            aria-label=(search.hint) autocomplete="off" spellcheck="false";
                    }
                }
            }
        }
    }

    fn footer(&self) -> Markup {
        let visitor = self.visitor;
        html! {
            footer {
                @match (visitor.role, visitor.signed_in) {
                    (Role::View, false) => {}
                    (Role::View, true) => span { "Signed in: " (visitor.who) ". You may look, not act." },
                    (Role::Act, true) => span { "Signed in: " (visitor.who) ". You may look and act." },
                    (Role::Act, false) => span { "Whoever uses this machine may look and act." },
                }
                @if visitor.signed_in {
                    form method="post" action=(visitor.base.to("sign-out")) {
                        (visitor.csrf_field())
                        button.quiet { "Sign out" }
                    }
                }
            }
        }
    }
}
