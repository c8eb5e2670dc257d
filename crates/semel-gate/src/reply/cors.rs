//! Which web pages may read the gate's own problem answers (CORS). The handler's answers carry what the
//! handler says.

use crate::settings::Route;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    HeaderValue, ORIGIN, VARY,
};
use http::{HeaderMap, Response};

/// Who may read the gate's own answer to a request, on a route that says whose pages may.
#[derive(Clone, Debug)]
pub(crate) enum CorsGrant {
    /// The route names no origin.
    NotShared,
    /// None that the route names.
    Other,
    /// A page of this origin.
    Page(HeaderValue),
}

/// Marks a reply that is the gate's own word.
#[derive(Clone, Copy, Debug)]
struct Own;

pub(super) fn mark_as_own<B>(reply: &mut Response<B>) {
    reply.extensions_mut().insert(Own);
}

// === impl CorsGrant ===

impl CorsGrant {
    pub(crate) fn of(route: &Route, headers: &HeaderMap) -> Self {
        if route.cors.is_empty() {
            return Self::NotShared;
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(origin), None) if route.cors.iter().any(|named| origin == named) => {
                Self::Page(origin.clone())
            }
            (Some(_) | None, _) => Self::Other,
        }
    }

    /// Lets the page read a reply that is the gate's own.
    pub(crate) fn apply<B>(self, mut reply: Response<B>) -> Response<B> {
        if reply.extensions().get::<Own>().is_none() {
            return reply;
        }
        let headers = reply.headers_mut();
        match self {
            Self::NotShared => return reply,
            Self::Other => {}
            Self::Page(origin) => {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                // A problem says nothing of anybody: a page that sends cookies may read it, too.
                let yes = HeaderValue::from_static("true");
                headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
                let when = HeaderValue::from_static("retry-after");
                headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, when);
            }
        }
        headers.append(VARY, HeaderValue::from_static("origin"));
        reply
    }
}
