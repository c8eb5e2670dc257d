//! What a connection is doing, and for how long it has done nothing: requests in hand, answers that
//! wait to be read.

use crate::settings::Limits;
use crate::upstream::{AnyBody, BoxError};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// An answer is handed out in pieces of this size, so that a client that reads nothing is told from
/// one that reads slowly.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// What happens on one connection.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<State>>);

#[derive(Clone, Copy, Debug)]
struct State {
    /// Whether there was a request yet.
    begun: bool,
    /// Requests without the whole of their answer.
    in_hand: usize,
    /// Answers of which a piece waits for the client.
    unread: usize,
    /// When there was something in hand for the last time.
    quiet_since: Instant,
    /// When the client took a piece of an answer, or a first piece was there to be taken.
    taken_at: Instant,
}

/// Why a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// No request came at all: silence, half a preface, half a head.
    NoRequest,
    /// It is kept for nothing.
    Idle,
    /// The client does not read its answer.
    Unread,
    /// The client does not answer pings.
    Vanished,
}

/// A request in hand, until it is dropped.
#[derive(Debug)]
pub(crate) struct InHand {
    activity: Activity,
    unread: bool,
}

/// The body of an answer, counted as in hand until all of it was taken.
#[derive(Debug)]
pub(crate) struct Answering {
    body: AnyBody,
    /// What did not fit into the last piece.
    left: Bytes,
    in_hand: InHand,
}

// === impl Activity ===

impl Activity {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(State {
            begun: false,
            in_hand: 0,
            unread: 0,
            quiet_since: now,
            taken_at: now,
        })))
    }

    /// A request came.
    pub(crate) fn begin(&self) -> InHand {
        let mut state = self.lock();
        state.begun = true;
        state.in_hand += 1;
        drop(state);
        InHand {
            activity: self.clone(),
            unread: false,
        }
    }

    /// Resolves when the connection has used up somebody's patience.
    pub(crate) async fn overdue(&self, limits: &Limits) -> Overdue {
        loop {
            let now = Instant::now();
            let state = *self.lock();
            match state.due(limits) {
                Some((at, why)) if at <= now => return why,
                due => {
                    // What begins meanwhile may be due sooner, but never sooner than this.
                    let look_again = now + shortest(limits);
                    let at = due.map_or(look_again, |(at, _)| at.min(look_again));
                    sleep_until(at).await;
                }
            }
        }
    }

    /// What it was that the clocks of HTTP itself did not wait for any longer.
    pub(crate) fn timed_out(&self) -> Overdue {
        let state = *self.lock();
        if state.in_hand > 0 {
            Overdue::Vanished
        } else if state.begun {
            Overdue::Idle
        } else {
            Overdue::NoRequest
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shortest(limits: &Limits) -> Duration {
    let Limits {
        head_within,
        idle_max,
        answer_idle_max,
        ..
    } = limits;
    *head_within.min(idle_max).min(answer_idle_max)
}

// === impl State ===

impl State {
    /// When this is too much, unless something happens.
    fn due(&self, limits: &Limits) -> Option<(Instant, Overdue)> {
        if self.unread > 0 {
            Some((self.taken_at + limits.answer_idle_max, Overdue::Unread))
        } else if self.in_hand > 0 {
            None
        } else if self.begun {
            Some((self.quiet_since + limits.idle_max, Overdue::Idle))
        } else {
            Some((self.quiet_since + limits.head_within, Overdue::NoRequest))
        }
    }
}

// === impl Overdue ===

impl Overdue {
    /// The word for it, in metrics and log lines.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::NoRequest => "no_request",
            Self::Idle => "idle",
            Self::Unread => "answer_unread",
            Self::Vanished => "vanished",
        }
    }
}

// === impl InHand ===

impl InHand {
    /// The client has to take a piece.
    fn given(&mut self) {
        let mut state = self.activity.lock();
        state.unread += usize::from(!self.unread);
        state.taken_at = Instant::now();
        self.unread = true;
    }

    /// It took all there is; the handler has to say more.
    fn taken(&mut self) {
        if self.unread {
            self.activity.lock().unread -= 1;
            self.unread = false;
        }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.taken();
        let mut state = self.activity.lock();
        state.in_hand -= 1;
        state.quiet_since = Instant::now();
    }
}

// === impl Answering ===

impl Answering {
    pub(crate) fn new(body: AnyBody, mut in_hand: InHand) -> Self {
        // Its head is there to be read, at least.
        in_hand.given();
        Self {
            body,
            left: Bytes::new(),
            in_hand,
        }
    }

    /// As much of it as one piece holds.
    fn piece(&mut self, mut data: Bytes) -> Bytes {
        self.left = data.split_off(data.len().min(PIECE_BYTES_MAX));
        self.in_hand.given();
        data
    }
}

impl Body for Answering {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if !this.left.is_empty() {
            let left = std::mem::take(&mut this.left);
            return Poll::Ready(Some(Ok(Frame::data(this.piece(left)))));
        }
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if polled.is_pending() {
            this.in_hand.taken();
        }
        let frame = match ready!(polled) {
            Some(Ok(frame)) => frame,
            ended @ (Some(Err(_)) | None) => return Poll::Ready(ended),
        };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(data) => Frame::data(this.piece(data)),
            Err(trailers) => trailers,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (left, rest) = (self.left.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + left);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + left);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::full;
    use http_body_util::BodyExt;

    #[tokio::test(start_paused = true)]
    async fn silence_idleness_and_unread_answers_have_each_their_time() {
        let limits = Limits::default();
        let begun = Instant::now();
        let activity = Activity::new();
        assert_eq!(activity.overdue(&limits).await, Overdue::NoRequest);
        assert_eq!(begun.elapsed().as_secs(), limits.head_within.as_secs());

        let in_hand = activity.begin();
        let long = tokio::time::timeout(Duration::from_secs(3600), activity.overdue(&limits));
        assert!(long.await.is_err(), "a handler takes its own time");

        let mut answer = Answering::new(full(Bytes::from(vec![0; 3 * PIECE_BYTES_MAX])), in_hand);
        let begun = Instant::now();
        assert!(answer.frame().await.is_some());
        assert_eq!(activity.overdue(&limits).await, Overdue::Unread);
        assert_eq!(begun.elapsed().as_secs(), limits.answer_idle_max.as_secs());

        assert!(answer.frame().await.is_some());
        let short = tokio::time::timeout(limits.answer_idle_max / 2, activity.overdue(&limits));
        assert!(short.await.is_err(), "a piece was taken");
        drop(answer);
        let begun = Instant::now();
        assert_eq!(activity.overdue(&limits).await, Overdue::Idle);
        assert_eq!(begun.elapsed().as_secs(), limits.idle_max.as_secs());
    }

    #[tokio::test]
    async fn an_answer_in_pieces_is_the_same_answer() {
        for length in [
            0,
            1,
            PIECE_BYTES_MAX,
            PIECE_BYTES_MAX + 1,
            5 * PIECE_BYTES_MAX,
        ] {
            let whole: Bytes = (0..=255).cycle().take(length).collect::<Vec<u8>>().into();
            let answer = Answering::new(full(whole.clone()), Activity::new().begin());
            assert_eq!(answer.size_hint().exact(), Some(length as u64));
            assert_eq!(answer.is_end_stream(), length == 0);
            let mut answer = answer;
            let mut read = Vec::new();
            while let Some(frame) = answer.frame().await {
                let piece = frame.unwrap().into_data().unwrap();
                assert!(piece.len() <= PIECE_BYTES_MAX);
                read.extend_from_slice(&piece);
                assert_eq!(
                    answer.size_hint().exact(),
                    Some((length - read.len()) as u64)
                );
            }
            assert_eq!(read, whole);
        }
    }
}
