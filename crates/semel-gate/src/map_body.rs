//! Bodies whose frames pass through a function on their way.

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// What polling a body gives.
pub(crate) type Polled<E> = Poll<Option<Result<Frame<Bytes>, E>>>;

/// A body of the same length, each of whose frames is what the function makes of it.
pub(crate) struct MapBody<B, F> {
    body: B,
    map: F,
}

/// The same body, with what `keep` leaves of its trailers: headers that come behind a body are held to rules
/// of their own.
pub(crate) fn filter_trailers<B>(
    body: B,
    keep: impl Fn(&HeaderMap) -> HeaderMap + Unpin,
) -> impl Body<Data = Bytes, Error = B::Error> + Unpin
where
    B: Body<Data = Bytes> + Unpin,
{
    let keep = move |frame: Frame<Bytes>| match frame.into_trailers() {
        Ok(trailers) => Frame::trailers(keep(&trailers)),
        Err(frame) => frame,
    };
    MapBody::new(body, move |polled: Polled<B::Error>, _| {
        polled.map_ok(&keep)
    })
}

// === impl MapBody ===

impl<B, F, E> MapBody<B, F>
where
    B: Body<Data = Bytes>,
    F: FnMut(Polled<B::Error>, &mut Context<'_>) -> Polled<E>,
{
    pub(crate) const fn new(body: B, map: F) -> Self {
        Self { body, map }
    }
}

impl<B, F, E> Body for MapBody<B, F>
where
    B: Body<Data = Bytes> + Unpin,
    F: FnMut(Polled<B::Error>, &mut Context<'_>) -> Polled<E> + Unpin,
{
    type Data = Bytes;
    type Error = E;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<E> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        (self.map)(polled, cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
