//! Bodies: reading them whole, each bounded, and all of them together.

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// How long a sender may keep the next piece of a body to itself.
const BODY_IDLE_MAX: Duration = Duration::from_secs(10);

/// How many bytes of bodies are in hand, of how many that may be.
#[derive(Clone, Debug)]
pub(crate) struct Bodies {
    bytes_max: usize,
    bytes: Arc<AtomicUsize>,
}

/// A share of the bytes in hand, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    bodies: Bodies,
    bytes: usize,
}

/// Why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is larger than the route allows.
    TooLarge { bytes_max: usize },
    /// All bodies in hand are too large together.
    TooMuch,
    /// The sender stopped in the middle.
    Broken(String),
}

// === impl Bodies ===

impl Bodies {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            bytes: Arc::default(),
        }
    }

    /// Reads a body of at most `bytes_max`.
    pub(crate) async fn read<B>(
        &self,
        mut body: B,
        bytes_max: usize,
    ) -> Result<(Bytes, Share), Unread>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: fmt::Display,
    {
        let mut share = self.share();
        let mut read = Pieces::default();
        // What is announced is reserved at once, so that a body too many is refused early.
        if let Some(announced) = body.size_hint().exact() {
            let announced = usize::try_from(announced).unwrap_or(usize::MAX);
            if announced > bytes_max {
                return Err(Unread::TooLarge { bytes_max });
            }
            share.grow_to(announced)?;
        }
        while let Some(frame) = next(&mut body).await? {
            read.push(frame);
            if read.len() > bytes_max {
                return Err(Unread::TooLarge { bytes_max });
            }
            share.grow_to(read.len())?;
        }
        Ok((read.whole(), share))
    }

    fn share(&self) -> Share {
        Share {
            bodies: self.clone(),
            bytes: 0,
        }
    }
}

/// The next piece of a body; trailers are no piece.
async fn next<B>(body: &mut B) -> Result<Option<Bytes>, Unread>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: fmt::Display,
{
    loop {
        let frame = timeout(BODY_IDLE_MAX, body.frame()).await;
        let frame =
            frame.map_err(|_| Unread::Broken(format!("nothing came for {BODY_IDLE_MAX:?}")))?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => return Err(Unread::Broken(error.to_string())),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

// === impl Share ===

impl Share {
    fn grow_to(&mut self, bytes: usize) -> Result<(), Unread> {
        let more = bytes.saturating_sub(self.bytes);
        let before = self.bodies.bytes.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        if before + more > self.bodies.bytes_max {
            return Err(Unread::TooMuch);
        }
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.bodies.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The pieces of a body. One piece, the usual case, is not copied.
#[derive(Default)]
pub(crate) enum Pieces {
    #[default]
    None,
    One(Bytes),
    Many(BytesMut),
}

// === impl Pieces ===

impl Pieces {
    pub(crate) fn push(&mut self, piece: Bytes) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(piece),
            Self::One(first) => {
                let mut many = BytesMut::from(first);
                many.extend_from_slice(&piece);
                Self::Many(many)
            }
            Self::Many(mut many) => {
                many.extend_from_slice(&piece);
                Self::Many(many)
            }
        };
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(piece) => piece.len(),
            Self::Many(many) => many.len(),
        }
    }

    pub(crate) fn whole(self) -> Bytes {
        match self {
            Self::None => Bytes::new(),
            Self::One(piece) => piece,
            Self::Many(many) => many.freeze(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;

    fn chunked(
        pieces: &[&'static str],
    ) -> impl Body<Data = Bytes, Error = std::io::Error> + Unpin + use<> {
        let frames: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))))
            .collect();
        StreamBody::new(futures_util::stream::iter(frames))
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_not_read() {
        let bodies = Bodies::new(100);
        let told = bodies
            .read(Full::new(Bytes::from_static(b"12345")), 4)
            .await;
        assert_eq!(told.unwrap_err(), Unread::TooLarge { bytes_max: 4 });
        let told = bodies.read(chunked(&["123", "45"]), 4).await;
        assert_eq!(told.unwrap_err(), Unread::TooLarge { bytes_max: 4 });
        let (whole, _share) = bodies.read(chunked(&["123", "45"]), 5).await.unwrap();
        assert_eq!(whole, "12345");
    }

    #[tokio::test]
    async fn all_bodies_together_are_bounded_and_given_back() {
        let bodies = Bodies::new(8);
        let body = || Full::new(Bytes::from_static(b"12345"));
        let first = bodies.read(body(), 5).await.unwrap();
        assert_eq!(bodies.read(body(), 5).await.unwrap_err(), Unread::TooMuch);
        drop(first);
        assert!(bodies.read(body(), 5).await.is_ok());
        assert_eq!(bodies.bytes.load(Ordering::Relaxed), 0);
    }
}
