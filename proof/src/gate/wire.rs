//! A wire between two processes: a TCP proxy of the driver's own that can be cut, swallow what it is given, or stop in
//! the middle of a message.

use super::program::here;
use anyhow::Context;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};

/// How much is carried at once: more than any message but the largest.
const CHUNK_BYTES: usize = 16 * 1024;

/// The pause before a target that refuses is tried again.
const AGAIN: Duration = Duration::from_millis(10);

/// A port that leads to others, each connection to the next one that answers.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) port: u16,
    line: Line,
}

/// Which way something goes: to the target, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    There,
    Back,
}

/// Half of a message went over a wire. The other half follows when this is dropped.
#[derive(Debug)]
pub(super) struct Halfway {
    /// The target's port.
    pub(super) target: u16,
    _rest: oneshot::Sender<()>,
}

/// What all connections of a wire share.
#[derive(Clone, Debug)]
struct Line {
    flow: watch::Sender<Flow>,
    trap: Arc<Mutex<Option<Trap>>>,
}

/// Who is told of the next message that goes this way.
type Trap = (Way, oneshot::Sender<Halfway>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flow {
    cuts: u32,
    /// Bytes vanish, and the connections stay.
    swallows: bool,
}

// === impl Wire ===

impl Wire {
    /// Starts it; a target that refuses is tried for so long. It ends with the runtime.
    pub(super) async fn start(targets: Vec<u16>, patience: Duration) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(here(0))
            .await
            .context("cannot listen for a wire")?;
        let port = listener.local_addr()?.port();
        let line = Line {
            flow: watch::Sender::default(),
            trap: Arc::default(),
        };
        let shared = line.clone();
        tokio::spawn(async move {
            let mut first = 0;
            while let Ok((near, _)) = listener.accept().await {
                first += 1;
                let mut targets = targets.clone();
                let turn = first % targets.len().max(1);
                targets.rotate_left(turn);
                tokio::spawn(shared.clone().carry(near, targets, patience));
            }
        });
        Ok(Self { port, line })
    }

    /// Breaks every connection, whatever is under way on it. New ones can be made at once, and carry everything.
    pub(super) fn cut(&self) {
        self.line.flow.send_modify(|flow| {
            flow.cuts += 1;
            flow.swallows = false;
        });
    }

    /// From now on nothing arrives, and nobody is told, until it is cut.
    pub(super) fn swallow(&self) {
        self.line.flow.send_modify(|flow| flow.swallows = true);
    }

    /// Stops the next message that goes this way in its middle, and tells.
    pub(super) fn halve(&self, way: Way) -> oneshot::Receiver<Halfway> {
        let (tell, halfway) = oneshot::channel();
        *self.line.trap() = Some((way, tell));
        halfway
    }

    /// Stops nothing any more.
    pub(super) fn let_pass(&self) {
        self.line.trap().take();
    }
}

// === impl Line ===

impl Line {
    async fn carry(self, near: TcpStream, targets: Vec<u16>, patience: Duration) {
        let mut flow = self.flow.subscribe();
        let cuts = flow.borrow_and_update().cuts;
        let Some((far, target)) = reach(&targets, patience).await else {
            return;
        };
        near.set_nodelay(true).ok();
        far.set_nodelay(true).ok();
        let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
        let there = self.pump(near_in, far_out, Way::There, target);
        let back = self.pump(far_in, near_out, Way::Back, target);
        tokio::select! {
            _ = async { tokio::join!(there, back) } => {}
            _ = flow.wait_for(|flow| flow.cuts != cuts) => {}
        }
    }

    async fn pump(
        &self,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
        way: Way,
        target: u16,
    ) -> std::io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = from.read(&mut chunk).await?;
            let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else {
                return to.shutdown().await;
            };
            if self.flow.borrow().swallows {
                continue;
            }
            let Some(tell) = self.sprung(way) else {
                to.write_all(bytes).await?;
                continue;
            };
            let (first, second) = bytes.split_at(read / 2);
            to.write_all(first).await?;
            let (rest, go_on) = oneshot::channel();
            let halfway = Halfway {
                target,
                _rest: rest,
            };
            if tell.send(halfway).is_ok() {
                // An error is how the driver says it: it drops the other end.
                go_on.await.ok();
            }
            to.write_all(second).await?;
        }
    }

    fn sprung(&self, way: Way) -> Option<oneshot::Sender<Halfway>> {
        let trap = self.trap().take_if(|(its, _)| *its == way);
        trap.map(|(_, tell)| tell)
    }

    fn trap(&self) -> MutexGuard<'_, Option<Trap>> {
        self.trap.lock().expect("no holder of this lock panics")
    }
}

async fn reach(targets: &[u16], patience: Duration) -> Option<(TcpStream, u16)> {
    let until = Instant::now() + patience;
    loop {
        for target in targets {
            if let Ok(far) = TcpStream::connect(here(*target)).await {
                return Some((far, *target));
            }
        }
        if Instant::now() >= until {
            return None;
        }
        sleep(AGAIN).await;
    }
}
