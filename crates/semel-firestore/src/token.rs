//! Tokens: who we are, told to Firestore with every request, asked for anew before it is too old.

mod credentials;
mod jwt;
mod fetch;

pub(crate) use credentials::{from_file, from_metadata};

use credentials::Account;
use fetch::{Fetcher, Granted};
use semel::Error;
use semel::clock::SystemClock;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;
use tonic::metadata::{Ascii, MetadataValue};

/// What an emulator takes for a token.
const EMULATOR_TOKEN: &str = "Bearer owner";

/// How long before its end a token is no longer used: a request may be on its way for a while.
const MARGIN: Duration = Duration::from_secs(120);

/// Where tokens come from.
#[derive(Debug)]
pub(crate) enum TokenSource {
    /// An emulator asks for nothing.
    Emulator,
    /// Google, for an account.
    Account(Account),
}

/// The token of the moment.
#[derive(Debug)]
pub(crate) struct Tokens {
    account: Option<(Account, Fetcher)>,
    current: Mutex<Option<Current>>,
    /// One asks, the others wait for what it gets.
    asking: tokio::sync::Mutex<()>,
}

/// What goes with a request.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) bearer: MetadataValue<Ascii>,
    pub(crate) quota_project: Option<MetadataValue<Ascii>>,
}

#[derive(Clone, Debug)]
struct Current {
    token: Token,
    good_until: Instant,
}

// === impl Tokens ===

impl Tokens {
    pub(crate) fn new(source: TokenSource) -> Result<Self, Error> {
        let account = match source {
            TokenSource::Emulator => None,
            TokenSource::Account(account) => Some((account, Fetcher::new(SystemClock::new())?)),
        };
        Ok(Self {
            account,
            current: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        })
    }

    /// A token that is good for a while.
    pub(crate) async fn current(&self) -> Result<Token, Error> {
        let Some((account, fetcher)) = &self.account else {
            return Ok(Token {
                bearer: MetadataValue::from_static(EMULATOR_TOKEN),
                quota_project: None,
            });
        };
        if let Some(token) = self.good() {
            return Ok(token);
        }
        let _turn = self.asking.lock().await;
        if let Some(token) = self.good() {
            return Ok(token);
        }
        let asked = Instant::now();
        let current = Current::new(&fetcher.fetch(account).await?, account, asked)?;
        let token = current.token.clone();
        *self.lock() = Some(current);
        Ok(token)
    }

    /// The token is not accepted: ask for another.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    fn good(&self) -> Option<Token> {
        let current = self.lock();
        let good = current.as_ref().filter(|it| Instant::now() < it.good_until);
        good.map(|it| it.token.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Current>> {
        self.current.lock().expect("no holder of this lock panics")
    }
}

// === impl Current ===

impl Current {
    fn new(granted: &Granted, account: &Account, asked: Instant) -> Result<Self, Error> {
        let lasts = Duration::from_secs(granted.expires_in);
        let wrong = |_| {
            Error::denied(
                "the token that we were given is no text; look at what answers for tokens",
            )
        };
        let mut bearer: MetadataValue<Ascii> = format!("Bearer {}", granted.access_token)
            .parse()
            .map_err(wrong)?;
        bearer.set_sensitive(true);
        let quota_project = account.quota_project().map(str::parse).transpose();
        Ok(Self {
            token: Token {
                bearer,
                quota_project: quota_project.map_err(wrong)?,
            },
            good_until: asked + lasts.saturating_sub(MARGIN),
        })
    }
}

#[cfg(test)]
mod tests;
