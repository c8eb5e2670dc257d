//! Silence: how long a handler may neither take nor say anything about a request that is passed on.

use crate::map_body::{MapBody, Polled};
use crate::settings::Limits;
use bytes::Bytes;
use http_body::Body;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// A clock that each piece of the request sets anew: a long upload is not silence.
#[derive(Clone, Debug)]
pub(crate) struct Silence {
    max: Duration,
    since: Arc<Mutex<Instant>>,
}

// === impl Silence ===

impl Silence {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            max: limits.handler_silence_max,
            since: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// The body of the request: what the handler takes of it is a sign of life.
    pub(crate) fn broken_by<B>(
        &self,
        body: B,
    ) -> impl Body<Data = Bytes, Error = B::Error> + Unpin + use<B>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let silence = self.clone();
        MapBody::new(body, move |polled: Polled<B::Error>, _| {
            if polled.is_ready() {
                silence.heard();
            }
            polled
        })
    }

    /// Waits for the head of the answer.
    ///
    /// # Errors
    /// When there was silence for too long; how long that is.
    pub(crate) async fn bounds<T>(&self, answer: impl Future<Output = T>) -> Result<T, Duration> {
        tokio::select! {
            biased;
            answer = answer => Ok(answer),
            () = self.too_long() => Err(self.max),
        }
    }

    async fn too_long(&self) {
        loop {
            let until = self.since() + self.max;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }

    fn since(&self) -> Instant {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Frame;
    use http_body_util::{BodyExt, StreamBody};
    use std::convert::Infallible;
    use std::future::pending;

    #[tokio::test(start_paused = true)]
    async fn a_long_upload_is_not_silence() {
        let (limits, begun) = (Limits::default(), Instant::now());
        let (max, silence) = (limits.handler_silence_max, Silence::new(&limits));
        let pieces = futures_util::stream::unfold(0, move |sent| async move {
            tokio::time::sleep(max / 2).await;
            let piece = Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x")));
            (sent < 10).then_some((piece, sent + 1))
        });
        let mut body = silence.broken_by(StreamBody::new(Box::pin(pieces)));
        let answer = async {
            while body.frame().await.is_some() {}
            pending::<()>().await;
        };
        assert_eq!(silence.bounds(answer).await, Err(max));
        // Ten pieces and the end, each after half of it, and then all of it.
        assert_eq!(begun.elapsed().as_secs(), (max * 13 / 2).as_secs());
    }
}
