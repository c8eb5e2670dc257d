//! A crowd: connections that stay and say next to nothing.

use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, sleep, timeout};

/// Slow and silent connections to one HTTP server, each opened again when it is cut. They end when this is dropped.
#[derive(Debug)]
pub struct Crowd {
    _members: JoinSet<()>,
    arrived: watch::Receiver<usize>,
    count: usize,
}

/// What a member does with its connection.
#[derive(Clone, Copy, Debug)]
enum Habit {
    /// It sends nothing.
    Silent,
    /// It sends the head of a request, byte by byte.
    SlowHead,
    /// The same with a body.
    SlowBody,
}

/// One byte a second is next to nothing, and is not silence.
const BYTE_EVERY: Duration = Duration::from_secs(1);

/// The pause before a connection that was cut is opened again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

const HABITS: [Habit; 3] = [Habit::Silent, Habit::SlowHead, Habit::SlowBody];

// === impl Crowd ===

impl Crowd {
    /// Sends `count` connections to a server on this host, that has a `path` for bodies; a third each silent, with slow heads
    /// and with slow bodies.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn gather(port: u16, path: &str, count: usize) -> Self {
        let (arrive, arrived) = watch::channel(0);
        let mut members = JoinSet::new();
        for habit in HABITS.into_iter().cycle().take(count) {
            let (begin, arrive) = (habit.begin(path), arrive.clone());
            members.spawn(async move {
                let mut first = Some(arrive);
                loop {
                    if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)).await {
                        if let Some(arrive) = first.take() {
                            arrive.send_modify(|count| *count += 1);
                        }
                        stay(stream, &begin).await;
                    }
                    sleep(AGAIN_AFTER).await;
                }
            });
        }
        Self {
            _members: members,
            arrived,
            count,
        }
    }

    /// Waits until each of them has been connected; `false` when `bound` passed first.
    pub async fn complete(&mut self, bound: Duration) -> bool {
        let all = self.arrived.wait_for(|arrived| *arrived == self.count);
        timeout(bound, all).await.is_ok_and(|all| all.is_ok())
    }
}

// === impl Habit ===

impl Habit {
    /// What it sends at once; what comes after it is sent byte by byte.
    fn begin(self, path: &str) -> String {
        match self {
            Self::Silent => String::new(),
            Self::SlowHead => format!("POST {path} HTTP/1.1\r\nhost: crowd\r\nx-slow: "),
            Self::SlowBody => {
                format!("POST {path} HTTP/1.1\r\nhost: crowd\r\ncontent-length: 65536\r\n\r\n")
            }
        }
    }
}

/// Stays until the server cuts the connection.
async fn stay(mut stream: TcpStream, begin: &str) {
    if stream.write_all(begin.as_bytes()).await.is_err() {
        return;
    }
    let mut bytes = interval_at(Instant::now() + BYTE_EVERY, BYTE_EVERY);
    let mut said = [0; 1024];
    loop {
        tokio::select! {
            read = stream.read(&mut said) => {
                if matches!(read, Ok(0) | Err(_)) {
                    return;
                }
            }
            _ = bytes.tick(), if !begin.is_empty() => {
                if stream.write_all(b"a").await.is_err() {
                    return;
                }
            }
        }
    }
}
