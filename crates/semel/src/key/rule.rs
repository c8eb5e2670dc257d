//! Key rules: which parts of a delivery name the work.

use super::{Field, Key, KeyError, PART_BYTES_MAX, Scope, bounded, form};
use crate::payload::Payload;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Which parts of a delivery name the work, in order. Written as a list with spaces or commas between,
/// or as the name of a preset. A pointer that has a comma itself goes to [`KeyRule::new`].
///
/// ```
/// use semel::key::KeyRule;
///
/// let rule: KeyRule = "ce:source ce:id".parse().unwrap();
/// assert_eq!(rule, "cloudevents".parse().unwrap());
/// assert_eq!(rule, "ce:source, ce:id".parse().unwrap());
/// assert!("order_id".parse::<KeyRule>().unwrap_err().to_string().contains("order_id"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRule {
    parts: Vec<Part>,
}

/// One part of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A JSON pointer (RFC 6901) into the payload. `/order~json/id` leads into a string that holds JSON;
    /// `/id?null` accepts `null`, `[]` and `{}`, which count as missing otherwise.
    Pointer(String),
    /// A field of a form body, by its name: `form:MessageSid`.
    Form(String),
    /// A value that travels beside the payload, by its name: `header:x-request-id`, `message-id`.
    Named(String),
    /// The digest of the whole payload.
    Body,
}

/// What a rule reads: the payload, and named values that travel beside it.
#[derive(Clone, Debug, Default)]
pub struct Delivered<'a> {
    payload: &'a [u8],
    read: Option<&'a Payload<'a>>,
    named: BTreeMap<String, String>,
}

/// The rules that have names.
const PRESETS: [(&str, &str); 8] = [
    ("cloud-tasks", "queue task-name"),
    ("pubsub", "subscription message-id"),
    ("cloudevents", "ce:source ce:id"),
    ("idempotency-key", "header:idempotency-key"),
    ("stripe", "/id"),
    ("github", "header:x-github-delivery"),
    ("shopify", "header:x-shopify-webhook-id"),
    ("standard-webhooks", "header:webhook-id"),
];

/// Ends a pointer that accepts `null`, `[]` and `{}`.
pub(crate) const NULL: &str = "?null";

/// Ends a segment that leads to a string that holds JSON.
pub(crate) const JSON: &str = "~json";

/// Begins a part that is a field of a form body.
pub(crate) const FORM: &str = "form:";

/// Named parts that have no prefix.
const PLAIN: [&str; 4] = ["message-id", "task-name", "queue", "subscription"];

// === impl KeyRule ===

impl KeyRule {
    /// A rule of these parts.
    ///
    /// # Errors
    /// When there is none, or one has no known form.
    pub fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self, KeyError> {
        let parts = parts
            .into_iter()
            .map(Part::from_str)
            .collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() {
            return Err(KeyError::Empty {
                what: "the key rule".into(),
            });
        }
        Ok(Self { parts })
    }

    /// The key of a delivery.
    ///
    /// # Errors
    /// When a part is missing or malformed.
    pub fn key(&self, scope: &Scope, delivered: &Delivered<'_>) -> Result<Key, KeyError> {
        Key::of(scope, &self.fields(delivered)?)
    }

    /// The parts of a delivery as they are hashed.
    ///
    /// # Errors
    /// When a part is missing or malformed.
    pub fn fields(&self, delivered: &Delivered<'_>) -> Result<Vec<Field>, KeyError> {
        let own;
        let payload = match delivered.read {
            Some(read) => read,
            None => {
                own = Payload::read(delivered.payload, self.pointers());
                &own
            }
        };
        self.parts
            .iter()
            .map(|part| {
                let field = part.field(delivered, payload)?;
                bounded(
                    &format!("key part {part}"),
                    field.bytes.len(),
                    PART_BYTES_MAX,
                )?;
                Ok(field)
            })
            .collect()
    }

    /// Refuses a part that is there but empty. It has an encoding, but names nothing: all deliveries that
    /// lack a name would be one piece of work.
    ///
    /// # Errors
    /// When one of the fields is empty.
    pub fn refuse_empty(&self, fields: &[Field]) -> Result<(), KeyError> {
        let mut both = self.parts.iter().zip(fields);
        match both.find(|(_, field)| field.bytes.is_empty()) {
            None => Ok(()),
            Some((part, _)) => Err(KeyError::Empty {
                what: format!("key part {part}"),
            }),
        }
    }

    /// The JSON pointers among the parts: what [`Payload::read`] is to look for.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Pointer(pointer) => Some(pointer.as_str()),
            Part::Form(_) | Part::Named(_) | Part::Body => None,
        })
    }

    /// The parts, in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl FromStr for KeyRule {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let preset = PRESETS.into_iter().find(|(name, _)| *name == text.trim());
        let parts = preset.map_or(text, |(_, parts)| parts);
        let between = |c: char| c == ',' || c.is_whitespace();
        Self::new(parts.split(between).filter(|part| !part.is_empty()))
    }
}

// === impl Part ===

impl Part {
    fn field(&self, delivered: &Delivered<'_>, payload: &Payload<'_>) -> Result<Field, KeyError> {
        let missing = || KeyError::MissingPart {
            part: self.to_string(),
        };
        match self {
            Self::Body => Ok(Field {
                kind: 'h',
                bytes: Sha256::digest(delivered.payload).to_vec(),
            }),
            Self::Named(name) => {
                let text = delivered.named.get(name).ok_or_else(missing)?;
                Ok(Field {
                    kind: 's',
                    bytes: text.clone().into_bytes(),
                })
            }
            Self::Form(name) => {
                let text = form::field(delivered.payload, name)?.ok_or_else(missing)?;
                Ok(Field {
                    kind: 's',
                    bytes: text.into_bytes(),
                })
            }
            Self::Pointer(pointer) => payload.field(pointer)?.ok_or_else(missing),
        }
    }
}

impl FromStr for Part {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let named = text.split_once(':').is_some_and(|(kind, name)| {
            matches!(kind, "header" | "attribute" | "ce") && !name.is_empty()
        });
        match text {
            "body" => Ok(Self::Body),
            _ if is_pointer(text) => Ok(Self::Pointer(text.into())),
            _ if text.len() > FORM.len() && text.starts_with(FORM) => {
                Ok(Self::Form(text.replacen(FORM, "", 1)))
            }
            _ if named || PLAIN.contains(&text) => Ok(Self::Named(canonical_name(text))),
            _ => Err(KeyError::BadPart { part: text.into() }),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer(text) | Self::Named(text) => f.write_str(text),
            Self::Form(name) => write!(f, "{FORM}{name}"),
            Self::Body => f.write_str("body"),
        }
    }
}

/// RFC 6901: begins with a slash, and every tilde is `~0` or `~1`, but for a `~json` that ends a segment.
fn is_pointer(text: &str) -> bool {
    let pointer = text.strip_suffix(NULL).unwrap_or(text);
    let is_segment = |segment: &str| {
        let name = segment.strip_suffix(JSON).unwrap_or(segment);
        let mut escapes = name.split('~').skip(1);
        escapes.all(|rest| rest.starts_with(['0', '1']))
    };
    pointer.starts_with('/') && pointer.split('/').all(is_segment)
}

/// Header names know no case; all other names do.
fn canonical_name(name: &str) -> String {
    if name.starts_with("header:") {
        name.to_ascii_lowercase()
    } else {
        name.into()
    }
}

// === impl Delivered ===

impl<'a> Delivered<'a> {
    /// A delivery of which only the payload is known.
    #[must_use]
    pub const fn payload(payload: &'a [u8]) -> Self {
        Self {
            payload,
            read: None,
            named: BTreeMap::new(),
        }
    }

    /// A delivery whose payload was read already, with the rule's [pointers](KeyRule::pointers).
    #[must_use]
    pub const fn read(payload: &'a Payload<'a>) -> Self {
        Self {
            payload: payload.bytes(),
            read: Some(payload),
            named: BTreeMap::new(),
        }
    }

    /// Adds a named value: `header:NAME`, `attribute:NAME`, `ce:NAME`, `message-id`, ...
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.named.insert(canonical_name(name), value.into());
        self
    }
}
