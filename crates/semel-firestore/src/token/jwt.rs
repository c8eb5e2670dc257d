//! The signed statement by which a service account asks for a token (RFC 7523).

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use std::fmt;
use std::sync::Arc;

/// What may be done with the token: Google's own clients ask for the same.
const SCOPE: &str = "https://www.googleapis.com/auth/datastore";

/// For how many seconds the statement is good: the longest that Google takes.
const LIFETIME: u64 = 3_600;

/// A service account's private key. Never shown.
pub(crate) struct SigningKey(Arc<dyn rustls::sign::SigningKey>);

// === impl SigningKey ===

impl SigningKey {
    /// From PEM; says what is wrong without repeating any of it.
    pub(crate) fn parse(pem: &str) -> Result<Self, &'static str> {
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| "is no PEM")?;
        let key = any_supported_type(&key).map_err(|_| "is not a key that can sign tokens")?;
        Ok(Self(key))
    }

    /// The statement that `email` wants a token, at `now` in seconds since 1970.
    pub(crate) fn assertion(
        &self,
        email: &str,
        key_id: Option<&str>,
        audience: &str,
        now: u64,
    ) -> Result<String, &'static str> {
        let header = match key_id {
            Some(key_id) => json!({"alg": "RS256", "typ": "JWT", "kid": key_id}),
            None => json!({"alg": "RS256", "typ": "JWT"}),
        };
        let claims = json!({
            "iss": email, "scope": SCOPE, "aud": audience, "iat": now, "exp": now + LIFETIME,
        });
        let part = |value: &serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&header), part(&claims));
        let scheme = [SignatureScheme::RSA_PKCS1_SHA256];
        let signer = self.0.choose_scheme(&scheme).ok_or("is no RSA key")?;
        let signature = signer.sign(text.as_bytes()).map_err(|_| "does not sign")?;
        Ok(format!(
            "{text}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(signature)
        ))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}
