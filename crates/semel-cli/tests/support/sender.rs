//! A sender that delivers again until it hears that it may stop, as a queue or a careful client does.

use super::http::{Answer, Request};
use super::{BOUND, wait_for};

/// Whether an answer asks for another delivery.
pub(crate) fn asks_again(answer: &Answer) -> bool {
    answer.status >= 500 || answer.header("retry-after").is_some()
}

/// Delivers until the answer is one to stop at.
pub(crate) fn deliver(port: u16, request: &Request) -> Answer {
    deliver_to(|| port, request).1
}

/// The same, to a port chosen anew for each try; says which one answered.
pub(crate) fn deliver_to(mut port: impl FnMut() -> u16, request: &Request) -> (u16, Answer) {
    let mut last = None;
    wait_for(
        &format!("an answer to {request:?} within {BOUND:?}"),
        || {
            let port = port();
            let answer = request.send(port).ok().filter(|it| !asks_again(it));
            last = answer.map(|answer| (port, answer));
            last.is_some()
        },
    );
    last.unwrap()
}
