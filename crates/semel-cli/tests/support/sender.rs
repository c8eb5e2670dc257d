//! A sender that delivers again until it hears that it may stop, as a queue or a careful client does.

use super::{BOUND, wait_for};
use semel_rig::http::{Answer, NoAnswer, Request};
use std::thread::JoinHandle;

/// A delivery under way.
pub(crate) type Sent = JoinHandle<Result<Answer, NoAnswer>>;

/// Delivers once, in a thread of its own.
pub(crate) fn send(port: u16, request: Request) -> Sent {
    std::thread::spawn(move || request.send_blocking(port))
}

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
            let answer = request
                .send_blocking(port)
                .ok()
                .filter(|it| !asks_again(it));
            last = answer.map(|answer| (port, answer));
            last.is_some()
        },
    );
    last.unwrap()
}
