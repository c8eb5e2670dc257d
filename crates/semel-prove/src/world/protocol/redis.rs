//! Redis: commands one way, replies the other.

use super::{Message, MessageKind};

/// Commands that belong to no delivery.
const HOUSEKEEPING: &str = "HELLO CLIENT AUTH SELECT INFO PING QUIT COMMAND CONFIG SUBSCRIBE PSUBSCRIBE UNSUBSCRIBE \
    PUNSUBSCRIBE WATCH UNWATCH";
/// Commands that wait for work; what they bring is part of a delivery, that they wait is not.
const WAITS: &str = "BRPOP BLPOP BLMOVE BZPOPMIN BZPOPMAX XREAD XREADGROUP";
/// Commands that change nothing.
const READS: &str = "GET MGET EXISTS TTL PTTL HGET HGETALL HMGET HEXISTS SISMEMBER SMEMBERS LLEN LRANGE ZRANGE ZSCORE \
    ZREVRANGEBYSCORE ZRANGEBYSCORE SCAN KEYS STRLEN TYPE TIME MULTI SCRIPT SCARD ZCARD HLEN XLEN";

/// What must be remembered of a connection to read on.
#[derive(Debug, Default)]
pub(crate) struct RedisParser {
    asked: MessageKind,
    waits: bool,
}

// === impl RedisParser ===

impl RedisParser {
    pub(crate) fn request(&mut self, bytes: &[u8]) -> Message {
        let commands = commands(bytes);
        let names = commands.iter().filter_map(|command| command.first());
        let names: Vec<String> = names.map(|name| name.to_uppercase()).collect();
        self.waits = !names.is_empty() && names.iter().all(|name| lists(WAITS, name));
        self.asked = names
            .iter()
            .map(|name| kind(name))
            .max()
            .unwrap_or_default();
        let lines: Vec<String> = commands.iter().map(|command| command.join(" ")).collect();
        Message::new(lines.join("; "), self.asked)
    }

    pub(crate) fn response(&mut self, bytes: &[u8]) -> Message {
        let nothing = [&b"*-1"[..], b"$-1", b"_\r", b"*0"]
            .iter()
            .any(|nil| bytes.starts_with(nil));
        let kind = match (self.waits, nothing) {
            (true, true) => MessageKind::Housekeeping,
            (true, false) => MessageKind::Read,
            (false, _) => self.asked,
        };
        Message::new(reply(bytes), kind)
    }
}

fn kind(name: &str) -> MessageKind {
    if lists(HOUSEKEEPING, name) || lists(WAITS, name) {
        return MessageKind::Housekeeping;
    }
    if reads(name) {
        return MessageKind::Read;
    }
    MessageKind::Commit
}

/// Whether a command changes nothing.
pub(crate) fn reads(name: &str) -> bool {
    lists(READS, name)
}

fn lists(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|one| one == name)
}

/// The commands of a chunk, each as its words.
fn commands(bytes: &[u8]) -> Vec<Vec<String>> {
    let mut rest = bytes;
    std::iter::from_fn(|| command(&mut rest)).collect()
}

fn command(rest: &mut &[u8]) -> Option<Vec<String>> {
    let count: usize = line(rest)?.strip_prefix('*')?.parse().ok()?;
    let words: Vec<String> = (0..count).map_while(|_| bulk(rest)).collect();
    (!words.is_empty()).then_some(words)
}

fn bulk(rest: &mut &[u8]) -> Option<String> {
    let length: usize = line(rest)?.strip_prefix('$')?.parse().ok()?;
    let word = String::from_utf8_lossy(rest.get(..length)?).into_owned();
    *rest = rest.get(length + 2..).unwrap_or_default();
    Some(word)
}

fn line(rest: &mut &[u8]) -> Option<String> {
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let line = String::from_utf8_lossy(rest.get(..end)?).into_owned();
    *rest = rest.get(end + 2..)?;
    Some(line)
}

fn reply(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match first.chars().next() {
        Some('$') if first != "$-1" => lines.next().unwrap_or_default().to_owned(),
        Some('$' | '_') => "nothing".to_owned(),
        Some('*') if first == "*-1" => "nothing".to_owned(),
        Some('*') => lines
            .filter(|line| !line.starts_with('$'))
            .collect::<Vec<_>>()
            .join(" "),
        Some(_) | None => first.trim_start_matches(['+', ':', '-']).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessageKind::{Commit, Housekeeping, Read};

    #[test]
    fn commands_are_read_also_when_pipelined() {
        let mut parser = RedisParser::default();
        let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n";
        assert_eq!(
            parser.request(bytes),
            Message::new("GET a; SET a b", Commit)
        );
        assert_eq!(
            parser.response(b"$-1\r\n+OK\r\n"),
            Message::new("nothing", Commit)
        );
    }

    #[test]
    fn waiting_for_work_is_small_and_work_is_not() {
        let mut parser = RedisParser::default();
        let wait = b"*3\r\n$5\r\nBRPOP\r\n$6\r\ncelery\r\n$1\r\n1\r\n";
        assert_eq!(parser.request(wait).kind, Housekeeping);
        assert_eq!(parser.response(b"*-1\r\n").kind, Housekeeping);
        parser.request(wait);
        let work = parser.response(b"*2\r\n$6\r\ncelery\r\n$4\r\nwork\r\n");
        assert_eq!(work, Message::new("celery work", Read));
    }

    #[test]
    fn nothing_found_by_a_check_is_part_of_the_delivery() {
        let mut parser = RedisParser::default();
        parser.request(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
        assert_eq!(parser.response(b"$-1\r\n"), Message::new("nothing", Read));
    }

    #[test]
    fn bytes_of_no_sense_do_no_harm() {
        let mut parser = RedisParser::default();
        assert_eq!(parser.request(b"*9\r\n$99\r\nx").text, "");
        assert_eq!(parser.response(&[0, 1, 2]).kind, Read);
    }
}
