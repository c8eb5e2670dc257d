//! A handler that writes down every request and answers as the test says, byte for byte.

use super::prelude::*;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// What the handler does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers.
    Say(Say),
    /// Answers when it is told to go on.
    Hold(Say),
    /// Answers and closes the connection without saying that it will.
    SayAndClose(Say),
    /// Never answers.
    Hang,
    /// Closes the connection before the body of the request is read.
    CutRequest,
    /// Closes the connection instead of answering.
    Close,
    /// The same when it is told to go on.
    HoldAndClose,
    /// Closes it in the middle of the head.
    CutHead,
    /// Closes it in the middle of the body.
    CutBody,
    /// Sends these bytes, whatever they are.
    Bytes(Bytes),
    /// Sends one half of a body, and the other when it is told to go on.
    Halves(Bytes, Bytes),
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Say {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// Which connection it came on, from 1.
    pub(crate) connection: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) address: SocketAddr,
    script: Arc<Script>,
    arrived: Mutex<Option<mpsc::UnboundedReceiver<Seen>>>,
}

#[derive(Debug)]
struct Script {
    acts: Mutex<VecDeque<Act>>,
    count: AtomicUsize,
    go: Semaphore,
    arrived: mpsc::UnboundedSender<Seen>,
}

// === impl Handler ===

impl Handler {
    pub(crate) async fn start() -> Self {
        Self::at(here()).await
    }

    pub(crate) async fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (arrived, receiver) = mpsc::unbounded_channel();
        let script = Arc::new(Script {
            acts: Mutex::default(),
            count: AtomicUsize::new(0),
            go: Semaphore::new(0),
            arrived,
        });
        tokio::spawn(accept(listener, Arc::clone(&script)));
        Self {
            address,
            script,
            arrived: Mutex::new(Some(receiver)),
        }
    }

    /// What comes next, after all that was said before. Without a word it says `run N`.
    pub(crate) fn will(&self, act: Act) -> &Self {
        self.script.acts.lock().unwrap().push_back(act);
        self
    }

    /// Answers so next.
    pub(crate) fn answers(&self, say: Say) -> &Self {
        self.will(Act::Say(say))
    }

    /// Answers with this status next.
    pub(crate) fn says(&self, status: u16) -> &Self {
        self.answers(Say::new(status, format!("said {status}")))
    }

    /// Lets one held answer go.
    pub(crate) fn go(&self) {
        self.script.go.add_permits(1);
    }

    /// How many requests arrived.
    pub(crate) fn count(&self) -> usize {
        self.script.count.load(Ordering::SeqCst)
    }

    /// Waits for the next request.
    pub(crate) async fn arrived(&self) -> Seen {
        let mut receiver = self.arrived.lock().unwrap().take().expect("one waits");
        let seen = within("a request to the handler", receiver.recv()).await;
        *self.arrived.lock().unwrap() = Some(receiver);
        seen.unwrap()
    }
}

async fn accept(listener: TcpListener, script: Arc<Script>) {
    for connection in 1.. {
        let (stream, _) = listener.accept().await.unwrap();
        let script = Arc::clone(&script);
        tokio::spawn(async move { serve(stream, connection, &script).await });
    }
}

/// Serves a connection until either side has had enough.
async fn serve(mut stream: TcpStream, connection: usize, script: &Script) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let head = head(&mut stream, &mut buffer).await?;
        let mut seen = Seen::of(&head, connection);
        let count = script.count.fetch_add(1, Ordering::SeqCst) + 1;
        let act = script.acts.lock().unwrap().pop_front();
        let act = act.unwrap_or_else(|| Act::Say(Say::new(200, format!("run {count}"))));
        if !matches!(act, Act::CutRequest) {
            seen.body = body(&mut stream, &mut buffer, &seen).await?;
        }
        script.arrived.send(seen).ok()?;
        answer(&mut stream, act, script).await?;
    }
}

/// Does as it was told; `None` ends the connection.
async fn answer(stream: &mut TcpStream, act: Act, script: &Script) -> Option<()> {
    if matches!(act, Act::Hang) {
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await);
    }
    let (at_once, later, closes) = act.parts();
    stream.write_all(&at_once).await.ok()?;
    if let Some(later) = later {
        script.go.acquire().await.ok()?.forget();
        stream.write_all(&later).await.ok()?;
    }
    (!closes).then_some(())
}

async fn head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = buffer.drain(..end + 4).collect();
            // Each byte that is not UTF-8 is shown as a character of its own.
            let latin_1 = |head: &[u8]| head.iter().copied().map(char::from).collect();
            return Some(String::from_utf8(head).unwrap_or_else(|e| latin_1(e.as_bytes())));
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

async fn body(stream: &mut TcpStream, buffer: &mut Vec<u8>, seen: &Seen) -> Option<Bytes> {
    let chunked = seen.header("transfer-encoding").is_some();
    let length = seen
        .header("content-length")
        .map_or(0, |n| n.parse().unwrap());
    loop {
        let whole = if chunked {
            buffer.ends_with(b"0\r\n\r\n")
        } else {
            buffer.len() >= length
        };
        if whole {
            let end = if chunked { buffer.len() } else { length };
            return Some(buffer.drain(..end).collect());
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

// === impl Act ===

impl Act {
    /// What is sent at once, what is sent when it is told to go on, and whether it closes then.
    fn parts(self) -> (Vec<u8>, Option<Vec<u8>>, bool) {
        match self {
            Self::Say(say) => (say.bytes(), None, false),
            Self::Hold(say) => (Vec::new(), Some(say.bytes()), false),
            Self::SayAndClose(say) => (say.bytes(), None, true),
            Self::Hang | Self::CutRequest | Self::Close => (Vec::new(), None, true),
            Self::HoldAndClose => (Vec::new(), Some(Vec::new()), true),
            Self::CutHead => (b"HTTP/1.1 200 OK\r\nconte".to_vec(), None, true),
            Self::CutBody => {
                let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of it";
                (cut.to_vec(), None, true)
            }
            Self::Bytes(bytes) => (bytes.to_vec(), None, false),
            Self::Halves(one, other) => {
                let length = one.len() + other.len();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
                let begin = [head.as_bytes(), &one].concat();
                (begin, Some(other.to_vec()), false)
            }
        }
    }
}

// === impl Say ===

impl Say {
    pub(crate) fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), "text/plain".into())],
            body: body.into(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Said\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.status != 204 && self.status != 304 {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

// === impl Seen ===

impl Seen {
    fn of(head: &str, connection: usize) -> Self {
        let mut lines = head.trim_end().split("\r\n");
        let mut first = lines.next().unwrap().split(' ');
        let headers = lines.filter_map(|line| line.split_once(": "));
        Self {
            method: first.next().unwrap().into(),
            path: first.next().unwrap().into(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.into()))
                .collect(),
            body: Bytes::new(),
            connection,
        }
    }

    /// It is for this method and path.
    #[track_caller]
    pub(crate) fn is(&self, method: &Method, path: &str) {
        let seen = (self.method.as_str(), self.path.as_str());
        assert_eq!(seen, (method.as_str(), path));
    }

    /// The one value of a header.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is there twice: {self:?}");
        value
    }

    /// With this value of a header.
    #[track_caller]
    pub(crate) fn has(&self, name: &str, value: &str) -> &Self {
        assert_eq!(self.header(name), Some(value), "{name} of {self:?}");
        self
    }

    /// Without this header.
    #[track_caller]
    pub(crate) fn lacks(&self, name: &str) -> &Self {
        assert_eq!(self.header(name), None, "{name} of {self:?}");
        self
    }
}
