//! Addresses: of handlers, and of web pages that may read answers.

use super::tree::Value;
use super::values::{Read, Wrong, text};
use http::Uri;

/// A web origin, as browsers write it.
pub(crate) fn origin(value: &Value) -> Read<String> {
    let text = text(value)?;
    let uri = text.parse::<Uri>().ok();
    let parts = uri
        .as_ref()
        .and_then(|uri| uri.scheme_str().zip(uri.authority()));
    // Browsers send it in lower case, without a path and without a slash at the end.
    let good = parts.is_some_and(|(scheme, authority)| {
        let written = format!("{scheme}://{authority}").to_ascii_lowercase();
        matches!(scheme, "http" | "https") && !written.contains('@') && written == text
    });
    Wrong::unless(value, good.then(|| text.clone()), || {
        format!(
            "{text:?} is not an origin: write \"https://shop.example\", in lower case and without a path"
        )
    })
}

/// A handler's `http://host:port`, or with `https`.
pub(crate) fn base(value: &Value) -> Read<Uri> {
    let text = text(value)?;
    let Ok(uri) = text.parse::<Uri>() else {
        return Wrong::says(value, "this is not a URL: write \"http://127.0.0.1:3000\"");
    };
    match base_trouble(&uri) {
        None => Ok(uri),
        Some(says) => Wrong::says(value, says),
    }
}

/// Why a URL cannot be a handler's. It is not repeated: it may hold a password.
fn base_trouble(uri: &Uri) -> Option<&'static str> {
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(_) | None => {
            return Some("write http:// or https:// and the handler's host and port");
        }
    }
    let authority = uri.authority()?;
    if authority.as_str().contains('@') {
        return Some("a user and password cannot be sent to the handler: leave them out");
    }
    let names_port = authority.as_str() != authority.host();
    let port_is_bad = names_port && authority.port_u16().is_none_or(|port| port == 0);
    if port_is_bad {
        return Some("the port must be from 1 to 65535");
    }
    if uri.path() != "/" || uri.query().is_some() {
        return Some("the handler is asked for the path of each delivery: leave the path out");
    }
    None
}
