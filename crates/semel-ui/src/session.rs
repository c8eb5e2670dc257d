//! Who may come in, and what they may do.
//!
//! A page's cookie never is the token: it is signed with a key made of the token, so every process that has the same
//! token knows it, none keeps a list, and a new token ends all its sessions. The cookie has no path of its own, so the
//! browser takes that of the sign-in page: it reaches the page alone, under whatever prefix, never the JSON beside it.

mod hosts;
mod keys;
mod name;
mod failures;
mod cookie;
mod request;
mod guard;
mod sign_in;
mod mount;

pub use hosts::Hosts;
pub use mount::mount;

use crate::{Base, Role, Visitor};
use failures::Failures;
use http::HeaderMap;
use keys::Keys;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

/// How long somebody stays signed in, in seconds.
const SESSION_SECONDS: u64 = 12 * 60 * 60;

/// A shorter token is warned of.
const TOKEN_CHARACTERS_MIN: usize = 16;

/// Who may come in, and what they may do.
pub struct Access {
    /// What is looked at, for the pages that are shown outside.
    place: String,
    hosts: Hosts,
    keys: Keys,
    failures: Mutex<Failures>,
    /// Seconds since 1970.
    now: fn() -> u64,
}

/// What access is made of.
#[derive(Clone, Copy, Debug)]
pub struct AccessSettings<'a> {
    /// What is looked at: `shop · gate-7`.
    pub place: &'a str,
    /// Where the page is served.
    pub listens: SocketAddr,
    /// Names that it has besides, at a proxy for instance.
    pub hosts: &'a [String],
    /// What those show who may act. Without it, on loopback, everybody may.
    pub act_token: Option<&'a str>,
    /// What those show who may only look.
    pub view_token: Option<&'a str>,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// They showed nothing, or something else.
    Unknown,
    /// They showed a wrong token, as too many others from there within a minute.
    TooMany,
    /// Others can reach this, and no token is set.
    Open,
}

/// How long whoever showed too many wrong tokens should wait, in seconds.
pub const WAIT_SECONDS: u64 = failures::SECONDS;

// === impl Access ===

impl Access {
    /// With a new secret of this process, for those who need no token.
    #[must_use]
    pub fn new(settings: AccessSettings<'_>) -> Self {
        for role in settings.weak() {
            tracing::warn!(
                role = role.word(),
                "this role's token is shorter than {TOKEN_CHARACTERS_MIN} characters and can be guessed: set a long random \
                 one, as of `openssl rand -hex 32`"
            );
        }
        Self {
            place: settings.place.into(),
            hosts: Hosts::new(settings.listens.ip(), settings.hosts),
            keys: Keys::new(
                settings.act_token,
                settings.view_token,
                settings.listens.port(),
            ),
            failures: Mutex::default(),
            now: seconds,
        }
    }

    /// By which names this may be called.
    #[must_use]
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// What a program may do, by the token that it shows: `Authorization: Bearer …`. A wrong one counts as at the
    /// sign-in page; the right one is always taken, so nobody's guesses keep programs out.
    ///
    /// # Errors
    /// When it may not even look.
    pub fn bearer(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Role, Denied> {
        let shown = bearer(headers);
        let known = || self.keys.role_of(std::str::from_utf8(shown?).ok()?);
        self.open_or(known).map_err(|denied| match denied {
            Denied::Unknown if shown.is_some() => self.wrong_bearer(peer),
            Denied::Unknown | Denied::TooMany | Denied::Open => denied,
        })
    }

    /// Counts and tells a wrong token of a program, as often as it may be tried.
    fn wrong_bearer(&self, peer: Option<IpAddr>) -> Denied {
        let (address, now) = (peer.map(|peer| peer.to_string()), (self.now)());
        if !self.failures().try_once(peer, now) {
            // The failures before it were told: whoever goes on cannot fill the log.
            tracing::debug!(
                address,
                "bearer token refused: too many wrong ones within a minute"
            );
            return Denied::TooMany;
        }
        tracing::warn!(address, "bearer token refused: wrong token");
        Denied::Unknown
    }

    /// Who a browser's request comes from, by its cookie.
    fn visitor(
        &self,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
        base: Base,
    ) -> Result<Visitor, Denied> {
        let mut session = None;
        let role = self.open_or(|| {
            session = cookie::given(headers, self.keys.cookie_name())
                .find_map(|value| self.keys.session(value, (self.now)()));
            session.as_ref().map(|session| session.role)
        })?;
        let name = session.as_ref().map(keys::Session::name);
        Ok(Visitor {
            role,
            csrf: self.keys.csrf(session.as_ref()),
            signed_in: session.is_some(),
            base,
            who: name::who(&name.unwrap_or_default(), role, peer),
        })
    }

    /// On loopback without a token everybody is let in; elsewhere nobody.
    fn open_or(&self, known: impl FnOnce() -> Option<Role>) -> Result<Role, Denied> {
        match (self.keys.ask(), self.hosts.loopback_only()) {
            (true, _) => known().ok_or(Denied::Unknown),
            (false, true) => Ok(Role::Act),
            (false, false) => Err(Denied::Open),
        }
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl AccessSettings ===

impl AccessSettings<'_> {
    /// The roles whose token could be guessed.
    fn weak(&self) -> impl Iterator<Item = Role> {
        let tokens = [(Role::Act, self.act_token), (Role::View, self.view_token)];
        let is_weak = |token: &str| (1..TOKEN_CHARACTERS_MIN).contains(&token.chars().count());
        let weak = tokens
            .into_iter()
            .filter(move |(_, token)| token.is_some_and(is_weak));
        weak.map(|(role, _)| role)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("place", &self.place)
            .field("hosts", &self.hosts)
            .field("asks_for_a_token", &self.keys.ask())
            .finish_non_exhaustive()
    }
}

/// The token that a program shows, whatever it is worth.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let shown = headers.get(http::header::AUTHORIZATION)?;
    shown.as_bytes().strip_prefix(b"Bearer ")
}

#[expect(
    clippy::disallowed_methods,
    reason = "sessions end by the time of day, wherever they began"
)]
fn seconds() -> u64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since_1970.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
