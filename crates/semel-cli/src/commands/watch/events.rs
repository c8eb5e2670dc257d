//! Server-sent events, out of the bytes of a stream.

use serde_json::Value;

/// The longest line that is kept: a delivery is far shorter.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Events while they arrive.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    name: String,
    data: String,
}

// === impl Events ===

impl Events {
    /// The events that end with these bytes, each with its name and data. What is no JSON is left out.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                events.extend(self.line(&String::from_utf8_lossy(&line)));
            } else if self.line.len() < LINE_BYTES_MAX {
                self.line.push(*byte);
            }
        }
        events
    }

    /// The event that ends with this line, if one does.
    fn line(&mut self, line: &str) -> Option<(String, Value)> {
        let line = line.trim_end_matches('\r');
        if line.is_empty() {
            let (name, data) = (
                std::mem::take(&mut self.name),
                std::mem::take(&mut self.data),
            );
            return Some((name, serde_json::from_str(&data).ok()?));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = value.into(),
            "data" => self.data.push_str(value),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_read_however_their_bytes_come() {
        let stream = "retry: 1000\nevent: gate\ndata: {\"gate\":\"g\"}\n\n: alive\n\nevent: delivery\r\ndata: {\"a\":1}\r\n\r\n";
        for step in [1, 7, stream.len()] {
            let mut events = Events::default();
            let heard: Vec<_> = stream
                .as_bytes()
                .chunks(step)
                .flat_map(|it| events.read(it))
                .collect();
            let expected = [
                ("gate", json!({"gate": "g"})),
                ("delivery", json!({"a": 1})),
            ];
            assert_eq!(
                heard,
                expected.map(|(name, data)| (name.to_owned(), data)),
                "{step}"
            );
        }
    }
}
