//! A key set with the tokens that it has verified: a sender shows one token with many deliveries until it is used up,
//! and its signature is by far the dearest part of reading it. What a token says, and until when, is read every time.
//! Nothing outlives the key set: a key that its issuer withdraws is believed no longer than without this.

use super::{KeySet, Refusal, Token};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// See the module.
#[derive(Debug)]
pub(super) struct Verifier {
    keys: KeySet,
    verified: Mutex<HashSet<TokenDigest>>,
}

/// Of the whole token, so that another signature under the same claims is another token.
type TokenDigest = [u8; SHA256_OUTPUT_LEN];

/// Senders that share a gate have a few each hour. Whoever can have more of them signed makes others be verified again.
const VERIFIED_MAX: usize = 1024;

// === impl Verifier ===

impl Verifier {
    pub(super) fn new(keys: KeySet) -> Self {
        Self {
            keys,
            verified: Mutex::default(),
        }
    }

    /// Whether there is a key with this id.
    pub(super) fn has(&self, id: &str) -> bool {
        self.keys.has(id)
    }

    /// Whether the key that a token names signed it.
    pub(super) fn verify(&self, token: &Token<'_>) -> Result<(), Refusal> {
        let digest = token_digest(token);
        if self.lock().contains(&digest) {
            return Ok(());
        }
        self.keys.verify(token)?;
        let mut verified = self.lock();
        if verified.len() >= VERIFIED_MAX {
            verified.clear();
        }
        verified.insert(digest);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<TokenDigest>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn token_digest(token: &Token<'_>) -> TokenDigest {
    let digest = digest(&SHA256, token.text.as_bytes());
    let bytes = digest.as_ref().try_into();
    bytes.expect("a digest of SHA-256 has its length")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Algorithm;
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};

    /// A key pair, and a set with its public key.
    fn signer() -> (EcdsaKeyPair, KeySet) {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let pair = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pair.as_ref(), &random).unwrap();
        let point = pair.public_key().as_ref();
        let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
        let page =
            format!(r#"{{"keys":[{{"kty":"EC","crv":"P-256","kid":"k","x":"{x}","y":"{y}"}}]}}"#);
        (pair, KeySet::parse(page.as_bytes()).unwrap())
    }

    fn signed(pair: &EcdsaKeyPair, claims: &str) -> String {
        let header = encode(br#"{"alg":"ES256","kid":"k"}"#);
        let signed = format!("{header}.{}", encode(claims.as_bytes()));
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(signature.as_ref()))
    }

    fn encode(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn verify(verifier: &Verifier, token: &str) -> Result<(), Refusal> {
        verifier.verify(&Token::parse(token, &[Algorithm::Es256])?)
    }

    #[test]
    fn only_what_was_signed_is_remembered() {
        let (pair, keys) = signer();
        let verifier = Verifier::new(keys);
        let token = signed(&pair, "{}");
        let other = signed(&pair, r#"{"a":1}"#);
        let (claims, signature) = (
            other.rsplit_once('.').unwrap().0,
            token.rsplit_once('.').unwrap().1,
        );
        let forged = format!("{claims}.{signature}");
        for _ in 0..2 {
            assert_eq!(verify(&verifier, &token), Ok(()));
            assert_eq!(verify(&verifier, &forged), Err(Refusal::Signature));
        }
        assert_eq!(verifier.lock().len(), 1);
    }

    #[test]
    fn no_number_of_tokens_makes_it_grow() {
        let (pair, keys) = signer();
        let verifier = Verifier::new(keys);
        for number in 0..=VERIFIED_MAX {
            verify(&verifier, &signed(&pair, &number.to_string())).unwrap();
            assert!(verifier.lock().len() <= VERIFIED_MAX);
        }
    }
}
