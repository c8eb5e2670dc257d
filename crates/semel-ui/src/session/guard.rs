//! What every request for a screen passes.

use super::keys::is_same;
use super::{Access, Denied, request};
use crate::frame::{Frame, page_with, see};
use crate::headers::protect;
use crate::{Base, Visitor, refused};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, StatusCode};
use std::sync::Arc;

/// The largest form.
const FORM_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What somebody who has no right to act may do nevertheless.
const FOR_ALL: [&str; 1] = ["/sign-out"];

/// Why a request goes no further, and what to do.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    what: &'static str,
    what_to_do: &'static str,
}

/// Why a request goes no further.
#[derive(Debug)]
enum Stop {
    Refused(&'static Refusal),
    /// Whoever looks may sign in first.
    SignIn,
}

/// Lets in whoever may come in, as a [`Visitor`]; an act only from the page itself, by somebody who may act.
pub(super) async fn guard(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let path = path.strip_prefix('/').unwrap_or(path).to_owned();
    if path.starts_with("assets/") {
        return next.run(request).await;
    }
    let base = Base::of(&path);
    let to_sign_in = to_sign_in(&request, base);
    let mut response = match admit(&access, request, base).await {
        Ok(request) => in_words(&access, next.run(request).await, base),
        Err(Stop::Refused(refusal)) => refusal.page(&access, base),
        Err(Stop::SignIn) => to_sign_in,
    };
    protect(response.headers_mut());
    response
}

/// An answer that is a page. What reads an address or a form says in plain text what it cannot read, or nothing.
fn in_words(access: &Access, response: Response, base: Base) -> Response {
    let kind = response.headers().get(CONTENT_TYPE);
    let is_bare = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !response.status().is_client_error() || !is_bare {
        return response;
    }
    let refusal = Refusal {
        status: response.status(),
        ..UNREADABLE
    };
    refusal.page(access, base)
}

async fn admit(access: &Access, mut request: Request, base: Base) -> Result<Request, Stop> {
    if !access.hosts.admit(request.uri(), request.headers()) {
        return Err(Stop::Refused(&OTHER_HOST));
    }
    if request.uri().path().contains("//") {
        // Relative ways from there would lead to more of the same.
        return Err(Stop::Refused(&NOTHING));
    }
    let looks = [Method::GET, Method::HEAD].contains(request.method());
    if !looks && !request::is_same_origin(request.headers(), &access.hosts) {
        return Err(Stop::Refused(&OTHER_SITE));
    }
    let found = access.visitor(request.headers(), request::peer(&request), base);
    if found.as_ref().err() == Some(&Denied::Open) {
        return Err(Stop::Refused(&NO_TOKEN));
    }
    if request.uri().path() == "/sign-in" {
        request.extensions_mut().insert(found.ok());
        return Ok(request);
    }
    let visitor = match found {
        Ok(visitor) => visitor,
        Err(_) if looks => return Err(Stop::SignIn),
        Err(_) => return Err(Stop::Refused(&SIGNED_OUT)),
    };
    if !looks {
        let may = visitor.may_act() || FOR_ALL.contains(&request.uri().path());
        request = own_form(request, &visitor).await.map_err(Stop::Refused)?;
        if !may {
            return Err(Stop::Refused(&MAY_NOT_ACT));
        }
    }
    request.extensions_mut().insert(visitor);
    Ok(request)
}

/// Reads the form, and asks whether this session was given it.
async fn own_form(request: Request, visitor: &Visitor) -> Result<Request, &'static Refusal> {
    let (parts, body) = request.into_parts();
    let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !kind.is_some_and(|it| it.starts_with(b"application/x-www-form-urlencoded")) {
        return Err(&NO_FORM);
    }
    let body = to_bytes(body, FORM_BYTES_MAX).await;
    let body = body.map_err(|_| &TOO_LARGE)?;
    let given = field(&body, "csrf").unwrap_or_default();
    if !is_same(&given, &visitor.csrf) {
        return Err(&OTHER_FORM);
    }
    Ok(Request::from_parts(parts, Body::from(body)))
}

/// One field of a form.
pub(super) fn field(form: &[u8], name: &str) -> Option<String> {
    let mut fields = form_urlencoded::parse(form);
    let found = fields.find(|(given, _)| given == name);
    found.map(|(_, value)| value.into_owned())
}

/// Shows the sign-in page, which leads back here. A part that is fetched reloads its page first.
fn to_sign_in(request: &Request, base: Base) -> Response {
    if request.headers().contains_key("hx-request") {
        let reload = [("hx-refresh", "true")];
        return (StatusCode::UNAUTHORIZED, reload, "sign in again\n").into_response();
    }
    let path = request.uri().path_and_query().map_or("", |it| it.as_str());
    let to: String =
        form_urlencoded::byte_serialize(path.trim_start_matches('/').as_bytes()).collect();
    see(&base.to(&format!("sign-in?to={to}")))
}

// === impl Refusal ===

static OTHER_HOST: Refusal = Refusal {
    status: StatusCode::FORBIDDEN,
    what: "The Host of this request is not this address",
    what_to_do: "Ask for 127.0.0.1 or localhost. If this name leads here on purpose, through a proxy for instance, \
                 list it: admin_hosts = [\"NAME\"] for a gate, --host NAME for a broker. Nothing was done.",
};
static NOTHING: Refusal = Refusal {
    status: StatusCode::NOT_FOUND,
    what: "Nothing is here",
    what_to_do: "No address of this page has two slashes in a row: begin at the root.",
};
const UNREADABLE: Refusal = Refusal {
    status: StatusCode::BAD_REQUEST,
    what: "This address cannot be read",
    what_to_do: "A part of it is not what this page writes there: go back, or begin at the root. Nothing was done.",
};
static OTHER_SITE: Refusal = Refusal {
    status: StatusCode::FORBIDDEN,
    what: "Another page asked for this",
    what_to_do: "Acts are taken from this page only: open it, and press its button. Programs use the JSON beside it. \
                 Nothing was done.",
};
static NO_TOKEN: Refusal = Refusal {
    status: StatusCode::FORBIDDEN,
    what: "This address can be reached by others and asks for no token",
    what_to_do: "Set admin_token, or let admin be a loopback address.",
};
static SIGNED_OUT: Refusal = Refusal {
    status: StatusCode::UNAUTHORIZED,
    what: "You are not signed in",
    what_to_do: "Sign in, and do it again: nothing was done.",
};
static MAY_NOT_ACT: Refusal = Refusal {
    status: StatusCode::FORBIDDEN,
    what: "You may look, not act",
    what_to_do: "You signed in with the token that views. Sign out, and sign in with the token that acts \
                 (admin_token). Nothing was done.",
};
static NO_FORM: Refusal = Refusal {
    status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
    what: "This is not a form of this page",
    what_to_do: "Programs use the JSON beside the page. Nothing was done.",
};
static TOO_LARGE: Refusal = Refusal {
    status: StatusCode::PAYLOAD_TOO_LARGE,
    what: "This form is too large",
    what_to_do: "Choose less at once. Nothing was done.",
};
static OTHER_FORM: Refusal = Refusal {
    status: StatusCode::FORBIDDEN,
    what: "This form is not from your session",
    what_to_do: "It was shown before you signed in, or before a restart. Load the page anew, and do it again: nothing \
                 was done.",
};

impl Refusal {
    fn page(&self, access: &Access, base: Base) -> Response {
        let main = refused(self.what, self.what_to_do, &base.to(""));
        page_with(
            self.status,
            &outside(access, self.what, &nobody(base)),
            &main,
        )
    }
}

/// Somebody of whom nothing is known.
pub(super) fn nobody(base: Base) -> Visitor {
    Visitor {
        role: crate::Role::View,
        csrf: String::new(),
        signed_in: false,
        base,
        who: "nobody".into(),
    }
}

/// The frame of a page that shows nothing of what is inside.
pub(super) fn outside<'a>(access: &'a Access, title: &'a str, visitor: &'a Visitor) -> Frame<'a> {
    Frame {
        title,
        place: &access.place,
        nav: &[],
        current: "",
        search: None,
        visitor,
    }
}
