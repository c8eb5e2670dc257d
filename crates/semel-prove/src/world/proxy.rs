//! A transparent proxy between one process and one dependency. It shows the wire every exchange before it hands it on.

#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::world::protocol::{Parser, Protocol, requests_encryption};
use crate::world::recorder::{Current, Pass, Permit, Recorder, Talk};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

const CHUNK_BYTES: usize = 64 * 1024;
const LOOK: Duration = Duration::from_millis(1);

/// Listens for one process on behalf of one dependency. Dropped, it closes all its connections.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    serving: JoinHandle<()>,
}

/// Whose words a proxy carries, and to where.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) process: usize,
    pub(crate) dependency: usize,
    pub(crate) lane: String,
    pub(crate) protocol: Protocol,
    pub(crate) upstream: String,
}

/// One connection's state that both directions share.
#[derive(Debug)]
struct Conversation {
    recorder: Arc<Recorder>,
    talk: Talk,
    protocol: Protocol,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    parser: Parser,
    outward: Option<bool>,
    current: Option<Current>,
}

/// The bytes were dropped on purpose, or the connection broke: both sides are closed.
#[derive(Debug)]
struct Broken;

// === impl Proxy ===

impl Proxy {
    pub(crate) async fn open(line: Line, recorder: Arc<Recorder>) -> Result<Self, Error> {
        let refused = |why| Error::system("a proxy cannot listen on 127.0.0.1", why);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let serving = tokio::spawn(serve(listener, line, recorder));
        Ok(Self { port, serving })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, line: Line, recorder: Arc<Recorder>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(converse(client, line.clone(), Arc::clone(&recorder)));
        while connections.try_join_next().is_some() {}
    }
}

/// A dependency that cannot be reached is, to the process, one that hangs up.
async fn converse(client: TcpStream, line: Line, recorder: Arc<Recorder>) {
    let Ok(server) = TcpStream::connect(&line.upstream).await else {
        return;
    };
    let prompt = client
        .set_nodelay(true)
        .and_then(|()| server.set_nodelay(true));
    if prompt.is_err() {
        return;
    }
    let connection = recorder.connected();
    let conversation = Conversation {
        recorder: Arc::clone(&recorder),
        talk: Talk {
            connection,
            process: line.process,
            dependency: line.dependency,
            lane: line.lane,
        },
        protocol: line.protocol,
        now: Mutex::new(Now {
            parser: Parser::of(line.protocol),
            outward: None,
            current: None,
        }),
    };
    conversation.run(client, server).await;
    recorder.disconnected(connection);
}

// === impl Conversation ===

impl Conversation {
    async fn run(&self, client: TcpStream, server: TcpStream) {
        let (mut from_client, mut to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let greeted = match self.protocol {
            Protocol::Postgres => decline_encryption(&mut from_client, &mut to_client).await,
            Protocol::Redis | Protocol::Http | Protocol::Other => Ok(Vec::new()),
        };
        let Ok(first) = greeted else { return };
        // The first to break closes both; an orderly end of one side leaves the other open.
        let ended = tokio::try_join!(
            self.pump(true, first, from_client, to_server),
            self.pump(false, Vec::new(), from_server, to_client)
        );
        drop(ended);
    }

    async fn pump(
        &self,
        outward: bool,
        first: Vec<u8>,
        mut from: OwnedReadHalf,
        mut to: OwnedWriteHalf,
    ) -> Result<(), Broken> {
        let mut chunk = first;
        loop {
            if !chunk.is_empty() {
                self.pass(outward, &chunk).await?;
                to.write_all(&chunk).await.map_err(|_| Broken)?;
                self.passed();
            }
            chunk.clear();
            chunk.reserve(CHUNK_BYTES);
            let read = from.read_buf(&mut chunk).await.map_err(|_| Broken)?;
            if read == 0 {
                return to.shutdown().await.map_err(|_| Broken);
            }
        }
    }

    /// Returns when the chunk may go on.
    async fn pass(&self, outward: bool, chunk: &[u8]) -> Result<(), Broken> {
        match self.ask(outward, chunk) {
            Permit::Forward => Ok(()),
            Permit::Meet(question) => {
                while !self.recorder.met(&question) {
                    tokio::time::sleep(LOOK).await;
                }
                Ok(())
            }
            Permit::Wait(wait) => match wait.await {
                Ok(Pass::Forward) | Err(_) => Ok(()),
                Ok(Pass::Drop) => Err(Broken),
            },
        }
    }

    fn ask(&self, outward: bool, chunk: &[u8]) -> Permit {
        let mut now = self.now.lock().expect("nobody panics while holding it");
        let message = now.parser.parse(outward, chunk);
        if now.outward == Some(outward)
            && let Some(current) = now.current
        {
            self.recorder.more(current, chunk);
            return Permit::Forward;
        }
        now.outward = Some(outward);
        let (permit, current) = self.recorder.exchange(&self.talk, outward, message, chunk);
        now.current = current;
        permit
    }

    fn passed(&self) {
        let current = self
            .now
            .lock()
            .expect("nobody panics while holding it")
            .current;
        if let Some(current) = current {
            self.recorder.forwarded(current);
        }
    }
}

/// Answers requests for encryption with no, as a server without it does: otherwise nothing could be read.
async fn decline_encryption(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
) -> std::io::Result<Vec<u8>> {
    loop {
        let mut first = Vec::with_capacity(CHUNK_BYTES);
        from.read_buf(&mut first).await?;
        if !requests_encryption(&first) {
            return Ok(first);
        }
        to.write_all(b"N").await?;
    }
}
