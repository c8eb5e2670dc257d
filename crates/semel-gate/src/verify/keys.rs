//! The issuers' keys, kept: fetched when they are first needed, again when they are old or a token names one that is
//! not among them, by one request at a time and no more often than a limit says. The last good ones stay in use while
//! no others can be had.

use super::fetch::{Fetched, Fetcher};
use super::verifier::Verifier;
use super::{KeySet, Refusal};
use crate::settings::{IssuerKeys, Limits, Route, Verify};
use http::Uri;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The key sets of all routes, by URL: routes with one issuer share one.
#[derive(Debug)]
pub(crate) struct KeySets(HashMap<Uri, Arc<CachedKeys>>);

/// One issuer's keys.
#[derive(Debug)]
pub(crate) struct CachedKeys {
    url: Uri,
    limits: Limits,
    fetcher: Arc<Fetcher>,
    cache: Mutex<Cache>,
    /// Moves whenever a request for the keys has ended.
    ended: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Cache {
    /// The last good ones.
    keys: Option<Kept>,
    /// When they were last asked for.
    asked: Option<Instant>,
    /// Whether somebody is asking.
    in_flight: bool,
}

#[derive(Clone, Debug)]
struct Kept {
    keys: Arc<Verifier>,
    since: Instant,
    fresh_for: Duration,
}

/// What is known of a key without waiting.
enum Found {
    Here(Arc<Verifier>),
    /// There is no such key among those that were fetched just now.
    Unknown,
    /// There are no keys, and they were asked for just now.
    Unavailable,
    /// Somebody is asking.
    Asking,
}

// === impl KeySets ===

impl KeySets {
    pub(crate) fn of(routes: &[Route], limits: &Limits) -> Self {
        let fetcher = Arc::new(Fetcher::default());
        let urls = routes.iter().filter_map(|route| match &route.verify {
            Verify::Token(rule) => match &rule.issuer.keys {
                IssuerKeys::At(url) => Some(url.clone()),
                IssuerKeys::TrustCloudRun => None,
            },
            Verify::Off | Verify::Signature(_) => None,
        });
        let cached = |url: Uri| {
            let keys = CachedKeys::new(url.clone(), limits.clone(), Arc::clone(&fetcher));
            (url, Arc::new(keys))
        };
        Self(urls.map(cached).collect())
    }

    /// The keys at a URL that a route names.
    pub(super) fn at(&self, url: &Uri) -> &Arc<CachedKeys> {
        self.0
            .get(url)
            .expect("every URL that a route names was put here")
    }
}

// === impl CachedKeys ===

impl CachedKeys {
    fn new(url: Uri, limits: Limits, fetcher: Arc<Fetcher>) -> Self {
        Self {
            url,
            limits,
            fetcher,
            cache: Mutex::default(),
            ended: watch::Sender::new(()),
        }
    }

    /// Keys among which there is one with this id.
    pub(super) async fn holding(self: &Arc<Self>, id: &str) -> Result<Arc<Verifier>, Refusal> {
        let mut ended = self.ended.subscribe();
        let found = match self.find_or_ask(id) {
            Found::Asking => {
                // The sender lives as long as this.
                drop(ended.changed().await);
                self.find(id)
            }
            found @ (Found::Here(_) | Found::Unknown | Found::Unavailable) => found,
        };
        match found {
            Found::Here(keys) => Ok(keys),
            Found::Unknown => Err(Refusal::KeyUnknown),
            Found::Unavailable | Found::Asking => Err(Refusal::KeysUnavailable),
        }
    }

    /// Looks among the kept keys, and has them fetched if that is due. While others are fetched, those that were good
    /// are.
    fn find_or_ask(self: &Arc<Self>, id: &str) -> Found {
        let (now, mut cache) = (Instant::now(), self.lock());
        let kept = cache.usable(now, &self.limits);
        let known = kept.as_ref().filter(|kept| kept.keys.has(id));
        let is_due = known.is_none_or(|kept| now - kept.since >= kept.fresh_for);
        if is_due && cache.may_ask(now, kept.is_some(), &self.limits) {
            cache.asked = Some(now);
            cache.in_flight = true;
            // Whoever asked may hang up: the answer is for everybody.
            tokio::spawn(Arc::clone(self).fetch());
        }
        match known {
            Some(kept) => Found::Here(Arc::clone(&kept.keys)),
            None if cache.in_flight => Found::Asking,
            None => Found::none(kept.is_some()),
        }
    }

    /// Looks among the kept keys.
    fn find(&self, id: &str) -> Found {
        match self.lock().usable(Instant::now(), &self.limits) {
            Some(kept) if kept.keys.has(id) => Found::Here(kept.keys),
            other => Found::none(other.is_some()),
        }
    }

    async fn fetch(self: Arc<Self>) {
        let within = self.limits.keys_within;
        let fetched = match timeout(within, self.fetcher.get(&self.url)).await {
            Ok(fetched) => fetched.and_then(|Fetched { page, max_age }| {
                let keys = Verifier::new(KeySet::parse(&page)?);
                Ok((Arc::new(keys), max_age))
            }),
            Err(_) => Err(format!("no answer within {within:?}")),
        };
        let mut cache = self.lock();
        cache.in_flight = false;
        match fetched {
            Ok((keys, max_age)) => {
                let limits = &self.limits;
                let fresh_for = max_age.unwrap_or(limits.keys_every);
                cache.keys = Some(Kept {
                    keys,
                    since: Instant::now(),
                    fresh_for: fresh_for.max(limits.keys_every).min(limits.keys_kept_max),
                });
            }
            Err(why) => {
                let kept = cache.keys.is_some();
                if kept {
                    tracing::warn!(url = %self.url, why, kept, "the issuer's keys could not be fetched; the last good ones stay in use");
                } else {
                    tracing::warn!(url = %self.url, why, kept, "the issuer's keys could not be fetched, and there are none from before: senders hear 503");
                }
            }
        }
        drop(cache);
        self.ended.send_replace(());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Found ===

impl Found {
    const fn none(has_keys: bool) -> Self {
        if has_keys {
            Self::Unknown
        } else {
            Self::Unavailable
        }
    }
}

// === impl Cache ===

impl Cache {
    /// The last good keys, unless they are too old for whatever reason.
    fn usable(&self, now: Instant, limits: &Limits) -> Option<Kept> {
        let is_usable = |kept: &&Kept| now - kept.since <= limits.keys_kept_max;
        self.keys.as_ref().filter(is_usable).cloned()
    }

    fn may_ask(&self, now: Instant, has_keys: bool, limits: &Limits) -> bool {
        let every = if has_keys {
            limits.keys_every
        } else {
            limits.keys_retry_every
        };
        !self.in_flight && self.asked.is_none_or(|asked| now - asked >= every)
    }
}
