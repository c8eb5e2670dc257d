//! HTTP/1: request lines one way, status lines the other.

use super::{Message, MessageKind};

const VERSIONS: &[&str] = &["HTTP/1.1", "HTTP/1.0"];

/// Methods that change nothing.
const ASKS: &[&str] = &["GET", "HEAD", "OPTIONS", "TRACE"];

/// What the name of a header contains that holds an idempotency key: `Idempotency-Key`, also with a prefix of some
/// vendor, and PayPal's word for it.
const KEYS: &[&str] = &["idempoten", "paypal-request-id"];

/// What must be remembered of a connection to read on.
#[derive(Debug, Default)]
pub(crate) struct HttpParser {
    asked: MessageKind,
}

// === impl HttpParser ===

impl HttpParser {
    pub(crate) fn request(&mut self, bytes: &[u8]) -> Message {
        let line = first_line(bytes);
        let (request, version) = line.rsplit_once(' ').unwrap_or_default();
        if !VERSIONS.contains(&version) {
            return Message::new("", self.asked);
        }
        let method = request.split(' ').next().unwrap_or_default();
        self.asked = if ASKS.contains(&method) {
            MessageKind::Read
        } else {
            MessageKind::Commit
        };
        let key = idempotency_key(bytes).into_iter().collect();
        Message::new(request, self.asked).with(key)
    }

    pub(crate) fn response(&mut self, bytes: &[u8]) -> Message {
        let line = first_line(bytes);
        let (version, status) = line.split_once(' ').unwrap_or_default();
        let known = VERSIONS.contains(&version);
        Message::new(if known { status } else { "" }, self.asked)
    }
}

/// The header by which a request names itself, as `Idempotency-Key: a1`.
fn idempotency_key(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    let mut headers = head.split("\r\n").skip(1);
    let key = headers.find(|line| {
        let name = line.split(':').next().unwrap_or_default().to_lowercase();
        KEYS.iter().any(|key| name.contains(key))
    });
    key.map(str::to_owned)
}

fn first_line(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == b'\r').unwrap_or(0);
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessageKind::{Commit, Read};

    #[test]
    fn lines_are_read_and_bodies_are_not() {
        let mut parser = HttpParser::default();
        let asked = parser.request(b"POST /charge HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(asked, Message::new("POST /charge", Commit));
        assert_eq!(parser.request(b"{\"order\": 1}").text, "");
        assert_eq!(
            parser.response(b"HTTP/1.1 201 Created\r\n\r\n").text,
            "201 Created"
        );
        assert_eq!(parser.request(b"GET /rate HTTP/1.1\r\n\r\n").kind, Read);
    }

    #[test]
    fn header_that_names_the_request_is_shown() {
        let asked = |head: &str| {
            let request =
                format!("POST /charge HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\nIdempotency-Key: body");
            HttpParser::default().request(request.as_bytes()).values
        };
        assert_eq!(asked("idempotency-key: a 1"), ["idempotency-key: a 1"]);
        assert_eq!(asked("X-Idempotency-Key: b"), ["X-Idempotency-Key: b"]);
        assert!(asked("X-Request-Id: c").is_empty());
    }
}
