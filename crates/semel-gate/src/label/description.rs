//! What a delivery says of its work, beside key and fingerprint: the parts of its key as text, and digests of what its
//! fingerprint was taken of.

use super::{Digests, about, cut};
use crate::delivery::Delivery;
use crate::letters::is_credential;
use crate::settings::{Caller, Route};
use bytes::Bytes;
use ring::hmac;
use semel::key::{Field, KeyRule, Part};

/// The longest text of a part, in bytes: enough for any id, too little for a document.
pub(crate) const PART_TEXT_BYTES_MAX: usize = 128;

/// The most parts that are shown.
pub(crate) const PARTS_SHOWN_MAX: usize = 8;

/// How much of a private part's digest is shown, in bytes.
const PRIVATE_BYTES: usize = 8;

/// What a delivery says of its work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The parts of its key by name: in clear, or a keyed digest on a private route.
    pub parts: Vec<(String, String)>,
    /// Of what its fingerprint was taken.
    pub digests: Digests,
    /// The payload, where the route keeps it.
    pub payload: Option<Bytes>,
}

// === impl Description ===

impl Description {
    /// Of a delivery whose key has these fields.
    #[must_use]
    pub fn of(
        route: &Route,
        delivery: &Delivery,
        rule: &KeyRule,
        fields: &[Field],
        digests: Digests,
    ) -> Self {
        let key = route.private.as_ref();
        let key = key.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.0.as_bytes()));
        let shown = rule.parts().iter().zip(fields).take(PARTS_SHOWN_MAX);
        let shown = shown.filter(|(part, _)| !tells_who(route, part));
        let parts = shown.map(|(part, field)| {
            let value = match &key {
                Some(key) => pseudonym(key, part, field),
                None => text(field),
            };
            (part_name(part).to_owned(), value)
        });
        let parts = parts.collect();
        Self {
            parts,
            digests: key.map_or(digests, |key| digests.keyed(&key)),
            payload: route.keep_payload.then(|| delivery.payload.clone()),
        }
    }

    /// Of a key with these fields, in clear, where there is no route to say otherwise.
    #[must_use]
    pub fn in_clear(rule: &KeyRule, fields: &[Field]) -> Self {
        let shown = rule.parts().iter().zip(fields).take(PARTS_SHOWN_MAX);
        Self {
            parts: shown
                .map(|(part, field)| (part_name(part).to_owned(), text(field)))
                .collect(),
            ..Self::default()
        }
    }

    /// One short line for people.
    #[must_use]
    pub fn about(&self) -> String {
        about(&self.parts)
    }
}

/// The name of a part for people: `order_id` of `/order_id`.
#[must_use]
pub fn part_name(part: &Part) -> &str {
    match part {
        Part::Pointer(pointer) => {
            let pointer = pointer.strip_suffix("?null").unwrap_or(pointer);
            pointer.strip_prefix('/').unwrap_or(pointer)
        }
        Part::Form(name) | Part::Named(name) => name,
        Part::Body => "body",
    }
}

/// Whether a part would show who asked, or what proves it.
fn tells_who(route: &Route, part: &Part) -> bool {
    let Part::Named(name) = part else {
        return false;
    };
    let Some(header) = name.strip_prefix("header:") else {
        return false;
    };
    let is_caller = matches!(&route.caller, Some(Caller::Header(caller)) if caller == header);
    is_caller || is_credential(header)
}

fn text(field: &Field) -> String {
    match std::str::from_utf8(&field.bytes) {
        Ok(text) if field.kind != 'h' => cut(text, PART_TEXT_BYTES_MAX).into_owned(),
        Ok(_) | Err(_) => {
            let shown = field.bytes.get(..PRIVATE_BYTES).unwrap_or(&field.bytes);
            hex::encode(shown)
        }
    }
}

/// The same text has the same one, and nobody without the key can try guesses on it.
fn pseudonym(key: &hmac::Key, part: &Part, field: &Field) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(part_name(part).as_bytes());
    context.update(&[0]);
    context.update(&field.bytes);
    let tag = context.sign();
    let shown = tag.as_ref().get(..PRIVATE_BYTES).unwrap_or_default();
    format!("~{}", hex::encode(shown))
}
