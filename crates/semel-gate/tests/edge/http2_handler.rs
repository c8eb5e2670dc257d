//! A handler that speaks HTTP/2 frame by frame, and ends its streams as the test says.

use crate::support::prelude::*;
use std::collections::VecDeque;
use std::sync::Mutex;

/// What it does with the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Answers 200.
    Answer,
    /// Answers, says GOAWAY and closes.
    AnswerAndGo,
    /// `RST_STREAM` with this code.
    Reset(u32),
    /// GOAWAY with this last stream and code; then it closes.
    GoAway(LastStream, u32),
    /// Closes.
    Close,
    /// Says nothing more, not even to pings.
    Silence,
}

/// Which stream it names as the last one that it looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastStream {
    /// The request's own.
    Own,
    /// The one before.
    Before,
}

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const REFUSED_STREAM: u32 = 7;

/// See the module.
pub(crate) struct Http2Handler {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<VecDeque<Ends>>>,
    arrived: mpsc::UnboundedReceiver<usize>,
}

// === impl Http2Handler ===

impl Http2Handler {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(here()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::<Mutex<VecDeque<Ends>>>::default();
        let (tell, arrived) = mpsc::unbounded_channel();
        let acts = Arc::clone(&script);
        tokio::spawn(async move {
            for connection in 1.. {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, connection, Arc::clone(&acts), tell.clone()));
            }
        });
        Self {
            address,
            script,
            arrived,
        }
    }

    /// What comes next, after all that was said before; without a word it answers.
    pub(crate) fn will(&self, ends: Ends) {
        self.script.lock().unwrap().push_back(ends);
    }

    /// Waits for the next request; the number of its connection.
    pub(crate) async fn arrived(&mut self) -> usize {
        within("a request", self.arrived.recv()).await.unwrap()
    }

    /// How many requests came that nobody waited for.
    pub(crate) fn unseen(&mut self) -> usize {
        std::iter::from_fn(|| self.arrived.try_recv().ok()).count()
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    script: Arc<Mutex<VecDeque<Ends>>>,
    tell: mpsc::UnboundedSender<usize>,
) -> Option<()> {
    const PREFACE: usize = 24;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const ACK: u8 = 1;
    const END_STREAM: u8 = 1;
    let mut preface = [0; PREFACE];
    stream.read_exact(&mut preface).await.ok()?;
    write(&mut stream, SETTINGS, 0, 0, &[]).await?;
    loop {
        let (kind, flags, id, payload) = frame(&mut stream).await?;
        match kind {
            SETTINGS if flags & ACK == 0 => write(&mut stream, SETTINGS, ACK, 0, &[]).await?,
            PING if flags & ACK == 0 => write(&mut stream, PING, ACK, 0, &payload).await?,
            // The end of a request: of its head, or of its data.
            0 | 1 if flags & END_STREAM != 0 => {
                let ends = script.lock().unwrap().pop_front();
                tell.send(connection).ok()?;
                end(&mut stream, ends.unwrap_or(Ends::Answer), id).await?;
            }
            _ => {}
        }
    }
}

/// Ends a stream; `None` ends the connection.
async fn end(stream: &mut TcpStream, ends: Ends, id: u32) -> Option<()> {
    match ends {
        Ends::Answer => answer(stream, id).await,
        Ends::AnswerAndGo => {
            answer(stream, id).await?;
            go_away(stream, id, NO_ERROR).await
        }
        Ends::Reset(code) => write(stream, 3, 0, id, &code.to_be_bytes()).await,
        Ends::GoAway(LastStream::Own, code) => go_away(stream, id, code).await,
        Ends::GoAway(LastStream::Before, code) => go_away(stream, id.saturating_sub(2), code).await,
        Ends::Close => None,
        Ends::Silence => {
            // Whatever comes is read and not answered.
            let mut rest = Vec::new();
            drop(stream.read_to_end(&mut rest).await);
            None
        }
    }
}

async fn answer(stream: &mut TcpStream, id: u32) -> Option<()> {
    const END_HEADERS_AND_STREAM: u8 = 4 | 1;
    const STATUS_200: u8 = 0x88;
    write(stream, 1, END_HEADERS_AND_STREAM, id, &[STATUS_200]).await
}

/// Says it, and closes in an orderly way: what was sent before is not lost by a reset.
async fn go_away(stream: &mut TcpStream, last: u32, code: u32) -> Option<()> {
    let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    write(stream, 7, 0, 0, &payload).await?;
    stream.shutdown().await.ok()?;
    let mut rest = Vec::new();
    drop(stream.read_to_end(&mut rest).await);
    None
}

async fn frame(stream: &mut TcpStream) -> Option<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let [a, b, c, kind, flags, id @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some((kind, flags, u32::from_be_bytes(id), payload))
}

async fn write(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> Option<()> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(payload);
    stream.write_all(&bytes).await.ok()
}
