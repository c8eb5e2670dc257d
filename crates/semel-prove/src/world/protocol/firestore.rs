//! Firestore: gRPC over plain HTTP/2, as the emulator speaks it. Which method is called is compressed, so it is told by
//! what the message holds.

use super::{Message, MessageKind};
use std::collections::BTreeMap;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_BYTES: usize = 9;
/// Before a message: whether it is compressed, and its length.
const MESSAGE_HEAD_BYTES: usize = 5;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;

/// What must be remembered of a connection to read on.
#[derive(Debug, Default)]
pub(crate) struct FirestoreParser {
    /// Frames that have not come whole yet, by direction.
    to_server: Vec<u8>,
    from_server: Vec<u8>,
    /// What was asked on a stream that has not been answered.
    asked: BTreeMap<u32, MessageKind>,
}

/// A frame of HTTP/2.
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    content: Vec<u8>,
}

/// A field of a message that has a length: a text, bytes, or another message.
struct Field<'a> {
    number: u64,
    content: &'a [u8],
}

// === impl FirestoreParser ===

impl FirestoreParser {
    pub(crate) fn request(&mut self, bytes: &[u8]) -> Message {
        self.to_server.extend(bytes);
        if self.to_server.starts_with(PREFACE) {
            self.to_server.drain(..PREFACE.len());
        }
        let mut said = Vec::new();
        for frame in take_frames(&mut self.to_server) {
            // An empty one only ends the stream.
            if frame.kind == DATA && !frame.content.is_empty() {
                let message = request(frame.content.get(MESSAGE_HEAD_BYTES..).unwrap_or_default());
                self.asked.insert(frame.stream, message.kind);
                said.push(message);
            }
        }
        joined(said)
    }

    pub(crate) fn response(&mut self, bytes: &[u8]) -> Message {
        self.from_server.extend(bytes);
        let mut said = Vec::new();
        for frame in take_frames(&mut self.from_server) {
            let text = match (frame.kind, frame.flags & END_STREAM != 0) {
                (DATA, _) if !frame.content.is_empty() => "answered",
                // Without any data before it.
                (HEADERS, true) if self.asked.contains_key(&frame.stream) => "refused",
                _ => continue,
            };
            if let Some(kind) = self.asked.remove(&frame.stream) {
                said.push(Message::new(text, kind));
            }
        }
        joined(said)
    }
}

/// Frames that ask and answer nothing are housekeeping.
fn joined(said: Vec<Message>) -> Message {
    let kind = said.iter().map(|it| it.kind).max();
    let texts: Vec<String> = said.into_iter().map(|it| it.text).collect();
    Message::new(texts.join("; "), kind.unwrap_or(MessageKind::Housekeeping))
}

/// The whole frames at the beginning.
fn take_frames(bytes: &mut Vec<u8>) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some((&[l1, l2, l3, kind, flags, s1, s2, s3, s4], rest)) =
        bytes.split_first_chunk::<FRAME_HEAD_BYTES>()
    {
        let length = u32::from_be_bytes([0, l1, l2, l3]) as usize;
        let Some(content) = rest.get(..length) else {
            break;
        };
        frames.push(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes([s1 & 0x7f, s2, s3, s4]),
            content: content.to_vec(),
        });
        bytes.drain(..FRAME_HEAD_BYTES + length);
    }
    frames
}

/// What is asked: a commit has writes or a transaction to end, a read names documents, a query stands on a parent.
fn request(message: &[u8]) -> Message {
    let fields = fields(message);
    let numbered = |number| fields.iter().filter(move |field| field.number == number);
    if numbered(1).any(|field| field.content.ends_with(b"/documents")) {
        return Message::new("query", MessageKind::Read);
    }
    let read: Vec<String> = numbered(2)
        .filter_map(|field| document(field.content))
        .collect();
    let written: Vec<String> = numbered(2)
        .filter_map(|field| written(field.content))
        .collect();
    if !read.is_empty() {
        Message::new(format!("read {}", read.join(", ")), MessageKind::Read)
    } else if !written.is_empty() || numbered(3).next().is_some() {
        Message::new(
            format!("commit {}", written.join(", ")),
            MessageKind::Commit,
        )
    } else {
        Message::new("begin or roll back", MessageKind::Read)
    }
}

/// The document that a write is about.
fn written(write: &[u8]) -> Option<String> {
    fields(write).into_iter().find_map(|field| {
        let name = match field.number {
            // An update holds the whole document, and a document's first field is its name.
            1 => fields(field.content).first().map(|name| name.content)?,
            _ => field.content,
        };
        document(name)
    })
}

/// Its path below the database.
fn document(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let (database, path) = name.split_once("/documents/")?;
    database.starts_with("projects/").then(|| path.to_owned())
}

/// The fields that have a length, up to where the message is cut or is none.
fn fields(mut message: &[u8]) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    while let Some((tag, rest)) = number(message) {
        let (field, length) = match (tag & 7, number(rest)) {
            (2, Some((length, rest))) => {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                let content = rest.get(..length).unwrap_or(rest);
                fields.push(Field {
                    number: tag >> 3,
                    content,
                });
                (rest, content.len())
            }
            (0, Some((_, rest))) => (rest, 0),
            (1, _) => (rest, 8),
            (5, _) => (rest, 4),
            _ => break,
        };
        message = field.get(length..).unwrap_or_default();
    }
    fields
}

/// A number of variable length, and what follows it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
    let (number, rest) = bytes.split_at_checked(length)?;
    let digits = number.iter().rev();
    let value = digits.fold(0_u64, |value, byte| (value << 7) | u64::from(byte & 0x7f));
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessageKind::{Commit, Housekeeping, Read};

    const DATABASE: &str = "projects/p/databases/(default)";

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        assert!(length < 128, "one byte is enough for the length here");
        [&[number << 3 | 2, length], content].concat()
    }

    fn name(path: &str) -> Vec<u8> {
        format!("{DATABASE}/documents/{path}").into_bytes()
    }

    fn frame(kind: u8, flags: u8, stream: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        let head = [0, 0, length, kind, flags, 0, 0, 0, stream];
        [&head[..], content].concat()
    }

    fn call(stream: u8, message: &[u8]) -> Vec<u8> {
        let headers = frame(HEADERS, 4, stream, b"compressed");
        let content = [&[0; MESSAGE_HEAD_BYTES], message].concat();
        [headers, frame(DATA, END_STREAM, stream, &content)].concat()
    }

    fn commit(paths: &[&str]) -> Vec<u8> {
        let writes = paths.iter().flat_map(|path| {
            let document = [field(1, &name(path)), field(2, b"fields")].concat();
            field(2, &field(1, &document))
        });
        field(1, DATABASE.as_bytes())
            .into_iter()
            .chain(writes)
            .collect()
    }

    #[test]
    fn methods_are_told_by_what_they_hold() {
        let database = field(1, DATABASE.as_bytes());
        let asked = |message: &[u8]| request(message);
        let read = [&database[..], &field(2, &name("stock/lamp"))].concat();
        assert_eq!(asked(&read), Message::new("read stock/lamp", Read));
        let both = Message::new("commit stock/lamp, orders/7", Commit);
        assert_eq!(asked(&commit(&["stock/lamp", "orders/7"])), both);
        let removal = [&database[..], &field(2, &field(2, &name("stock/lamp")))].concat();
        assert_eq!(asked(&removal), Message::new("commit stock/lamp", Commit));
        let ended = [&database[..], &field(3, b"transaction")].concat();
        assert_eq!(asked(&ended).kind, Commit);
        let begun = [&database[..], &field(2, &field(3, b""))].concat();
        assert_eq!(asked(&begun).kind, Read);
        let parent = format!("{DATABASE}/documents");
        let query = [field(1, parent.as_bytes()), field(2, b"query")].concat();
        assert_eq!(asked(&query), Message::new("query", Read));
    }

    #[test]
    fn answer_is_of_the_kind_of_its_question() {
        let mut parser = FirestoreParser::default();
        let first = [PREFACE, &frame(4, 0, 0, b"settings")].concat();
        assert_eq!(parser.request(&first).kind, Housekeeping);
        let asked = parser.request(&call(1, &commit(&["stock/lamp"])));
        assert_eq!(asked, Message::new("commit stock/lamp", Commit));
        assert_eq!(
            parser.response(&frame(6, 0, 0, b"pingping")).kind,
            Housekeeping
        );
        let answer = [
            frame(HEADERS, 4, 1, b""),
            frame(DATA, 0, 1, b"message"),
            frame(HEADERS, 5, 1, b""),
        ];
        assert_eq!(
            parser.response(&answer.concat()),
            Message::new("answered", Commit)
        );
        parser.request(&call(3, &commit(&["stock/lamp"])));
        let refused = parser.response(&frame(HEADERS, 5, 3, b"status"));
        assert_eq!(refused, Message::new("refused", Commit));
    }

    #[test]
    fn frame_that_comes_in_pieces_is_read_when_it_is_whole() {
        let mut parser = FirestoreParser::default();
        let whole = call(1, &commit(&["stock/lamp"]));
        let (first, second) = whole.split_at(whole.len() - 3);
        assert_eq!(parser.request(first).kind, Housekeeping);
        assert_eq!(parser.request(second).text, "commit stock/lamp");
    }

    #[test]
    fn what_is_no_message_is_read_without_a_fault() {
        for wrong in [&b"\xff\xff\xff"[..], b"\x0a\xff", b"\x0a\x7fshort", b""] {
            request(wrong);
        }
    }
}
