//! A transparent proxy between one process and one dependency. It shows the recorder every exchange before it hands it on.

#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::world::protocol::{Parser, Protocol, requests_encryption};
use crate::world::recorder::{ExchangeRef, Permit, Recorder, Release};
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

const CHUNK_BYTES: usize = 64 * 1024;
const LOOK: Duration = Duration::from_millis(1);
/// Whoever was answered in a dependency's place hangs up within this time, or is hung up on.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(500);

/// Listens for one process on behalf of one dependency. Dropped, it closes all its connections.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    serving: JoinHandle<()>,
}

/// Which process a proxy serves, and where it leads.
#[derive(Clone, Debug)]
pub(crate) struct ProxyConfig {
    pub(crate) process: usize,
    /// The process's name.
    pub(crate) speaker: String,
    pub(crate) dependency: usize,
    pub(crate) lane: String,
    pub(crate) protocol: Protocol,
    pub(crate) upstream: String,
}

/// One connection, in both directions.
#[derive(Debug)]
struct Connection {
    recorder: Arc<Recorder>,
    id: u64,
    config: ProxyConfig,
    state: Mutex<ConnectionState>,
}

#[derive(Debug)]
struct ConnectionState {
    parser: Parser,
    outward: Option<bool>,
    current: Option<ExchangeRef>,
    /// What the process hears in the dependency's place before the connection closes.
    last_words: Option<&'static [u8]>,
}

// === impl Proxy ===

impl Proxy {
    pub(crate) async fn open(config: ProxyConfig, recorder: Arc<Recorder>) -> Result<Self, Error> {
        let refused = |why| Error::system("a proxy cannot listen on 127.0.0.1", why);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let serving = tokio::spawn(serve(listener, config, recorder));
        Ok(Self { port, serving })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, config: ProxyConfig, recorder: Arc<Recorder>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(converse(client, config.clone(), Arc::clone(&recorder)));
        while connections.try_join_next().is_some() {}
    }
}

/// A dependency that cannot be reached is, to the process, one that hangs up.
async fn converse(client: TcpStream, config: ProxyConfig, recorder: Arc<Recorder>) {
    let Ok(server) = TcpStream::connect(&config.upstream).await else {
        return;
    };
    let prompt = client
        .set_nodelay(true)
        .and_then(|()| server.set_nodelay(true));
    if prompt.is_err() {
        return;
    }
    let id = recorder.connected();
    let connection = Connection {
        recorder: Arc::clone(&recorder),
        id,
        state: Mutex::new(ConnectionState {
            parser: Parser::of(config.protocol),
            outward: None,
            current: None,
            last_words: None,
        }),
        config,
    };
    connection.run(client, server).await;
    recorder.disconnected(id);
}

// === impl Connection ===

impl Connection {
    async fn run(&self, client: TcpStream, server: TcpStream) {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let greeted = match self.config.protocol {
            Protocol::Postgres => decline_encryption(&mut from_client, &mut to_client).await,
            Protocol::Redis | Protocol::Http | Protocol::Firestore | Protocol::Other => {
                Ok(Vec::new())
            }
        };
        let Ok(first) = greeted else { return };
        // The first to break closes both; an orderly end of one side leaves the other open.
        let ended = tokio::try_join!(
            self.pump(true, first, &mut from_client, &mut to_server),
            self.pump(false, Vec::new(), &mut from_server, &mut to_client)
        );
        drop(ended);
        let last_words = self.state().last_words;
        if let Some(words) = last_words {
            answer_instead(words, &mut from_client, &mut to_client).await;
        }
    }

    async fn pump(
        &self,
        outward: bool,
        first: Vec<u8>,
        from: &mut OwnedReadHalf,
        to: &mut OwnedWriteHalf,
    ) -> io::Result<()> {
        let mut chunk = first;
        loop {
            if !chunk.is_empty() {
                self.pass(outward, &chunk).await?;
                to.write_all(&chunk).await?;
                self.passed();
            }
            chunk.clear();
            chunk.reserve(CHUNK_BYTES);
            let read = from.read_buf(&mut chunk).await?;
            if read == 0 {
                return to.shutdown().await;
            }
        }
    }

    /// Returns when the chunk may go on.
    async fn pass(&self, outward: bool, chunk: &[u8]) -> io::Result<()> {
        match self.ask(outward, chunk) {
            Permit::Forward => Ok(()),
            Permit::Meet(question) => {
                while !self.recorder.met(&question) {
                    tokio::time::sleep(LOOK).await;
                }
                Ok(())
            }
            Permit::Wait(wait) => match wait.await {
                Ok(Release::Forward) | Err(_) => Ok(()),
                // Both sides are closed.
                Ok(Release::Drop) => Err(io::ErrorKind::ConnectionAborted.into()),
                Ok(Release::Answer(words)) => {
                    self.state().last_words = Some(words);
                    Err(io::ErrorKind::ConnectionAborted.into())
                }
            },
        }
    }

    fn ask(&self, outward: bool, chunk: &[u8]) -> Permit {
        let mut state = self.state();
        let message = state.parser.parse(outward, chunk);
        if state.outward == Some(outward)
            && let Some(current) = state.current
        {
            self.recorder.more(current, chunk);
            return Permit::Forward;
        }
        state.outward = Some(outward);
        let Self { id, config, .. } = self;
        let (permit, current) = self.recorder.exchange(*id, config, outward, message, chunk);
        state.current = current;
        permit
    }

    fn passed(&self) {
        if let Some(current) = self.state().current {
            self.recorder.forwarded(current);
        }
    }

    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().expect("nobody panics while holding it")
    }
}

/// The rest of a request is still taken in: to one who is hung up on while it speaks, the answer is lost.
async fn answer_instead(words: &[u8], from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) {
    if to.write_all(words).await.is_err() || to.shutdown().await.is_err() {
        return;
    }
    let mut rest = Vec::with_capacity(CHUNK_BYTES);
    let read_on = async {
        while from.read_buf(&mut rest).await.is_ok_and(|read| read > 0) {
            rest.clear();
        }
    };
    tokio::time::timeout(LAST_WORDS_TIMEOUT, read_on).await.ok();
}

/// Answers requests for encryption with no, as a server without it does: otherwise nothing could be read.
async fn decline_encryption(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
) -> io::Result<Vec<u8>> {
    loop {
        let mut first = Vec::with_capacity(CHUNK_BYTES);
        from.read_buf(&mut first).await?;
        if !requests_encryption(&first) {
            return Ok(first);
        }
        to.write_all(b"N").await?;
    }
}
