//! Signed webhooks: each file reads one sender's form, and here the signature is checked, over the body as it came.

mod stripe;
mod github;
mod shopify;
mod standard;

use super::Refusal;
use crate::delivery::single_header;
use crate::settings::{Secret, SignatureRule, Webhook};
use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;
use ring::hmac::{Context, HMAC_SHA256, Key};
use std::borrow::Cow;
use std::time::Duration;
use subtle::ConstantTimeEq;

/// What a sender says that it signed, beside the body, and the signatures that it shows.
struct Signed {
    /// Comes before the body.
    prefix: String,
    /// One of them must be right: a sender shows several while its secret is replaced.
    signatures: Vec<Vec<u8>>,
}

/// Each costs one comparison; nobody replaces so many secrets at once.
const SIGNATURES_MAX: usize = 32;

const SECRET_PREFIX: &str = "whsec_";

/// Secrets are shown with padding or without it.
const SECRET_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Whether the sender of this rule signed the body, at this many seconds since 1970.
///
/// # Errors
/// When it did not, or too long ago.
pub fn check(
    rule: &SignatureRule,
    headers: &HeaderMap,
    body: &[u8],
    now: i64,
) -> Result<(), Refusal> {
    let signed = match rule.sender {
        Webhook::Stripe => stripe::read(headers, |t| is_recent(t, now, rule.tolerance))?,
        Webhook::GitHub => github::read(headers)?,
        Webhook::Shopify => shopify::read(headers)?,
        Webhook::Standard => standard::read(headers, |t| is_recent(t, now, rule.tolerance))?,
    };
    if signed.signatures.len() > SIGNATURES_MAX {
        return Err(Refusal::SignatureMalformed);
    }
    let is_right = |secret: &Secret| match secret_bytes(rule.sender, secret) {
        Some(key) => signed.is_by(&key, body),
        None => false,
    };
    if rule.secrets.iter().any(is_right) {
        Ok(())
    } else {
        Err(Refusal::Signature)
    }
}

/// The bytes of a secret as its sender uses them; none when it is not one of that sender's.
#[must_use]
pub fn secret_bytes(sender: Webhook, secret: &Secret) -> Option<Cow<'_, [u8]>> {
    let Secret(text) = secret;
    let bytes = match sender {
        Webhook::Stripe | Webhook::GitHub | Webhook::Shopify => Cow::Borrowed(text.as_bytes()),
        Webhook::Standard => {
            let encoded = text.strip_prefix(SECRET_PREFIX).unwrap_or(text);
            Cow::Owned(SECRET_BASE64.decode(encoded).ok()?)
        }
    };
    (!bytes.is_empty()).then_some(bytes)
}

/// Whether a time that is signed along, in seconds since 1970, is close enough to this one.
fn is_recent(written: &str, now: i64, tolerance: Duration) -> Result<(), Refusal> {
    let digits = !written.is_empty() && written.bytes().all(|byte| byte.is_ascii_digit());
    let time: Option<i64> = digits.then(|| written.parse().ok()).flatten();
    let time = time.ok_or(Refusal::SignatureMalformed)?;
    if time.abs_diff(now) > tolerance.as_secs() {
        return Err(Refusal::Timestamp);
    }
    Ok(())
}

/// A header that must be there once.
fn one_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Cow<'a, str>, Refusal> {
    single_header(headers, name)
        .map_err(|_| Refusal::SignatureMalformed)?
        .ok_or(Refusal::SignatureMissing)
}

// === impl Signed ===

impl Signed {
    /// The body alone.
    fn body(signature: Vec<u8>) -> Self {
        Self {
            prefix: String::new(),
            signatures: vec![signature],
        }
    }

    fn is_by(&self, secret: &[u8], body: &[u8]) -> bool {
        let mut context = Context::with_key(&Key::new(HMAC_SHA256, secret));
        context.update(self.prefix.as_bytes());
        context.update(body);
        let right = context.sign();
        // All are compared, each in a time that says nothing of where it differs.
        let equal = |shown: &Vec<u8>| bool::from(right.as_ref().ct_eq(shown));
        self.signatures.iter().filter(|shown| equal(shown)).count() > 0
    }
}
