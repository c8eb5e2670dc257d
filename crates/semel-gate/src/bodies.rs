//! Bodies: reading them whole, each bounded, and all of them together. The heads of their requests count
//! with them.
//!
//! Bytes count when they are there, not when they are announced. Nobody holds all of the room: a
//! connection (all its streams together) and an address have their part.

use crate::address_limits::AddressShare;
use crate::byte_budget::{Acquired, ByteBudget};
use crate::head;
use crate::pace::{self, PaceError};
use crate::settings::{Limits, Settings};
use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http_body::Body;
use http_body_util::BodyExt;
use std::fmt;
use std::sync::Arc;
use tokio::time::timeout;

/// What reading a body may take, itself included, as a multiple of its size.
const ROOM_PER_BODY: usize = 4;

/// The connection's, its address's, and that of all.
const ROOMS: usize = 3;

/// The room for bodies in hand.
#[derive(Clone, Debug)]
pub(crate) struct Bodies {
    room: Arc<ByteBudget>,
    part_bytes: usize,
    limits: Arc<Limits>,
}

/// One connection's part of the room, and its address's.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionBudget {
    connection: Arc<ByteBudget>,
    origin: Option<Arc<AddressShare>>,
}

/// A share of the room, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct BodyReservation {
    room: Arc<ByteBudget>,
    holder: ConnectionBudget,
    bytes: usize,
}

/// Why a body was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// It is larger than the route allows.
    TooLarge { bytes_max: usize },
    /// There was no room: all bodies in hand are too large together, or those of this sender.
    NoRoom,
    /// Its sender was too slow.
    TooSlow,
    /// The sender stopped in the middle.
    Broken(String),
}

// === impl Bodies ===

impl Bodies {
    pub(crate) fn new(settings: &Settings) -> Self {
        let all = settings.bodies_bytes_max;
        let largest = settings.routes.iter().map(|route| route.body_bytes_max);
        let largest = largest.max().unwrap_or(0);
        let read = largest.saturating_mul(ROOM_PER_BODY);
        // Whatever fits without its head fits with it.
        let with_head = |bytes: usize| bytes.saturating_add(head::ROOM_MAX);
        let fits = [largest, read].into_iter().filter(|bytes| *bytes <= all);
        let all = fits.map(with_head).fold(all, usize::max);
        Self {
            room: Arc::new(ByteBudget::new(all)),
            // The largest body fits into a part, with its head and what reading it takes.
            part_bytes: settings.limits.part(all).max(with_head(read)).min(all),
            limits: Arc::new(settings.limits.clone()),
        }
    }

    /// The bytes that one connection, or one address, may hold.
    pub(crate) const fn part_bytes(&self) -> usize {
        self.part_bytes
    }

    /// The part of a new connection.
    pub(crate) fn holder(&self, origin: Option<Arc<AddressShare>>) -> ConnectionBudget {
        ConnectionBudget {
            connection: Arc::new(ByteBudget::new(self.part_bytes)),
            origin,
        }
    }

    /// A share for the head of a request. It does not wait: heads that wait would not be counted.
    ///
    /// # Errors
    /// When there is no room.
    pub(crate) fn head(
        &self,
        holder: &ConnectionBudget,
        parts: &Parts,
    ) -> Result<BodyReservation, BodyError> {
        let mut share = self.share(holder);
        share.reserve(head::room(parts))?;
        Ok(share)
    }

    /// Reads a body of at most `bytes_max`, into the share of its head.
    pub(crate) async fn read<B>(
        &self,
        mut share: BodyReservation,
        body: B,
        bytes_max: usize,
    ) -> Result<(Bytes, BodyReservation), BodyError>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: fmt::Display,
    {
        let announced = body.size_hint().lower();
        if announced > bytes_max as u64 {
            return Err(BodyError::TooLarge { bytes_max });
        }
        let mut read = BodyBuffer::default();
        let mut body = pace::whole(body, &self.limits);
        while let Some(piece) = next(&mut body).await? {
            if read.len() + piece.len() > bytes_max {
                return Err(BodyError::TooLarge { bytes_max });
            }
            share.wait_for(piece.len(), &self.limits).await?;
            read.push(piece);
        }
        Ok((read.whole(), share))
    }

    /// Takes room for reading a body as JSON, piece by piece, and says whether there is some. It lasts no
    /// longer than the reading, so it counts as part of all and is nobody's own.
    pub(crate) fn room_for_reading(&self) -> impl FnMut(usize) -> bool + use<> {
        let mut share = self.share(&self.holder(None));
        move |bytes| share.reserve(bytes).is_ok()
    }

    fn share(&self, holder: &ConnectionBudget) -> BodyReservation {
        BodyReservation {
            room: Arc::clone(&self.room),
            holder: holder.clone(),
            bytes: 0,
        }
    }
}

/// The next piece of a body; trailers are not a piece.
async fn next<E: fmt::Display>(
    body: &mut (impl Body<Data = Bytes, Error = PaceError<E>> + Unpin),
) -> Result<Option<Bytes>, BodyError> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(PaceError::TooSlow)) => return Err(BodyError::TooSlow),
            Some(Err(PaceError::Broken(error))) => {
                return Err(BodyError::Broken(error.to_string()));
            }
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

// === impl BodyReservation ===

impl BodyReservation {
    /// Takes more room at once, for what is made of the body.
    ///
    /// # Errors
    /// When there is none; what was held before is still held.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), BodyError> {
        let taken: Option<Vec<_>> = self.rooms().map(|room| room.try_take(bytes)).collect();
        taken
            .ok_or(BodyError::NoRoom)?
            .into_iter()
            .for_each(Acquired::keep);
        self.bytes += bytes;
        Ok(())
    }

    /// Takes more room as soon as there is some, from the sender's own part first: whoever has used
    /// that up stands in nobody's way.
    async fn wait_for(&mut self, bytes: usize, limits: &Limits) -> Result<(), BodyError> {
        let all = async {
            let mut taken = Vec::with_capacity(ROOMS);
            for room in self.rooms() {
                taken.push(room.take(bytes).await);
            }
            taken.into_iter().for_each(Acquired::keep);
        };
        let in_time = timeout(limits.room_within, all).await;
        in_time.map_err(|_| BodyError::NoRoom)?;
        self.bytes += bytes;
        Ok(())
    }

    fn rooms(&self) -> impl Iterator<Item = &ByteBudget> {
        let origin = self.holder.origin.as_ref().map(|origin| &origin.bodies);
        std::iter::once(&*self.holder.connection)
            .chain(origin)
            .chain(std::iter::once(&*self.room))
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        self.rooms().for_each(|room| room.give_back(self.bytes));
    }
}

/// The pieces of a body. One piece, the common case, is not copied.
#[derive(Default)]
pub(crate) enum BodyBuffer {
    #[default]
    None,
    One(Bytes),
    Many(BytesMut),
}

// === impl BodyBuffer ===

impl BodyBuffer {
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
    use std::time::Duration;

    fn chunked(
        pieces: &[&'static str],
    ) -> impl Body<Data = Bytes, Error = std::io::Error> + Unpin + use<> {
        let frames: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))))
            .collect();
        StreamBody::new(futures_util::stream::iter(frames))
    }

    fn of(length: usize) -> Full<Bytes> {
        Full::new(Bytes::from(vec![b'x'; length]))
    }

    impl Bodies {
        /// Reads a body of so many bytes that a new connection sends.
        async fn read_new(&self, length: usize) -> Result<(Bytes, BodyReservation), BodyError> {
            self.read_of(&self.holder(None), length).await
        }

        /// The same from this connection.
        async fn read_of(
            &self,
            holder: &ConnectionBudget,
            length: usize,
        ) -> Result<(Bytes, BodyReservation), BodyError> {
            self.read(self.share(holder), of(length), length).await
        }
    }

    /// Room for `all`, of which one connection has `part`.
    fn bodies(all: usize, part_bytes: usize) -> Bodies {
        Bodies {
            room: Arc::new(ByteBudget::new(all)),
            part_bytes,
            limits: Arc::new(Limits::default()),
        }
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_not_read() {
        let bodies = bodies(100, 100);
        let holder = bodies.holder(None);
        let told = bodies.read(bodies.share(&holder), of(5), 4).await;
        assert_eq!(told.unwrap_err(), BodyError::TooLarge { bytes_max: 4 });
        let read = |bytes_max| {
            let share = bodies.share(&holder);
            bodies.read(share, chunked(&["123", "45"]), bytes_max)
        };
        let told = read(4).await;
        assert_eq!(told.unwrap_err(), BodyError::TooLarge { bytes_max: 4 });
        let (whole, _share) = read(5).await.unwrap();
        assert_eq!(whole, "12345");
    }

    #[tokio::test(start_paused = true)]
    async fn all_bodies_together_are_bounded_and_given_back() {
        let bodies = bodies(8, 8);
        let first = bodies.read_new(5).await.unwrap();
        assert_eq!(bodies.read_new(5).await.unwrap_err(), BodyError::NoRoom);
        drop(first);
        assert!(bodies.read_new(5).await.is_ok());
        assert_eq!(bodies.room.free(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_waits_a_while_for_room() {
        let bodies = bodies(8, 8);
        let first = bodies.read_new(5).await.unwrap();
        let leaves = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(bodies.read_new(5), leaves);
        assert!(second.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_connection_holds_its_part_and_leaves_the_rest() {
        let bodies = bodies(100, 25);
        let (greedy, fair) = (bodies.holder(None), bodies.holder(None));
        let held = bodies.read_of(&greedy, 20).await.unwrap();
        let told = bodies.read_of(&greedy, 20).await;
        assert_eq!(told.unwrap_err(), BodyError::NoRoom);
        assert!(bodies.read_of(&fair, 20).await.is_ok());
        drop(held);
        assert!(bodies.read_of(&greedy, 20).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_holds_its_part_over_all_its_connections() {
        let bodies = bodies(100, 25);
        let address_limits = crate::address_limits::AddressLimits::new(Vec::new(), 10, 25);
        let visit = |address: &str| address_limits.admit(address.parse().unwrap()).unwrap();
        let holder = |address: &str| bodies.holder(visit(address).share.clone());
        let (one, two) = (holder("203.0.113.7"), holder("203.0.113.7"));
        let _held = bodies.read_of(&one, 20).await.unwrap();
        let told = bodies.read_of(&two, 20).await;
        assert_eq!(told.unwrap_err(), BodyError::NoRoom);
        let other = holder("203.0.113.8");
        assert!(bodies.read_of(&other, 20).await.is_ok());
    }

    #[tokio::test]
    async fn more_room_is_taken_at_once_or_not_at_all() {
        let bodies = bodies(100, 50);
        let holder = bodies.holder(None);
        let (_, mut share) = bodies.read_of(&holder, 10).await.unwrap();
        share.reserve(30).unwrap();
        assert_eq!(share.reserve(20).unwrap_err(), BodyError::NoRoom);
        let (_, mut other) = bodies.read_new(50).await.unwrap();
        assert_eq!(other.reserve(1).unwrap_err(), BodyError::NoRoom);
        assert_eq!(bodies.room.free(), 10);
        assert_eq!(holder.connection.free(), 10);
        drop((share, other));
        assert_eq!(bodies.room.free(), 100);
        assert_eq!(holder.connection.free(), 50);
    }

    #[tokio::test]
    async fn a_head_counts_until_its_request_ends() {
        let request = http::Request::post("/work").header("x-long", "x".repeat(1000));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let head = head::room(&parts);
        assert!(head > 1000 && head < head::ROOM_MAX);
        let bodies = bodies(2 * head + 10, 2 * head + 10);
        let holder = bodies.holder(None);
        let first = bodies.head(&holder, &parts).unwrap();
        let read = bodies.read(first, of(10), 10).await.unwrap();
        let second = bodies.head(&holder, &parts).unwrap();
        assert_eq!(bodies.head(&holder, &parts).unwrap_err(), BodyError::NoRoom);
        drop(read);
        assert!(bodies.head(&holder, &parts).is_ok());
        drop(second);
        assert_eq!(holder.connection.free(), 2 * head + 10);
    }
}
