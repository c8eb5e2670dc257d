//! What a connection is doing, and for how long it has done nothing: requests in hand, answers that
//! wait to be read.

use crate::settings::Limits;
use crate::upstream::{AnyBody, BoxError};
use bytes::Bytes;
use http::Version;
use http_body::{Body, Frame, SizeHint};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// An answer is handed out in pieces of this size, so that a client that reads nothing is told from
/// one that reads slowly.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// An HTTP/2 answer whose last piece is larger than this ends with a piece of one byte, which is asked for
/// when the client has let in all before it. Without it the end of an answer would count as read as soon
/// as it waits for the client's window.
const END_BYTES_MAX: usize = 4 * 1024;

/// What happens on one connection.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<ConnectionState>>);

#[derive(Debug)]
struct ConnectionState {
    /// Whether there was a request yet.
    begun: bool,
    /// Requests without the whole of their answer.
    in_hand: usize,
    /// Requests so far: the next one's number.
    count: u64,
    /// Answers of which a piece waits for the client, by the number of their request, and since when it
    /// does. Each has its own clock: reading one answer must not excuse leaving another unread.
    unread: BTreeMap<u64, Instant>,
    /// When there was something in hand for the last time.
    quiet_since: Instant,
}

/// Why a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutReason {
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
pub(crate) struct RequestGuard {
    activity: Activity,
    number: u64,
}

/// The body of an answer, counted as in hand until all of it was taken.
#[derive(Debug)]
pub(crate) struct TrackedBody {
    body: AnyBody,
    /// What did not fit into the last piece.
    left: Bytes,
    version: Version,
    guard: RequestGuard,
}

// === impl Activity ===

impl Activity {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(ConnectionState {
            begun: false,
            in_hand: 0,
            count: 0,
            unread: BTreeMap::new(),
            quiet_since: now,
        })))
    }

    /// A request came.
    pub(crate) fn begin(&self) -> RequestGuard {
        let mut state = self.lock();
        state.begun = true;
        state.in_hand += 1;
        state.count += 1;
        let number = state.count;
        drop(state);
        RequestGuard {
            activity: self.clone(),
            number,
        }
    }

    /// Resolves when the connection has used up somebody's patience.
    pub(crate) async fn overdue(&self, limits: &Limits) -> CutReason {
        loop {
            let now = Instant::now();
            let due = self.lock().due(limits);
            match due {
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
    pub(crate) fn timed_out(&self) -> CutReason {
        let state = self.lock();
        if state.in_hand > 0 {
            CutReason::Vanished
        } else if state.begun {
            CutReason::Idle
        } else {
            CutReason::NoRequest
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
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

// === impl ConnectionState ===

impl ConnectionState {
    /// When this is too much, unless something happens.
    fn due(&self, limits: &Limits) -> Option<(Instant, CutReason)> {
        if let Some(oldest) = self.unread.values().min() {
            Some((*oldest + limits.answer_idle_max, CutReason::Unread))
        } else if self.in_hand > 0 {
            None
        } else if self.begun {
            Some((self.quiet_since + limits.idle_max, CutReason::Idle))
        } else {
            Some((self.quiet_since + limits.head_within, CutReason::NoRequest))
        }
    }
}

// === impl CutReason ===

impl CutReason {
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

// === impl RequestGuard ===

impl RequestGuard {
    /// The client has to take a piece.
    fn given(&self) {
        let now = Instant::now();
        self.activity.lock().unread.insert(self.number, now);
    }

    /// It took all there is; the handler has to say more.
    fn taken(&self) {
        self.activity.lock().unread.remove(&self.number);
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        state.unread.remove(&self.number);
        state.in_hand -= 1;
        state.quiet_since = Instant::now();
    }
}

// === impl TrackedBody ===

impl TrackedBody {
    pub(crate) fn new(body: AnyBody, version: Version, guard: RequestGuard) -> Self {
        // Its head is there to be read, at least.
        guard.given();
        Self {
            body,
            left: Bytes::new(),
            version,
            guard,
        }
    }

    /// As much of it as one piece holds.
    fn piece(&mut self, mut data: Bytes) -> Bytes {
        let whole = data.len();
        let ends = whole <= PIECE_BYTES_MAX && self.body.is_end_stream();
        let length = if ends && whole > END_BYTES_MAX && self.version == Version::HTTP_2 {
            whole - 1
        } else {
            whole.min(PIECE_BYTES_MAX)
        };
        self.left = data.split_off(length);
        self.guard.given();
        data
    }
}

impl Body for TrackedBody {
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
            this.guard.taken();
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

    fn large() -> AnyBody {
        full(Bytes::from(vec![0; 3 * PIECE_BYTES_MAX]))
    }

    #[tokio::test(start_paused = true)]
    async fn silence_idleness_and_unread_answers_have_each_their_time() {
        let limits = Limits::default();
        let begun = Instant::now();
        let activity = Activity::new();
        assert_eq!(activity.overdue(&limits).await, CutReason::NoRequest);
        assert_eq!(begun.elapsed().as_secs(), limits.head_within.as_secs());

        let in_hand = activity.begin();
        let long = tokio::time::timeout(Duration::from_secs(3600), activity.overdue(&limits));
        assert!(long.await.is_err(), "a handler takes its own time");

        let mut answer = TrackedBody::new(large(), Version::HTTP_11, in_hand);
        let begun = Instant::now();
        assert!(answer.frame().await.is_some());
        assert_eq!(activity.overdue(&limits).await, CutReason::Unread);
        assert_eq!(begun.elapsed().as_secs(), limits.answer_idle_max.as_secs());

        assert!(answer.frame().await.is_some());
        let short = tokio::time::timeout(limits.answer_idle_max / 2, activity.overdue(&limits));
        assert!(short.await.is_err(), "a piece was taken");
        drop(answer);
        let begun = Instant::now();
        assert_eq!(activity.overdue(&limits).await, CutReason::Idle);
        assert_eq!(begun.elapsed().as_secs(), limits.idle_max.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_read_does_not_excuse_one_that_is_not() {
        let (limits, activity) = (Limits::default(), Activity::new());
        let begun = Instant::now();
        let unread = TrackedBody::new(large(), Version::HTTP_2, activity.begin());
        let reads = async {
            loop {
                tokio::time::sleep(limits.answer_idle_max / 2).await;
                let mut read = TrackedBody::new(large(), Version::HTTP_2, activity.begin());
                while read.frame().await.is_some() {}
            }
        };
        let cut = tokio::select! {
            why = activity.overdue(&limits) => why,
            () = reads => unreachable!("it reads for ever"),
            () = tokio::time::sleep(4 * limits.answer_idle_max) => panic!("it was not cut"),
        };
        assert_eq!(cut, CutReason::Unread);
        assert_eq!(begun.elapsed().as_secs(), limits.answer_idle_max.as_secs());
        drop(unread);
    }

    #[tokio::test]
    async fn the_end_of_an_http2_answer_is_asked_for_by_itself() {
        for (length, pieces) in [(END_BYTES_MAX, 1), (END_BYTES_MAX + 1, 2)] {
            let body = full(Bytes::from(vec![0; length]));
            let mut answer = TrackedBody::new(body, Version::HTTP_2, Activity::new().begin());
            for piece in 1..=pieces {
                assert!(!answer.is_end_stream(), "{length}: before piece {piece}");
                assert!(answer.frame().await.is_some());
            }
            assert!(answer.is_end_stream(), "{length}");
        }
    }

    #[tokio::test]
    async fn an_answer_in_pieces_is_the_same_answer() {
        let lengths = [
            0,
            1,
            PIECE_BYTES_MAX,
            PIECE_BYTES_MAX + 1,
            5 * PIECE_BYTES_MAX,
        ];
        let both = [Version::HTTP_11, Version::HTTP_2];
        for (length, version) in lengths.into_iter().flat_map(|it| both.map(|way| (it, way))) {
            let whole: Bytes = (0..=255).cycle().take(length).collect::<Vec<u8>>().into();
            let answer = TrackedBody::new(full(whole.clone()), version, Activity::new().begin());
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
