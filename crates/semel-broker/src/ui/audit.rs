//! What people do on the page leaves one log line each, target `audit`: who, what, why, and what came of it.

use super::Page;
use super::ask::Failed;
use super::screen::Screen;
use crate::status::cut;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{Method, StatusCode};
use semel_ui::Visitor;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use url::form_urlencoded;

/// What cannot be taken back: it needs a reason on every broker.
const HARD: [&str; 4] = ["delete", "drop", "purge", "reset"];

/// Fields of forms that say what is done. Others may hold what is secret: headers, bodies, addresses.
const TOLD: [&str; 10] = [
    "project", "location", "topic", "name", "kind", "rate", "argument", "resource", "fault", "by",
];

/// A form as it was sent.
#[derive(Debug)]
struct Form<'a>(HashMap<Cow<'a, str>, Cow<'a, str>>);

/// Lets an act through that says what it has to, and writes its line.
pub(super) async fn audit(State(page): State<Arc<Page>>, request: Request, next: Next) -> Response {
    let visitor = request.extensions().get::<Visitor>().cloned();
    let (Some(visitor), Method::POST) = (visitor, request.method().clone()) else {
        return next.run(request).await;
    };
    let screen = Screen { page, visitor };
    let (parts, body) = request.into_parts();
    // Whoever let it in has seen to its size.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let form = Form(form_urlencoded::parse(&body).collect());
    let path = parts.uri.path().trim_start_matches('/').to_owned();
    if let Err(missing) = form.check(&screen.visitor) {
        return screen.failed(&missing, &path);
    }
    let request = Request::from_parts(parts, Body::from(body.clone()));
    let response = next.run(request).await;
    tracing::info!(
        target: "audit",
        act = form.act(&path),
        what = form.what(&path),
        by = screen.visitor.who,
        via = "page",
        why = form.why().map(cut).as_deref(),
        done = response.status().is_redirection(),
        "act"
    );
    response
}

// === impl Form ===

impl Form<'_> {
    fn field(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |it| it.trim())
    }

    /// The word for what it does; a screen that does one thing has none.
    fn act<'a>(&'a self, path: &'a str) -> &'a str {
        match self.field("do") {
            "" => path,
            word => word,
        }
    }

    /// To what, and how.
    fn what(&self, path: &str) -> String {
        let told = TOLD.iter().filter(|name| !self.field(name).is_empty());
        let told = told.map(|name| format!("{name}={}", self.field(name)));
        let whole = Some(path.to_owned()).filter(|it| !it.is_empty());
        let words: Vec<_> = whole.into_iter().chain(told).collect();
        cut(&words.join(" ")).into_owned()
    }

    /// A reason that somebody can read.
    fn why(&self) -> Option<&str> {
        Some(self.field("reason")).filter(|it| it.contains(char::is_alphanumeric))
    }

    /// Where people sign in, every act says why.
    fn check(&self, visitor: &Visitor) -> Result<(), Failed> {
        let needed = visitor.signed_in || HARD.contains(&self.field("do"));
        if !needed || self.why().is_some() {
            return Ok(());
        }
        let says =
            "An act needs a reason: go back and say why, it is for the audit. Nothing was done.";
        Err(Failed::new(StatusCode::BAD_REQUEST, says))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_what_is_done_and_nothing_secret() {
        let form = "do=create&name=t&headers=authorization%3A+s3cret&body=s3cret&url=http%3A%2F%2Fs3cret&reason=+%E2%80%8B";
        let form = Form(form_urlencoded::parse(form.as_bytes()).collect());
        assert_eq!(form.act("queues/q"), "create");
        assert_eq!(form.what("queues/q"), "queues/q name=t");
        assert_eq!(form.why(), None);
        let clock = Form(form_urlencoded::parse(b"by=1h&reason=retries").collect());
        assert_eq!(
            (clock.act("clock"), clock.why()),
            ("clock", Some("retries"))
        );
        assert_eq!(clock.what("clock"), "clock by=1h");
    }
}
