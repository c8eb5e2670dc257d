//! What the browser fetches besides the page: embedded, named by its digest, and so kept for as long as it likes.

use crate::headers::protect;
use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{StatusCode, header::HeaderName};
use ring::digest::{SHA256, digest};
use std::sync::LazyLock;

/// How much of a digest is in a name: enough that a new build has a new one.
const DIGITS: usize = 12;

/// What a browser may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asset {
    /// The look.
    Style,
    /// Copying, live lines, choosing all of a list; no page needs it.
    Script,
    /// htmx, as it was published.
    Htmx,
    /// The picture in the browser's tab.
    Icon,
}

/// Serves them at `assets/…` below the root. Everybody may have them: they say nothing.
pub fn assets<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/assets/{name}", get(serve))
}

async fn serve(Path(name): Path<String>) -> Response {
    let asked = Asset::ALL.into_iter().find(|asset| asset.name() == name);
    let mut response = match asked {
        Some(asset) => {
            let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
            let headers: [(HeaderName, HeaderValue); 2] = [
                (CONTENT_TYPE, HeaderValue::from_static(asset.content_type())),
                (CACHE_CONTROL, kept),
            ];
            (headers, asset.bytes()).into_response()
        }
        None => (StatusCode::NOT_FOUND, "no such asset\n").into_response(),
    };
    protect(response.headers_mut());
    response
}

// === impl Asset ===

impl Asset {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Style, Self::Script, Self::Htmx, Self::Icon];

    /// Where it is, below the page's root.
    #[must_use]
    pub fn path(self) -> String {
        format!("assets/{}", self.name())
    }

    fn name(self) -> &'static str {
        static NAMES: LazyLock<[String; 4]> = LazyLock::new(|| Asset::ALL.map(Asset::named));
        let [style, script, htmx, icon] = &*NAMES;
        match self {
            Self::Style => style,
            Self::Script => script,
            Self::Htmx => htmx,
            Self::Icon => icon,
        }
    }

    fn named(self) -> String {
        let mut digest = hex::encode(digest(&SHA256, self.bytes()));
        digest.truncate(DIGITS);
        let (stem, extension) = match self {
            Self::Style => ("semel", "css"),
            Self::Script => ("semel", "js"),
            Self::Htmx => ("htmx", "js"),
            Self::Icon => ("semel", "svg"),
        };
        format!("{stem}-{digest}.{extension}")
    }

    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Style => include_bytes!("../assets/semel.css"),
            Self::Script => include_bytes!("../assets/semel.js"),
            Self::Htmx => include_bytes!("../assets/htmx-2.0.11.min.js"),
            Self::Icon => include_bytes!("../assets/semel.svg"),
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Style => "text/css; charset=utf-8",
            Self::Script | Self::Htmx => "text/javascript; charset=utf-8",
            Self::Icon => "image/svg+xml",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All assets together, whatever is added: a page must be quick over a bad line.
    const BYTES_MAX: usize = 150 * 1024;

    /// Of `dist/htmx.min.js` in the npm package htmx.org 2.0.11.
    const HTMX: &str = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717";

    #[test]
    fn htmx_is_as_it_was_published() {
        assert_eq!(hex::encode(digest(&SHA256, Asset::Htmx.bytes())), HTMX);
    }

    #[test]
    fn together_they_are_small() {
        let bytes: usize = Asset::ALL.iter().map(|asset| asset.bytes().len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes");
    }

    #[test]
    fn every_name_has_its_digest() {
        for asset in Asset::ALL {
            assert_eq!(asset.name(), asset.named());
        }
    }

    #[test]
    fn our_own_need_nothing_that_the_policy_forbids() {
        let script = String::from_utf8_lossy(Asset::Script.bytes());
        for forbidden in [
            "eval(",
            "new Function",
            "innerHTML",
            ".style",
            "http:",
            "https:",
        ] {
            assert!(!script.contains(forbidden), "{forbidden}");
        }
        let style = String::from_utf8_lossy(Asset::Style.bytes());
        assert!(!style.contains("url(") && !style.contains("@import"));
    }
}
