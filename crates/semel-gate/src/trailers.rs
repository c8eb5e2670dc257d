//! Trailers: headers that come behind a body, held to rules of their own.

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body whose trailers are what `keep` leaves of them.
pub(crate) struct FilteredTrailers<B, K> {
    body: B,
    keep: K,
}

// === impl FilteredTrailers ===

impl<B, K> FilteredTrailers<B, K>
where
    K: Fn(&HeaderMap) -> HeaderMap,
{
    pub(crate) const fn new(body: B, keep: K) -> Self {
        Self { body, keep }
    }

    fn screen(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_trailers() {
            Ok(trailers) => Frame::trailers((self.keep)(&trailers)),
            Err(frame) => frame,
        }
    }
}

impl<B, K> Body for FilteredTrailers<B, K>
where
    B: Body<Data = Bytes> + Unpin,
    K: Fn(&HeaderMap) -> HeaderMap + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let next = Pin::new(&mut self.body).poll_frame(cx);
        next.map(|frame| frame.map(|frame| frame.map(|frame| self.screen(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
