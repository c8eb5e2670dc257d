//! Bytes on a connection, as they are.

use super::prelude::*;
use std::fmt;
use std::ops::Deref;

/// All that came back on a connection.
#[derive(Clone, Debug)]
pub(crate) struct RawReply(String);

/// Connects and sends these bytes.
pub(crate) async fn connect(address: SocketAddr, bytes: impl AsRef<[u8]>) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes.as_ref()).await.unwrap();
    stream
}

/// Waits until the peer closes a connection. A reset is an end, too.
pub(crate) async fn closed(mut stream: impl AsyncReadExt + Unpin) -> RawReply {
    let mut read = Vec::new();
    drop(within("the end of the connection", stream.read_to_end(&mut read)).await);
    RawReply(String::from_utf8_lossy(&read).into_owned())
}

/// Goes on sending these bytes at this pace until the peer has closed the connection.
pub(crate) async fn dripping(stream: TcpStream, bytes: &[u8], pause: Duration) -> RawReply {
    let (from, mut to) = stream.into_split();
    let drips = async {
        let mut beat = tokio::time::interval(pause);
        loop {
            beat.tick().await;
            if to.write_all(bytes).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        reply = closed(from) => reply,
        () = drips => unreachable!("it goes on for ever"),
    }
}

/// Writes bytes, says that no more come, and reads to the end of the connection.
pub(crate) async fn exchange(address: SocketAddr, bytes: impl AsRef<[u8]>) -> RawReply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A peer that refuses early may close before all is written.
    drop(stream.write_all(bytes.as_ref()).await);
    drop(stream.shutdown().await);
    closed(stream).await
}

impl Bed {
    /// Sends a request as it is, on a connection of its own.
    pub(crate) async fn send_raw(&self, ask: &Ask) -> RawReply {
        exchange(self.gate, ask.raw()).await
    }
}

// === impl RawReply ===

impl RawReply {
    /// Its first answer has this status.
    #[track_caller]
    pub(crate) fn is(&self, status: u16) {
        self.is_for("", status);
    }

    /// The same, for one request of many.
    #[track_caller]
    pub(crate) fn is_for(&self, what: impl fmt::Display, status: u16) {
        let line = format!("HTTP/1.1 {status}");
        assert!(self.starts_with(&line), "{what}: {self}");
    }

    /// There is this problem in it.
    #[track_caller]
    pub(crate) fn is_problem(&self, what: impl fmt::Display, status: u16, code: &str) {
        let all = [format!("HTTP/1.1 {status}"), format!("errors.md#{code}")];
        for part in all {
            assert!(self.contains(&part), "{what}: no {part} in {self}");
        }
    }

    /// How many answers came.
    pub(crate) fn answers(&self) -> usize {
        self.matches("HTTP/1.1 ").count()
    }
}

impl Deref for RawReply {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RawReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
