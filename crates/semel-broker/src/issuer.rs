//! Tokens that say who delivers: signed with a key of this broker's own, by an issuer no production verifier trusts.

mod key;
mod routes;

pub(crate) use routes::routes;

use crate::clock::{Clock, Time};
use crate::storage::{Storage, StorageError};
use http::HeaderValue;
use key::Key;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::OnceCell;

/// How long a token is valid, as in production.
const VALID: Duration = Duration::from_secs(3600);

/// How long before its end a token is not handed out any more.
const TOO_OLD: Duration = Duration::from_secs(300);

/// How many tokens are kept to be used again.
const KEPT_MAX: usize = 1000;

/// Signs tokens.
#[derive(Debug)]
pub(crate) struct Issuer {
    url: String,
    clock: Clock,
    storage: Storage,
    /// Made or read when first needed.
    key: OnceCell<Arc<Key>>,
    kept: Mutex<HashMap<Holder, SignedToken>>,
}

/// Whom a token is about, and whom it is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Holder {
    email: String,
    audience: String,
}

#[derive(Clone, Debug)]
struct SignedToken {
    text: String,
    use_until: Time,
}

// === impl Issuer ===

impl Issuer {
    /// An issuer that is found at this address and keeps its key in storage.
    pub(crate) fn new(clock: Clock, storage: Storage, url: String) -> Self {
        Self {
            url,
            clock,
            storage,
            key: OnceCell::new(),
            kept: Mutex::default(),
        }
    }

    /// A token for this account and audience, valid for an hour by the machine's clock: who verifies
    /// it knows no other, however far the broker's was put forward.
    ///
    /// # Errors
    /// When the key can neither be read nor kept. A retry is safe.
    pub(crate) async fn token(&self, email: &str, audience: &str) -> Result<String, StorageError> {
        let holder = Holder {
            email: email.into(),
            audience: audience.into(),
        };
        let now = self.clock.wall();
        if let Some(text) = self.kept_for(&holder, now) {
            return Ok(text);
        }
        let text = self.sign(&holder, now).await?;
        self.keep(holder, &text, now);
        Ok(text)
    }

    /// The same, as the header of a request.
    pub(crate) async fn bearer(&self, email: &str, audience: &str) -> Result<HeaderValue, String> {
        let token = self.token(email, audience).await;
        let token = token.map_err(|error| error.to_string())?;
        HeaderValue::try_from(format!("Bearer {token}")).map_err(|error| error.to_string())
    }

    async fn sign(&self, holder: &Holder, now: Time) -> Result<String, StorageError> {
        let account = account_number(&holder.email);
        let claims = json!({
            "aud": holder.audience,
            "azp": account,
            "email": holder.email,
            "email_verified": true,
            "exp": now.plus(VALID).timestamp().seconds,
            "iat": now.timestamp().seconds,
            "iss": self.url,
            "sub": account,
        });
        let claims = claims.to_string();
        let key = Arc::clone(self.key().await?);
        let signing = tokio::task::spawn_blocking(move || key.token(claims.as_bytes()));
        Ok(signing.await.expect("signing does not panic"))
    }

    async fn key(&self) -> Result<&Arc<Key>, StorageError> {
        let made = || async { Key::of(&self.storage).await.map(Arc::new) };
        self.key.get_or_try_init(made).await
    }

    fn kept_for(&self, holder: &Holder, now: Time) -> Option<String> {
        let kept = self.kept.lock().expect("nobody panics holding it");
        let token = kept.get(holder).filter(|token| now < token.use_until)?;
        Some(token.text.clone())
    }

    fn keep(&self, holder: Holder, text: &str, now: Time) {
        let mut kept = self.kept.lock().expect("nobody panics holding it");
        if kept.len() >= KEPT_MAX {
            kept.retain(|_, token| now < token.use_until);
        }
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let token = SignedToken {
            text: text.into(),
            use_until: now.plus(VALID).minus(TOO_OLD),
        };
        kept.insert(holder, token);
    }
}

/// 21 digits, the same for the same email.
fn account_number(email: &str) -> String {
    let digest = Sha256::digest(email);
    let first = digest.first_chunk().expect("a digest has 32 bytes");
    format!("1{:020}", u64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests;
