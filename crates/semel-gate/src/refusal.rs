//! Refusals before there is a delivery: the request itself is not taken.

mod turned_away;

pub(crate) use turned_away::turn_away;

use crate::bodies::BodyError;
use crate::normalize::Rejection;
use crate::pace::PaceError;
use crate::path::{AmbiguousPath, PathAllowance};
use crate::reply::meaning;
use crate::reply::problem::{Problem, no_room};
use crate::settings::Source;
use crate::upstream::SendError;
use crate::verify::Refusal;
use http::{Method, StatusCode};
use std::time::Duration;

/// When to deliver again while an issuer's keys cannot be had.
const KEYS_RETRY_AFTER: Duration = Duration::from_secs(5);

/// A body that was not read, from this sender as far as a head can tell.
pub(crate) fn unread(who: Source, why: &BodyError) -> Problem {
    match why {
        BodyError::TooLarge { bytes_max } => Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            "The body is too large",
            format!(
                "this route takes at most {bytes_max} bytes (`body_bytes_max`); nothing was run"
            ),
        ),
        BodyError::NoRoom => no_room(who),
        BodyError::TooSlow => Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "body-too-slow",
            "The body came too slowly",
            "its sender paused for too long or sent too little at a time; nothing was run, a retry is safe",
        ),
        BodyError::Broken(_) => Problem::new(
            StatusCode::BAD_REQUEST,
            "body-broken",
            "The body broke off",
            "it did not come to its end; nothing was run, a retry is safe",
        ),
    }
}

/// A sender that is not believed.
pub(crate) fn unverified(why: Refusal) -> Problem {
    if why == Refusal::KeysUnavailable {
        return Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "keys-unavailable",
            "The token cannot be verified now",
            format!("{}; nothing was run, a retry is safe", why.says()),
        )
        .retry_after(KEYS_RETRY_AFTER);
    }
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "unverified",
        "The sender is not verified",
        format!("{}; nothing was run or kept", why.says()),
    )
}

/// A handshake of a sender that the route does not name.
pub(crate) const WEBHOOK_ORIGIN: Problem = Problem::fixed(
    StatusCode::FORBIDDEN,
    "webhook-origin",
    "This origin may not deliver here",
    "name it in the route's `webhook_origins` if it may",
);

/// A path that no route names.
pub(crate) const UNKNOWN_PATH: Problem = Problem::fixed(
    StatusCode::NOT_FOUND,
    "unknown-path",
    "No route has this path",
    "name it in a [[route]] to protect it, or in `pass` to forward it as it is; nothing was run",
);

/// A path that a route names, for other methods.
pub(crate) const OTHER_METHOD: Problem = Problem::fixed(
    StatusCode::METHOD_NOT_ALLOWED,
    "other-method",
    "The route of this path takes other methods",
    "add the method to the route's `methods`; nothing was run",
);

/// A path that two readers may read differently.
pub(crate) fn ambiguous_path(why: AmbiguousPath) -> Problem {
    let allowed = |what: &str| {
        format!("send it without {what}, or let a route below a path allow them (`path_allows`)")
    };
    let what_to_do = match why {
        AmbiguousPath::NotAllowed(PathAllowance::Semicolon) => &allowed("semicolons"),
        AmbiguousPath::NotAllowed(PathAllowance::EncodedSlash) => &allowed("encoded slashes"),
        AmbiguousPath::NotAllowed(PathAllowance::DoubleSlash) => &allowed("double slashes"),
        AmbiguousPath::NotAllowed(PathAllowance::EncodedDelimiter) => &allowed("%3F and %23"),
        AmbiguousPath::BrokenEncoding => "send two hex digits behind each percent sign",
        AmbiguousPath::EncodedTwice => "encode it once",
        AmbiguousPath::NotUtf8 => "encode it as UTF-8",
        AmbiguousPath::Control => "send it without control characters",
        AmbiguousPath::Backslash => "send it without backslashes",
        AmbiguousPath::DotSegment => "send it without dot segments",
        AmbiguousPath::DoubleSlashFirst => "send it with one slash at its beginning",
        AmbiguousPath::LooksLikeRoute => {
            "a route has this path but for letter case, a slash at its end or an encoding: send it exactly so"
        }
        AmbiguousPath::TooLong => "send a shorter one",
    };
    Problem::new(
        StatusCode::BAD_REQUEST,
        "ambiguous-path",
        "The path can be read in two ways",
        format!("{what_to_do}; nothing was run"),
    )
}

/// A request that is not taken, whatever its path.
pub(crate) fn rejected(why: &Rejection) -> Problem {
    match why {
        Rejection::Path(why) => ambiguous_path(*why),
        Rejection::Connect => Problem::new(
            StatusCode::NOT_IMPLEMENTED,
            "connect",
            "CONNECT is not taken",
            "the gate forwards deliveries to its own handlers and opens no tunnels; nothing was run",
        ),
        Rejection::MethodCase => Problem::new(
            StatusCode::NOT_IMPLEMENTED,
            "method-case",
            "The method has lower-case letters",
            "methods are case-sensitive, and not every handler thinks so: send POST for post; nothing was run",
        ),
        Rejection::MethodOverride(name) => Problem::new(
            StatusCode::BAD_REQUEST,
            "method-override",
            "The request asks to be read as another method",
            format!("send the method itself instead of {name}; nothing was run"),
        ),
        Rejection::PathOverride(name) => Problem::new(
            StatusCode::BAD_REQUEST,
            "path-override",
            "The request asks to be read with another path",
            format!(
                "send it to that path itself instead of naming it in {name}, and let no proxy in front add {name}; \
                 nothing was run"
            ),
        ),
        Rejection::TransferEncoding => Problem::new(
            StatusCode::NOT_IMPLEMENTED,
            "transfer-encoding",
            "The transfer encoding is not `chunked`",
            "send the body in chunks without another coding, or with its length; nothing was run, a retry of the same \
             request fails again",
        ),
        Rejection::Host(what) => Problem::new(
            StatusCode::BAD_REQUEST,
            "bad-host",
            "The request does not say which host it is for",
            format!("{what}: send one Host, the target's own; nothing was run"),
        ),
        Rejection::Misdeclared(name) => Problem::new(
            StatusCode::BAD_REQUEST,
            "connection-names-header",
            "Connection names a header that is not of the connection",
            format!("{name} is meant for the handler: leave it out of Connection; nothing was run"),
        ),
    }
}

/// A request that only looks, forwarded unprotected, with a key that promises otherwise.
pub(crate) fn key_unprotected(method: &Method) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "key-unprotected",
        "This method is not protected here",
        format!(
            "{method} is forwarded without a record, so the Idempotency-Key would promise what does not hold: leave it \
             out, or list {method} in the route's `methods` to protect it; nothing was run"
        ),
    )
}

/// A request that was to be forwarded as it is, but was not answered.
pub(crate) fn not_forwarded(why: &SendError) -> Problem {
    let says = match why {
        SendError::NotSent(why) => {
            format!(
                "the handler was not reached ({why}); it did not get the request, a retry is safe"
            )
        }
        SendError::NotProcessed(why) => format!(
            "the handler refused the request before it looked at it ({why}); a retry is safe"
        ),
        SendError::Cut(why) => format!(
            "the connection to the handler broke ({why}); it may have got the request, whole or in part, and this path \
             is not protected"
        ),
    };
    meaning::unreachable(says)
}

/// A request that was forwarded as it is, to a handler that said nothing.
pub(crate) fn not_answered(max: Duration) -> Problem {
    meaning::timed_out(format!(
        "the handler said nothing for {max:?}; whether it took effect is unknown"
    ))
}

/// Why the body of a request that is passed did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truncation {
    TooSlow,
    Broken,
}

impl Truncation {
    pub(crate) const fn of<E>(cut: &PaceError<E>) -> Self {
        match cut {
            PaceError::TooSlow => Self::TooSlow,
            PaceError::Broken(_) => Self::Broken,
        }
    }
}

/// A request of which the handler may have got the beginning.
pub(crate) fn not_passed_whole(why: Truncation) -> Problem {
    match why {
        Truncation::TooSlow => Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "body-too-slow",
            "The body came too slowly",
            "its sender paused for too long; the handler may have got its beginning, and this path is not protected",
        ),
        Truncation::Broken => Problem::new(
            StatusCode::BAD_REQUEST,
            "body-broken",
            "The body broke off",
            "it did not come to its end; the handler may have got its beginning, and this path is not protected",
        ),
    }
}
