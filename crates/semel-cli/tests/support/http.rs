//! A small HTTP client: one request per connection, nothing repeated behind the test's back.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// No answer is awaited longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(40);

/// A request to a port of 127.0.0.1.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

// === impl Request ===

impl Request {
    pub(crate) fn post(path: &str, body: impl Into<String>) -> Self {
        Self {
            method: "POST",
            path: path.into(),
            headers: Vec::new(),
            body: body.into(),
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self {
            method: "GET",
            ..Self::post(path, "")
        }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends it once.
    pub(crate) fn send(&self, port: u16) -> io::Result<Answer> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\ncontent-length: {}\r\n",
            self.method,
            self.path,
            self.body.len()
        );
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{}", self.body).as_bytes())?;
        Answer::read(BufReader::new(stream))
    }
}

// === impl Answer ===

impl Answer {
    /// The value of a header; its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find_map(|(known, value)| (known == name).then_some(value.as_str()))
    }

    fn read(mut stream: impl BufRead) -> io::Result<Self> {
        let first = line(&mut stream)?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| cut(&first))?;
        let mut headers = Vec::new();
        loop {
            let line = line(&mut stream)?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Self {
            status,
            headers,
            body: String::new(),
        };
        answer.body = String::from_utf8(answer.read_body(stream)?)
            .map_err(|error| cut(&error.to_string()))?;
        Ok(answer)
    }

    fn read_body(&self, mut stream: impl BufRead) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if let Some(length) = self.header("content-length") {
            body.resize(length.parse().map_err(|_| cut(length))?, 0);
            stream.read_exact(&mut body)?;
        } else if self.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = line(&mut stream)?;
                let size = usize::from_str_radix(&size, 16).map_err(|_| cut(&size))?;
                let begun = body.len();
                body.resize(begun + size, 0);
                stream.read_exact(body.get_mut(begun..).unwrap_or_default())?;
                line(&mut stream)?;
                if size == 0 {
                    break;
                }
            }
        } else {
            stream.read_to_end(&mut body)?;
        }
        Ok(body)
    }
}

/// A line without its end; a connection that ended before it is an error, not an empty line.
fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(line) => Ok(line.to_owned()),
        None => Err(cut(&line)),
    }
}

fn cut(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("cut off at {what:?}"))
}
