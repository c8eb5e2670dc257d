//! Refusals before there is a delivery: the request itself is not taken.

use super::{Reply, STORE_RETRY_AFTER, answer, meaning, problem, wait};
use crate::bodies::Unread;
use crate::effect::Heard;
use crate::settings::Source;
use http::StatusCode;

/// A body that was not read, from this sender as far as a head can tell.
pub(crate) fn unread(who: Source, why: &Unread) -> Reply {
    match why {
        Unread::TooLarge { bytes_max } => problem(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            "The body is too large",
            format!(
                "this route takes at most {bytes_max} bytes (`body_bytes_max`); nothing was run"
            ),
        ),
        Unread::NoRoom => no_room(who),
        Unread::TooSlow => problem(
            StatusCode::REQUEST_TIMEOUT,
            "body-too-slow",
            "The body came too slowly",
            "its sender paused for too long or sent too little at a time; nothing was run, a retry is safe",
        ),
        Unread::Broken(_) => problem(
            StatusCode::BAD_REQUEST,
            "body-broken",
            "The body broke off",
            "it did not come to its end; nothing was run, a retry is safe",
        ),
    }
}

/// Bodies that others hold say nothing of the queue that this one is from: Cloud Tasks would slow all
/// of it down on 429 or 503, and only this task on 409.
fn no_room(who: Source) -> Reply {
    let status = match who {
        Source::Api => StatusCode::TOO_MANY_REQUESTS,
        Source::CloudTasks | Source::PubSub | Source::CloudEvents => StatusCode::CONFLICT,
    };
    wait(
        status,
        "no-room",
        "There is no room for this body",
        "the bodies in hand together, or those of this connection or address, are as large as \
         `bodies_bytes_max` allows; nothing was run, a retry is safe",
        STORE_RETRY_AFTER,
    )
}

/// A path that no route names.
pub(crate) fn unknown_path() -> Reply {
    problem(
        StatusCode::NOT_FOUND,
        "unknown-path",
        "No route has this path",
        "name it in a [[route]] to protect it, or in `pass` to forward it as it is; nothing was run",
    )
}

/// A path that a route names, for other methods.
pub(crate) fn other_method() -> Reply {
    problem(
        StatusCode::METHOD_NOT_ALLOWED,
        "other-method",
        "The route of this path takes other methods",
        "add the method to the route's `methods`; nothing was run",
    )
}

/// A path that two readers may read differently.
pub(crate) fn ambiguous_path() -> Reply {
    problem(
        StatusCode::BAD_REQUEST,
        "ambiguous-path",
        "The path can be read in two ways",
        "send it without dot segments, double slashes, backslashes and encoded slashes; nothing was run",
    )
}

/// A request that was to be forwarded as it is, but was not answered.
pub(crate) fn not_forwarded(why: &str) -> Reply {
    let outcome = meaning::no_answer(false, why);
    answer(&outcome, Heard::default())
}

/// Something that must not happen did.
pub(crate) fn broken() -> Reply {
    problem(
        StatusCode::INTERNAL_SERVER_ERROR,
        "gate-broken",
        "The gate failed",
        "please report this with the gate's log; whether the work took effect is in its record",
    )
}
