//! Pace: how slowly a sender may send a body.

use crate::map_body::MapBody;
use crate::settings::Limits;
use bytes::Bytes;
use http_body::Body;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Why a body did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PaceError<E> {
    /// See the limits.
    #[error("it came too slowly")]
    TooSlow,
    /// The connection ended, or what came is not a body.
    #[error("{0}")]
    Broken(E),
}

/// How a body has come so far. Only time spent waiting for its sender counts.
#[derive(Debug)]
struct Pace {
    idle_max: Duration,
    whole: Option<Whole>,
    waited: Duration,
    bytes: u64,
    /// Since when the sender is waited for.
    waiting: Option<Instant>,
    alarm: Option<Pin<Box<Sleep>>>,
}

/// What is asked of a body as a whole.
#[derive(Clone, Copy, Debug)]
struct Whole {
    within: Duration,
    slow_for: Duration,
    bytes_per_second_min: u32,
}

/// A body that is read whole. It ends with [`PaceError::TooSlow`] when its sender is too slow.
pub(crate) fn whole<B>(
    body: B,
    limits: &Limits,
) -> impl Body<Data = Bytes, Error = PaceError<B::Error>> + Unpin + use<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    let whole = Whole {
        within: limits.body_within,
        slow_for: limits.body_slow_for,
        bytes_per_second_min: limits.body_bytes_per_second_min,
    };
    paced(body, limits.body_idle_max, Some(whole))
}

/// The same for a body that is passed on as it comes: it may be of any length, and whoever takes it may be
/// the slow one.
pub(crate) fn passed<B>(
    body: B,
    limits: &Limits,
) -> impl Body<Data = Bytes, Error = PaceError<B::Error>> + Unpin + use<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    paced(body, limits.body_idle_max, None)
}

/// The same for an answer that is passed on as it comes; its sender is the handler.
pub(crate) fn answered<B>(
    body: B,
    limits: &Limits,
) -> impl Body<Data = Bytes, Error = PaceError<B::Error>> + Unpin + use<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    paced(body, limits.handler_silence_max, None)
}

fn paced<B>(
    body: B,
    idle_max: Duration,
    whole: Option<Whole>,
) -> impl Body<Data = Bytes, Error = PaceError<B::Error>> + Unpin + use<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut pace = Pace {
        idle_max,
        whole,
        waited: Duration::ZERO,
        bytes: 0,
        waiting: None,
        alarm: None,
    };
    MapBody::new(body, move |polled, cx: &mut Context<'_>| match polled {
        Poll::Ready(Some(Ok(frame))) => {
            pace.came(frame.data_ref().map_or(0, Bytes::len));
            Poll::Ready(Some(Ok(frame)))
        }
        Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(PaceError::Broken(error)))),
        Poll::Ready(None) => Poll::Ready(None),
        Poll::Pending => pace.poll_alarm(cx).map(|()| Some(Err(PaceError::TooSlow))),
    })
}

// === impl Pace ===

impl Pace {
    /// How long the next piece may take.
    fn patience(&self) -> Duration {
        let Some(whole) = self.whole else {
            return self.idle_max;
        };
        let earned = Duration::from_secs(self.bytes) / whole.bytes_per_second_min.max(1);
        let slow = whole.slow_for.saturating_add(earned);
        let all = whole.within.min(slow).saturating_sub(self.waited);
        self.idle_max.min(all)
    }

    fn came(&mut self, bytes: usize) {
        if let Some(since) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        self.alarm = None;
        self.bytes += bytes as u64;
    }

    /// Ready when there was nothing for too long.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let since = *self.waiting.get_or_insert_with(Instant::now);
        let until = since + self.patience();
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(sleep_until(until)));
        alarm.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use http_body_util::{BodyExt, StreamBody};
    use std::convert::Infallible;

    /// A body that sends `bytes` every `pause`, for ever.
    fn dripping(
        bytes: usize,
        pause: Duration,
    ) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let drip = futures_util::stream::unfold((), move |()| async move {
            tokio::time::sleep(pause).await;
            Some((Ok(Frame::data(Bytes::from(vec![0; bytes]))), ()))
        });
        StreamBody::new(Box::pin(drip))
    }

    /// How long it is read, and how much came.
    async fn read(mut paced: impl Body<Data = Bytes> + Unpin) -> (u64, usize) {
        let (begun, mut came) = (Instant::now(), 0);
        while let Some(Ok(frame)) = paced.frame().await {
            came += frame.into_data().map_or(0, |data| data.len());
        }
        (begun.elapsed().as_secs(), came)
    }

    #[tokio::test(start_paused = true)]
    async fn single_bytes_are_cut_by_their_rate() {
        let limits = Limits::default();
        let drip = dripping(1, Duration::from_millis(900));
        let (seconds, came) = read(whole(drip, &limits)).await;
        assert_eq!((seconds, came), (limits.body_slow_for.as_secs(), 11));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_cut_and_so_is_a_body_without_end() {
        let limits = Limits::default();
        let silent = dripping(1, Duration::from_secs(3600));
        let (seconds, _) = read(passed(silent, &limits)).await;
        assert_eq!(seconds, limits.body_idle_max.as_secs());
        let endless = dripping(64 * 1024, Duration::from_secs(1));
        let (seconds, _) = read(whole(endless, &limits)).await;
        assert_eq!(seconds, limits.body_within.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_the_reader_takes_is_not_the_senders() {
        let limits = Limits::default();
        let mut paced = whole(dripping(4096, Duration::from_secs(1)), &limits);
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert!(matches!(paced.frame().await, Some(Ok(_))));
        }
    }
}
