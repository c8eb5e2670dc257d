//! Signing in and out.

use super::failures::{BY_ADDRESS_MAX, SECONDS};
use super::guard::{field, nobody, outside};
use super::name::{self, NAME_CHARS_MAX};
use super::{Access, cookie, request};
use crate::frame::{page_with, see};
use crate::{Base, Tone, Visitor, note};
use axum::Extension;
use axum::body::to_bytes;
use axum::extract::{RawQuery, Request, State};
use axum::response::Response;
use http::header::{RETRY_AFTER, SET_COOKIE};
use http::{HeaderMap, HeaderValue, StatusCode};
use maud::{Markup, html};
use percent_encoding::percent_decode_str;
use std::sync::Arc;

/// A token and a path.
const FORM_BYTES_MAX: usize = 16 * 1024;

/// The page that asks for a token.
pub(super) async fn show(
    State(access): State<Arc<Access>>,
    Extension(visitor): Extension<Option<Visitor>>,
    RawQuery(query): RawQuery,
) -> Response {
    let to = way(field(query.unwrap_or_default().as_bytes(), "to"));
    if visitor.is_some_and(|it| !it.signed_in) {
        // Nobody asks for a token here.
        return see(&Base::default().to(&to));
    }
    form(&access, StatusCode::OK, &to, &html! {})
}

/// Looks at the token that was given.
pub(super) async fn sign_in(State(access): State<Arc<Access>>, request: Request) -> Response {
    let (peer, is_https) = (
        request::peer(&request),
        request::is_https(request.headers()),
    );
    let address = peer.map(|peer| peer.to_string());
    let now = (access.now)();
    let body = to_bytes(request.into_body(), FORM_BYTES_MAX).await;
    let body = body.unwrap_or_default();
    let to = way(field(&body, "to"));
    // The right token is always taken: behind a proxy all come from one address, and nobody's guesses lock others out.
    let token = field(&body, "token").unwrap_or_default();
    let name = name::plain(&field(&body, "name").unwrap_or_default());
    let role = access.keys.role_of(token.trim());
    let Some((role, session)) = role.and_then(|it| Some((it, access.keys.begin(it, &name, now)?)))
    else {
        if !access.failures().try_once(peer, now) {
            // The failures before it were told: whoever goes on cannot fill the log.
            tracing::debug!(
                address,
                "sign-in refused: too many wrong tokens within a minute"
            );
            return wait(&access, &to);
        }
        tracing::warn!(address, "sign-in refused: wrong token");
        let wrong = "This is not a token of this page. Copy it whole; it is admin_token or admin_view_token of the \
                     gate, or --admin-token of the broker.";
        return form(&access, StatusCode::UNAUTHORIZED, &to, &failed(wrong));
    };
    tracing::info!(address, role = role.word(), name, "signed in");
    let mut response = see(&Base::default().to(&to));
    let cookie = cookie::set(access.keys.cookie_name(), &session, is_https);
    response.headers_mut().insert(SET_COOKIE, cookie);
    response
}

/// Has the browser forget its cookie.
pub(super) async fn sign_out(State(access): State<Arc<Access>>, headers: HeaderMap) -> Response {
    let mut response = see(&Base::default().to("sign-in"));
    let cookie = cookie::clear(access.keys.cookie_name(), request::is_https(&headers));
    response.headers_mut().insert(SET_COOKIE, cookie);
    response
}

fn wait(access: &Access, to: &str) -> Response {
    let says = format!(
        "This is not a token of this page, and {BY_ADDRESS_MAX} wrong ones came within a minute: wait {SECONDS} seconds. \
         The right token is taken at any time."
    );
    let mut response = form(access, StatusCode::TOO_MANY_REQUESTS, to, &failed(&says));
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from(SECONDS));
    response
}

fn failed(why: &str) -> Markup {
    html! { div role="alert" { (note(Tone::Failed, &html! { p { (why) } })) } }
}

fn form(access: &Access, status: StatusCode, to: &str, says: &Markup) -> Response {
    let main = html! {
        div.narrow {
            h1 { "Sign in" }
            p.lead { "This page asks for a token. There may be two: one to look, one to look and act." }
            (says)
            form.card method="post" action="sign-in" {
                input type="hidden" name="to" value=(to);
                label.field {
                    span { "Token" }
                    input type="password" name="token" required autocomplete="current-password" autofocus;
                }
                label.field {
                    span { "Your name, for the audit (optional)" }
                    input type="text" name="name" maxlength=(NAME_CHARS_MAX) autocomplete="name";
                }
                div.bar { button.act { "Sign in" } }
            }
        }
    };
    page_with(
        status,
        &outside(access, "Sign in", &nobody(Base::default())),
        &main,
    )
}

/// Where to go afterwards: a screen of this page, or its root. The path is judged as browsers read it, to whom `%2e%2e`
/// leads upwards as `..` does.
fn way(to: Option<String>) -> String {
    let is_plain = |to: &String| {
        let path = to.split('?').next().unwrap_or_default();
        let path = percent_decode_str(path).decode_utf8_lossy();
        let bytes = to
            .bytes()
            .all(|it| it.is_ascii_graphic() && !br#"\"<>#"#.contains(&it));
        let climbs = path
            .split(['/', '\\'])
            .any(|part| part.is_empty() || part.starts_with('.'));
        let odd = path.contains(|it: char| it == ':' || it.is_control());
        bytes && !climbs && !odd && !path.starts_with("sign-")
    };
    to.filter(is_plain).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_stays_on_this_page() {
        for to in [
            "letters",
            "records/v1_0a",
            "search?q=a%2Fb&x=/y",
            "routes/charge%20it",
        ] {
            assert_eq!(way(Some(to.into())), to);
        }
        let others = "//evil.example /etc https://evil.example javascript:alert(1) ../x a/../b a//b \\\\evil sign-out \
                      %0d%0aa:b %0d%0aa %2E%2E/x %2e%2e a/%2E%2E/b .%2e/x a%2F..%2Fb a%2f%2e%2e %5C%5Cevil %2fevil \
                      %2F%2Fevil.example javascript%3Aalert(1) %73ign-out";
        for to in others.split_whitespace().chain(["", "a b", "ä", "a\r\nb"]) {
            assert_eq!(way(Some(to.into())), "", "{to}");
        }
    }
}
