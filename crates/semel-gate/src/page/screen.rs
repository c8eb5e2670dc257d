//! What every screen has: the state that it shows, who looks at it, and its frame.

use super::format::number;
use crate::audit::{Audit, Via, Who};
use crate::bulk::{Desk, Jobs};
use crate::census::{Census, Known};
use crate::gate::Gate;
use crate::hiding::shown_value;
use crate::operate::{Operator, Refused};
use crate::store_page::StorePage;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Redirect, Response};
use http::StatusCode;
use http::request::Parts;
use semel::clock::Time;
use semel::protocol::State;
use semel::store::Letters;
use semel::{Semel, Store};
use semel_ui::{
    Frame, Markup, NavItem, Search, Tone, Visitor, html, note, page, page_with, refused,
};
use std::sync::Arc;
use std::time::Duration;

/// What can be asked for in the one box.
const HINT: &str = "Order, task, message, key or trace";

/// What the page is about: a store, and the gate before it, if there is one.
#[derive(Debug)]
pub(crate) struct PageState {
    pub(crate) semel: Semel,
    pub(crate) letters: Arc<dyn Letters>,
    /// How long other gates answer from memory.
    pub(crate) elsewhere: Duration,
    /// What is looked at, in words.
    pub(crate) place: String,
    /// Which keeps apart those who share a store.
    pub(crate) namespace: String,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) census: Census,
    pub(crate) audit: Arc<Audit>,
    pub(crate) jobs: Jobs,
    /// Whether bodies are shown that no route says anything about.
    pub(crate) show_bodies: bool,
}

/// One look at one screen.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    pub(crate) state: Arc<PageState>,
    pub(crate) visitor: Visitor,
}

// === impl PageState ===

impl PageState {
    /// Of a gate.
    pub(crate) fn of_gate(gate: &Arc<Gate>, place: String) -> Self {
        Self {
            semel: gate.semel.clone(),
            letters: Arc::clone(&gate.letters),
            elsewhere: gate.settings.shared_cache,
            place,
            namespace: gate.settings.namespace.clone(),
            gate: Some(Arc::clone(gate)),
            census: Census::new(Arc::clone(&gate.letters)),
            audit: Arc::clone(&gate.audit),
            jobs: Jobs::default(),
            show_bodies: false,
        }
    }

    /// Of a store without a gate.
    pub(crate) fn of_store(letters: Arc<dyn Letters>, page: StorePage) -> Self {
        let settings = semel::Settings::default();
        Self {
            semel: Semel::with_settings(Arc::clone(&letters) as _, settings),
            census: Census::new(Arc::clone(&letters)),
            letters,
            elsewhere: settings.shared_cache,
            place: page.place,
            namespace: page.namespace,
            gate: None,
            audit: Arc::default(),
            jobs: Jobs::default(),
            show_bodies: page.show_bodies,
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.semel.store()
    }

    /// Whether bodies of this route are shown.
    pub(crate) fn shows_bodies(&self, route: &str) -> bool {
        let route_state = self.gate.as_ref().and_then(|gate| gate.route_state(route));
        route_state.map_or(self.show_bodies, |it| it.settings.show_bodies)
    }
}

// === impl Screen ===

impl Screen {
    /// The time of this machine.
    pub(crate) fn now(&self) -> Time {
        self.state.census.now()
    }

    /// The relative address of what is at `path` below the root.
    pub(crate) fn to(&self, path: &str) -> String {
        self.visitor.base.to(path)
    }

    /// Whoever looks, as somebody who acts for this reason.
    pub(crate) fn operator(&self, why: &str) -> Operator {
        let state = &self.state;
        let who = Who::new(self.visitor.who.clone(), Via::Page).because(why);
        let (semel, letters) = (state.semel.clone(), Arc::clone(&state.letters));
        let operator = Operator::new(semel, letters, state.elsewhere, who);
        let operator = operator.audited(Arc::clone(&state.audit));
        match &state.gate {
            Some(gate) => operator.at(gate),
            None => operator,
        }
    }

    /// What a job works with.
    pub(crate) fn desk(&self, why: &str) -> Desk {
        Desk {
            operator: self.operator(why),
            census: self.state.census.clone(),
            gate: self.state.gate.clone(),
        }
    }

    /// The whole page.
    pub(crate) fn show(&self, title: &str, current: &str, main: &Markup) -> Response {
        let nav = self.nav();
        page(&self.frame(title, current, "", &nav), main)
    }

    /// The same after a search.
    pub(crate) fn show_found(&self, title: &str, query: &str, main: &Markup) -> Response {
        let nav = self.nav();
        page(&self.frame(title, "search", query, &nav), main)
    }

    /// The whole page, or why there is none.
    pub(crate) fn answer(
        &self,
        title: &str,
        current: &str,
        main: Result<Markup, Refused>,
    ) -> Response {
        match main {
            Ok(main) => self.show(title, current, &main),
            Err(why) => self.refuse(current, &why),
        }
    }

    /// Says why something was not done.
    pub(crate) fn refuse(&self, current: &str, why: &Refused) -> Response {
        let nav = self.nav();
        let main = refused(&why.error, &why.what_to_do, &self.to(current));
        page_with(
            why.status,
            &self.frame("Not done", current, "", &nav),
            &main,
        )
    }

    /// Leads on to another screen.
    pub(crate) fn lead_to(&self, path: &str) -> Response {
        Redirect::to(&self.to(path)).into_response()
    }

    fn frame<'a>(
        &'a self,
        title: &'a str,
        current: &'a str,
        query: &'a str,
        nav: &'a [NavItem],
    ) -> Frame<'a> {
        Frame {
            title,
            place: &self.state.place,
            nav,
            current,
            search: Some(Search { hint: HINT, query }),
            visitor: &self.visitor,
        }
    }

    /// The ways to other screens; without a gate those alone that have something to show.
    fn nav(&self) -> Vec<NavItem> {
        let Known {
            records, letters, ..
        } = self.state.census.look();
        let doubt = records.map_or(0, |it| it.parked_or_in_doubt());
        let letters = letters.map_or(0, |it| it.for_operator());
        let mut nav = vec![
            NavItem::new("", "Overview"),
            NavItem::new("running", "Running"),
            NavItem::new("doubt", "In doubt").count(doubt),
            NavItem::new("letters", "Letters").count(letters),
        ];
        if self.state.gate.is_some() {
            nav.push(NavItem::new("mismatches", "Mismatches"));
            nav.push(NavItem::new("routes", "Routes"));
            nav.push(NavItem::new("duplicates", "Duplicates"));
        }
        nav.push(NavItem::new("audit", "Audit"));
        nav
    }
}

impl FromRequestParts<Arc<PageState>> for Screen {
    type Rejection = StatusCode;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<PageState>,
    ) -> Result<Self, StatusCode> {
        // Whoever gets here was let in.
        let visitor = parts.extensions.get::<Visitor>();
        let visitor = visitor.cloned().ok_or(StatusCode::INTERNAL_SERVER_ERROR)?;
        Ok(Self {
            state: Arc::clone(state),
            visitor,
        })
    }
}

/// The colour of a state.
pub(crate) const fn tone(state: State) -> Tone {
    match state {
        State::Running => Tone::Busy,
        State::Succeeded => Tone::Ran,
        State::Failed => Tone::Failed,
        State::Waiting => Tone::Waiting,
        State::Parked => Tone::Parked,
    }
}

/// The colour of what became of a delivery, by its word.
pub(crate) fn delivery_tone(outcome: &str) -> Tone {
    match outcome {
        "ran" => Tone::Ran,
        "replayed" => Tone::Replayed,
        "running" | "busy" | "not_yet" | "full" => Tone::Busy,
        "retryable" | "answered_without_completing" | "exhausted" => Tone::Waiting,
        "parked" => Tone::Parked,
        "unrecorded" | "unread" | "not_landed" => Tone::Doubt,
        "failed" => Tone::Failed,
        // The gate turned it away: nothing ran.
        _ => Tone::Refused,
    }
}

/// What is said while nothing is counted yet.
pub(crate) fn being_counted(known: &Known) -> Markup {
    html! {
        @if let Some(trouble) = known.trouble() {
            (self::trouble(trouble))
        } @else {
            (note(Tone::Busy, &html! {
                "Being counted"
                @if let Some(count) = known.counting { ": " (number(count)) " records so far" }
                ". Reload in a moment."
            }))
        }
    }
}

/// The store could not be walked through.
pub(crate) fn trouble(why: &str) -> Markup {
    note(
        Tone::Failed,
        &html! { p { "The store could not be asked: " (why) } },
    )
}

/// Instead of a body that is not shown.
pub(crate) fn hidden_body(screen: &Screen, bytes: u64) -> Markup {
    html! {
        p.lead {
            (super::format::bytes(bytes)) ", not shown: "
            @if screen.state.gate.is_some() { "bodies are shown where the route says " code { "show_bodies = true" } }
            @else { "start this page with " code { "--show-bodies" } " to see bodies" }
            "."
        }
    }
}

/// Headers, one a line.
pub(crate) fn header_lines<'a>(
    headers: impl IntoIterator<Item = (&'a String, &'a String)>,
    shows: bool,
) -> Vec<String> {
    let line = |(name, value): (&'a String, &'a String)| {
        format!("{name}: {}", shown_value(name, value, shows))
    };
    headers.into_iter().map(line).collect()
}
