//! The names that keys have on the server, all under one prefix.

use semel::Key;
use semel::letter::LetterId;

/// Names under one prefix.
#[derive(Debug)]
pub(crate) struct Names {
    prefix: String,
}

// === impl Names ===

impl Names {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    /// Of a key that is not about a record.
    pub(crate) fn of(&self, what: &str) -> String {
        format!("{}:{what}", self.prefix)
    }

    pub(crate) fn record(&self, key: &Key) -> String {
        let mut digits = [0; 64];
        hex::encode_to_slice(key.as_bytes(), &mut digits).expect("64 digits hold 32 bytes");
        let digits = std::str::from_utf8(&digits).expect("hex digits are text");
        let mut name = String::with_capacity(self.prefix.len() + digits.len() + 5);
        for part in [self.prefix.as_str(), ":{", digits, "}"] {
            name.push_str(part);
        }
        name
    }

    /// Of the keys under the digest of a transport id.
    pub(crate) fn index(&self, id: &[u8; 32]) -> String {
        self.of(&format!("i:{{{}}}", hex::encode(id)))
    }

    /// Of the digests under which a key is kept: in the slot of its record.
    pub(crate) fn index_of(&self, key: &Key) -> String {
        self.record(key) + ":i"
    }

    /// Of the deliveries and heads of all letters, and of their order.
    pub(crate) fn letters(&self) -> [String; 2] {
        [self.of("{letters}:h"), self.of("{letters}:z")]
    }

    pub(crate) fn tombstone(&self, id: &LetterId) -> String {
        self.of(&format!("{{letters}}:t:{id}"))
    }

    /// The pattern that names of records match, and names of steps and letters do not.
    pub(crate) fn record_pattern(&self) -> String {
        self.of("{*}")
    }

    /// The key of the record with that name.
    pub(crate) fn key_of(&self, name: &[u8]) -> Option<Key> {
        let rest = name.strip_prefix(self.prefix.as_bytes())?;
        let digits = rest.strip_prefix(b":{")?.strip_suffix(b"}")?;
        let mut key = [0; 32];
        hex::decode_to_slice(digits, &mut key).ok()?;
        Some(Key::from_bytes(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_records_are_read_back_and_others_are_not() {
        let names = Names::new("sml");
        let key = Key::from_bytes([0xab; 32]);
        let name = names.record(&key);
        assert_eq!(name, format!("sml:{{{}}}", "ab".repeat(32)));
        assert_eq!(names.key_of(name.as_bytes()), Some(key));
        for other in [
            &format!("{name}:s"),
            "sml:{letters}:h",
            "sml:{}",
            "x:{ab}",
            "",
        ] {
            assert_eq!(names.key_of(other.as_bytes()), None, "{other}");
        }
    }
}
