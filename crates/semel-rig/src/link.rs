//! A TCP link between two processes that can forward, hold, swallow, be cut, or stop in the middle of a message.

use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// How much is carried at once: more than any message but the largest.
const CHUNK_BYTES: usize = 16 * 1024;

/// The pause before a target that refuses is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// A port of 127.0.0.1 that leads to others. Dropped, it takes no more connections.
#[derive(Debug)]
pub struct Link {
    port: u16,
    shared: Shared,
    accepting: JoinHandle<()>,
}

/// Which way something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the target.
    ToTarget,
    /// From the target to the client.
    ToClient,
}

/// Half of a message went over a link. The other half follows when this is dropped.
#[derive(Debug)]
pub struct Halfway {
    /// The target's port.
    pub target: u16,
    _rest: oneshot::Sender<()>,
}

/// What all connections of a link share.
#[derive(Clone, Debug)]
struct Shared {
    control: watch::Sender<Control>,
    trap: Arc<Mutex<Option<Trap>>>,
}

/// Who is told of the next message that goes this way.
type Trap = (Direction, oneshot::Sender<Halfway>);

#[derive(Clone, Copy, Debug)]
struct Control {
    cuts: u32,
    flow: Flow,
}

/// What becomes of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Forward,
    /// They wait.
    Hold,
    /// They vanish, and the connections stay.
    Swallow,
}

// === impl Link ===

impl Link {
    /// A link to this port.
    ///
    /// # Errors
    /// When there is no port left to listen on.
    pub async fn to(target: u16) -> io::Result<Self> {
        Self::to_any(vec![target], Duration::ZERO).await
    }

    /// A link to several ports, each connection to the next one that answers; all are tried for so long.
    ///
    /// # Errors
    /// When there is no port left to listen on.
    pub async fn to_any(targets: Vec<u16>, patience: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let forward = Control {
            cuts: 0,
            flow: Flow::Forward,
        };
        let shared = Shared {
            control: watch::Sender::new(forward),
            trap: Arc::default(),
        };
        let accepting = tokio::spawn(accept(listener, shared.clone(), targets, patience));
        Ok(Self {
            port,
            shared,
            accepting,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Breaks every connection, whatever is under way on it. New ones can be made at once, and carry everything.
    pub fn cut(&self) {
        self.shared.control.send_modify(|control| {
            control.cuts += 1;
            control.flow = Flow::Forward;
        });
    }

    /// From now on nothing arrives, and nobody is told.
    pub fn swallow(&self) {
        self.flow(Flow::Swallow);
    }

    /// From now on what is sent waits here.
    pub fn hold(&self) {
        self.flow(Flow::Hold);
    }

    /// From now on everything arrives, what was held first.
    pub fn forward(&self) {
        self.flow(Flow::Forward);
    }

    /// Stops the next message that goes this way in its middle, and tells.
    pub fn stop_halfway(&self, direction: Direction) -> oneshot::Receiver<Halfway> {
        let (tell, halfway) = oneshot::channel();
        *self.shared.trap() = Some((direction, tell));
        halfway
    }

    /// Stops nothing halfway any more.
    pub fn stop_nothing(&self) {
        self.shared.trap().take();
    }

    fn flow(&self, flow: Flow) {
        self.shared
            .control
            .send_modify(|control| control.flow = flow);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Shared, targets: Vec<u16>, patience: Duration) {
    let mut accepted = 0;
    while let Ok((client, _)) = listener.accept().await {
        accepted += 1;
        let mut targets = targets.clone();
        let first = accepted % targets.len().max(1);
        targets.rotate_left(first);
        tokio::spawn(shared.clone().carry(client, targets, patience));
    }
}

// === impl Shared ===

impl Shared {
    async fn carry(self, client: TcpStream, targets: Vec<u16>, patience: Duration) {
        let mut control = self.control.subscribe();
        let cuts = control.borrow_and_update().cuts;
        let Some((server, target)) = connect(&targets, patience).await else {
            return;
        };
        client.set_nodelay(true).ok();
        server.set_nodelay(true).ok();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let there = self.pump(from_client, to_server, Direction::ToTarget, target);
        let back = self.pump(from_server, to_client, Direction::ToClient, target);
        tokio::select! {
            _ = async { tokio::join!(there, back) } => {}
            _ = control.wait_for(|control| control.cuts != cuts) => {}
        }
    }

    async fn pump(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        direction: Direction,
        target: u16,
    ) -> io::Result<()> {
        let mut control = self.control.subscribe();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = from.read(&mut chunk).await?;
            let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else {
                return to.shutdown().await;
            };
            // It fails only when the link is gone: nothing is held then.
            let released = control.wait_for(|control| control.flow != Flow::Hold).await;
            if released.is_ok_and(|control| control.flow == Flow::Swallow) {
                continue;
            }
            match self.sprung(direction) {
                None => to.write_all(bytes).await?,
                Some(tell) => write_in_halves(&mut to, bytes, target, tell).await?,
            }
        }
    }

    fn sprung(&self, direction: Direction) -> Option<oneshot::Sender<Halfway>> {
        let trap = self.trap().take_if(|(its, _)| *its == direction);
        trap.map(|(_, tell)| tell)
    }

    fn trap(&self) -> MutexGuard<'_, Option<Trap>> {
        self.trap.lock().expect("no holder of this lock panics")
    }
}

async fn write_in_halves(
    to: &mut OwnedWriteHalf,
    bytes: &[u8],
    target: u16,
    tell: oneshot::Sender<Halfway>,
) -> io::Result<()> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    to.write_all(first).await?;
    let (rest, go_on) = oneshot::channel();
    let halfway = Halfway {
        target,
        _rest: rest,
    };
    if tell.send(halfway).is_ok() {
        // An error is how we are told: the other end is dropped.
        go_on.await.ok();
    }
    to.write_all(second).await
}

async fn connect(targets: &[u16], patience: Duration) -> Option<(TcpStream, u16)> {
    let until = Instant::now() + patience;
    loop {
        for target in targets {
            if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, *target)).await {
                return Some((server, *target));
            }
        }
        if Instant::now() >= until {
            return None;
        }
        sleep(RETRY_PAUSE).await;
    }
}

#[cfg(test)]
mod tests;
