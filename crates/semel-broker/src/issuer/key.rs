//! The key that signs: made once, kept in storage, shown to who verifies.

use crate::storage::{Batch, Storage, StorageError, Table};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rsa::pkcs1v15::SigningKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey, LineEnding};
use rsa::signature::{SignatureEncoding, Signer};
use rsa::traits::PublicKeyParts;
use rsa::{RsaPrivateKey, RsaPublicKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt;

const BITS: usize = 2048;

/// Where it is kept: PKCS#8.
const PLACE: &[u8] = b"issuer key";

/// A key, and the name by which verifiers find its public half.
pub(super) struct Key {
    id: String,
    signing: SigningKey<Sha256>,
    public: RsaPublicKey,
}

// === impl Key ===

impl Key {
    /// The key on a storage; a new one is put there when there is none.
    pub(super) async fn of(storage: &Storage) -> Result<Self, StorageError> {
        if let Some(kept) = storage.get(Table::Meta, PLACE)? {
            let key = RsaPrivateKey::from_pkcs8_der(&kept);
            return key.map(Self::new).map_err(|error| {
                StorageError(format!("the key that signs tokens cannot be read: {error}"))
            });
        }
        let making = tokio::task::spawn_blocking(make).await;
        let key = making.expect("making a key does not panic")?;
        let kept = key.to_pkcs8_der().expect("a fresh key can be written");
        let mut batch = Batch::default();
        batch.put(Table::Meta, PLACE, kept.as_bytes().to_vec());
        storage.commit(batch).await?;
        Ok(Self::new(key))
    }

    fn new(key: RsaPrivateKey) -> Self {
        let public = key.to_public_key();
        let der = public.to_public_key_der().expect("a key can be written");
        let digest = Sha256::digest(der.as_bytes());
        let id = digest.iter().take(20).map(|byte| format!("{byte:02x}"));
        Self {
            id: id.collect(),
            signing: SigningKey::new(key),
            public,
        }
    }

    /// These claims, signed.
    pub(super) fn token(&self, claims: &[u8]) -> String {
        let header = json!({ "alg": "RS256", "kid": self.id, "typ": "JWT" });
        let header = URL_SAFE_NO_PAD.encode(header.to_string());
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
        let signature = self.signing.sign(signed.as_bytes()).to_bytes();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// The public half, as a set of JSON web keys.
    pub(super) fn as_jwks(&self) -> Value {
        let number = |it: &rsa::BigUint| URL_SAFE_NO_PAD.encode(it.to_bytes_be());
        json!({ "keys": [{
            "alg": "RS256",
            "e": number(self.public.e()),
            "kid": self.id,
            "kty": "RSA",
            "n": number(self.public.n()),
            "use": "sig",
        }] })
    }

    /// The public half in PEM, by its name.
    pub(super) fn as_pem(&self) -> Value {
        let pem = self.public.to_public_key_pem(LineEnding::LF);
        json!({ self.id.clone(): pem.expect("a key can be written") })
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish()
    }
}

fn make() -> Result<RsaPrivateKey, StorageError> {
    RsaPrivateKey::new(&mut rsa::rand_core::OsRng, BITS)
        .map_err(|error| StorageError(format!("no key to sign tokens with: {error}")))
}
