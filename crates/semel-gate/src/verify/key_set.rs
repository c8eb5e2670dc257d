//! An issuer's public keys (RFC 7517).

use super::{Refusal, Token};
use crate::settings::Algorithm;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// The keys of an issuer that tokens can be signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySet(Vec<PublicKey>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct PublicKey {
    id: String,
    numbers: Numbers,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Numbers {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// A point of P-256, uncompressed.
    P256(Vec<u8>),
}

/// A key as it is written. What it may be used for is looked at, too.
#[derive(Debug, Deserialize)]
struct Written {
    kty: String,
    kid: Option<String>,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Page {
    keys: Vec<serde_json::Value>,
}

/// Issuers have a handful.
const KEYS_MAX: usize = 100;

const POINT_BYTES: usize = 32;

// === impl KeySet ===

impl KeySet {
    /// Reads a key set. Keys for other uses, or of kinds that are not known here, are left out.
    ///
    /// # Errors
    /// When it is not a key set, or no key is left; the words say which.
    pub fn parse(page: &[u8]) -> Result<Self, String> {
        let page: Page = serde_json::from_slice(page)
            .map_err(|error| format!("this is not a key set: {error}"))?;
        let written = page.keys.into_iter().take(KEYS_MAX);
        let keys: Vec<_> = written
            .filter_map(|key| serde_json::from_value::<Written>(key).ok()?.public_key())
            .collect();
        if keys.is_empty() {
            return Err("there is no RSA or P-256 key for signatures in it".into());
        }
        Ok(Self(keys))
    }

    /// Whether there is a key with this id.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.0.iter().any(|key| key.id == id)
    }

    /// Whether the key that a token names signed it. A key signs in one way only, whatever the token says.
    ///
    /// # Errors
    /// When there is no such key, or it did not.
    pub fn verify(&self, token: &Token<'_>) -> Result<(), Refusal> {
        let signature = token.signature()?;
        let mut known = Refusal::KeyUnknown;
        for key in self.0.iter().filter(|key| key.id == token.key_id) {
            if key.signed(token.algorithm, token.signed.as_bytes(), &signature) {
                return Ok(());
            }
            known = Refusal::Signature;
        }
        Err(known)
    }
}

// === impl PublicKey ===

impl PublicKey {
    fn signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (&self.numbers, algorithm) {
            (Numbers::Rsa { n, e }, Algorithm::Rs256) => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            (Numbers::P256(point), Algorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                    .verify(message, signature)
                    .is_ok()
            }
            (Numbers::Rsa { .. }, Algorithm::Es256) | (Numbers::P256(_), Algorithm::Rs256) => false,
        }
    }
}

// === impl Written ===

impl Written {
    fn public_key(self) -> Option<PublicKey> {
        let (algorithm, numbers) = match self.kty.as_str() {
            "RSA" => {
                let (n, e) = (number(self.n.as_deref()?)?, number(self.e.as_deref()?)?);
                (Algorithm::Rs256, Numbers::Rsa { n, e })
            }
            "EC" if self.crv.as_deref() == Some("P-256") => {
                let (x, y) = (self.x.as_deref()?, self.y.as_deref()?);
                (Algorithm::Es256, Numbers::P256(point(x, y)?))
            }
            _ => return None,
        };
        let verifies = |operations: Vec<String>| operations.iter().any(|it| it == "verify");
        let for_signatures =
            self.r#use.is_none_or(|it| it == "sig") && self.key_ops.is_none_or(verifies);
        let for_this = self.alg.is_none_or(|it| it == algorithm.word());
        let id = self.kid.filter(|_| for_signatures && for_this)?;
        Some(PublicKey { id, numbers })
    }
}

/// A number without zeros before it.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    Some(bytes.into_iter().skip_while(|byte| *byte == 0).collect())
}

fn point(x: &str, y: &str) -> Option<Vec<u8>> {
    const UNCOMPRESSED: u8 = 4;
    let coordinate = |text: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        (bytes.len() == POINT_BYTES).then_some(bytes)
    };
    Some([vec![UNCOMPRESSED], coordinate(x)?, coordinate(y)?].concat())
}
