//! One request for a screen: who asks, and what they are shown.

use super::Page;
use super::ask::Failed;
use axum::extract::FromRequestParts;
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use semel_ui::{Act, Frame, Markup, NavItem, Visitor, page_with, refused, see};
use std::sync::Arc;

const NAV: [NavItem; 5] = [
    NavItem::new("", "Queues and topics"),
    NavItem::new("faults", "Faults"),
    NavItem::new("clock", "Clock"),
    NavItem::new("schemas", "Schemas"),
    NavItem::new("refusals", "Refusals"),
];

/// One request for a screen.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) page: Arc<Page>,
    pub(super) visitor: Visitor,
}

// === impl Screen ===

impl Screen {
    pub(super) fn show(&self, title: &str, current: &str, main: &Markup) -> Response {
        self.show_with(StatusCode::OK, title, current, main)
    }

    fn show_with(&self, status: StatusCode, title: &str, current: &str, main: &Markup) -> Response {
        let faults = self.page.context.faults.list().len();
        let badge = |item: NavItem| match item.href {
            "faults" => item.count(u64::try_from(faults).unwrap_or(u64::MAX)),
            _ => item,
        };
        let frame = Frame {
            title,
            place: &self.page.place,
            nav: &NAV.map(badge),
            current,
            search: None,
            visitor: &self.visitor,
        };
        page_with(status, &frame, main)
    }

    /// A form that acts. Where people sign in, they say why.
    pub(super) fn form(&self, act: Act) -> Markup {
        match self.visitor.signed_in {
            true => act.reason().form(&self.visitor),
            false => act.form(&self.visitor),
        }
    }

    /// The relative address of a screen.
    pub(super) fn to(&self, path: &str) -> String {
        self.visitor.base.to(path)
    }

    /// What was asked for is shown at `path`; or why it was not done.
    pub(super) fn done<T>(&self, done: Result<T, Failed>, path: &str) -> Response {
        match done {
            Ok(_) => see(&self.to(path)),
            Err(failed) => self.failed(&failed, path),
        }
    }

    /// A page that says why something was not done.
    pub(super) fn failed(&self, failed: &Failed, back: &str) -> Response {
        let main = refused("The broker refused this", &failed.says, &self.to(back));
        self.show_with(failed.status, "Refused", "", &main)
    }
}

impl FromRequestParts<Arc<Page>> for Screen {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, page: &Arc<Page>) -> Result<Self, StatusCode> {
        let visitor = parts.extensions.get::<Visitor>().cloned();
        Ok(Self {
            page: Arc::clone(page),
            visitor: visitor.ok_or(StatusCode::FORBIDDEN)?,
        })
    }
}

/// A moment, by microseconds since 1970: the time of day and the whole.
pub(super) fn moment(micros: i64) -> (String, String) {
    let Ok(moment) = Timestamp::from_microsecond(micros) else {
        return Default::default();
    };
    let zoned = moment.to_zoned(TimeZone::UTC);
    let day = zoned.strftime("%H:%M:%S%.3f").to_string();
    (day, format!("{moment:.6}"))
}

/// `1 task`, `2 tasks`.
pub(super) fn counted(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}
