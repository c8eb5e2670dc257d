//! What sessions and forms are signed with.

use super::SESSION_SECONDS;
use crate::Role;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use ring::rand::{SecureRandom, SystemRandom};

const NONCE_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;

/// What sessions and forms are signed with: a key for each role, made of its token.
pub(super) struct Keys {
    roles: Vec<(Role, Key)>,
    /// Of this process: for those who need no token.
    secret: Key,
    cookie: String,
}

/// Somebody who signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) role: Role,
    /// When, a random number, and a name: what is signed.
    id: String,
}

/// What stands between the parts of an id.
const BETWEEN: char = '-';

// === impl Keys ===

impl Keys {
    /// An empty token is one that was not set: everybody could show it.
    pub(super) fn new(act: Option<&str>, view: Option<&str>, port: u16) -> Self {
        let given = [(Role::Act, act), (Role::View, view)].into_iter();
        let given =
            given.filter_map(|(role, token)| Some((role, token.filter(|it| !it.is_empty())?)));
        let roles: Vec<_> = given.map(|(role, token)| (role, key(token))).collect();
        let secret = Key::new(HMAC_SHA256, &random::<SECRET_BYTES>());
        Self {
            roles,
            secret,
            // Ports share a browser's cookies: another port, another name. Nothing of a token is in it: whoever may only
            // look, or hears a name, could try tokens on it.
            cookie: format!("semel-{port}"),
        }
    }

    /// Whether a token is asked for.
    pub(super) fn ask(&self) -> bool {
        !self.roles.is_empty()
    }

    pub(super) fn cookie_name(&self) -> &str {
        &self.cookie
    }

    /// Whose token this is. Both are compared, under a secret: how long it takes tells nothing.
    pub(super) fn role_of(&self, token: &str) -> Option<Role> {
        let hidden = |key: &Key| mac(&self.secret, "token", &mac(key, "shown", ""));
        let shown = hidden(&key(token));
        let same = self
            .roles
            .iter()
            .map(|(role, known)| (role, is_same(&hidden(known), &shown)));
        same.fold(None, |found, (role, same)| found.or(same.then_some(*role)))
    }

    /// A new session of whoever calls themselves so, as the cookie has it.
    pub(super) fn begin(&self, role: Role, name: &str, now: u64) -> Option<String> {
        let (nonce, name) = (hex::encode(random::<NONCE_BYTES>()), hex::encode(name));
        let id = format!("{now}{BETWEEN}{nonce}{BETWEEN}{name}");
        let mac = mac(self.key(role)?, "session", &id);
        Some(format!("{}.{id}.{mac}", role.word()))
    }

    /// The session that a cookie names, while it lasts.
    pub(super) fn session(&self, cookie: &str, now: u64) -> Option<Session> {
        let mut parts = cookie.split('.');
        let (word, id, mac) = (parts.next()?, parts.next()?, parts.next()?);
        let role = Role::ALL.into_iter().find(|role| role.word() == word)?;
        let began: u64 = id.split(BETWEEN).next()?.parse().ok()?;
        let lasts = began <= now.saturating_add(SESSION_SECONDS)
            && now < began.saturating_add(SESSION_SECONDS);
        let signed = parts.next().is_none() && is_signed(self.key(role)?, "session", id, mac);
        let session = Session {
            role,
            id: id.into(),
        };
        (lasts && signed).then_some(session)
    }

    /// What this session's forms send back; without one, those of this process.
    pub(super) fn csrf(&self, session: Option<&Session>) -> String {
        let known = session.and_then(|it| Some((self.key(it.role)?, it.id.as_str())));
        let (key, id) = known.unwrap_or((&self.secret, ""));
        mac(key, "csrf", id)
    }

    fn key(&self, role: Role) -> Option<&Key> {
        self.roles
            .iter()
            .find(|(of, _)| *of == role)
            .map(|(_, key)| key)
    }
}

// === impl Session ===

impl Session {
    /// What they call themselves; empty if they did not say.
    pub(super) fn name(&self) -> String {
        let name = self.id.split(BETWEEN).nth(2).map(hex::decode);
        let name = name.and_then(Result::ok).map(String::from_utf8);
        name.and_then(Result::ok).unwrap_or_default()
    }
}

fn key(token: &str) -> Key {
    Key::new(HMAC_SHA256, token.as_bytes())
}

/// A signature of this text, for this purpose and no other.
fn mac(key: &Key, purpose: &str, text: &str) -> String {
    hex::encode(sign(key, signed(purpose, text).as_bytes()))
}

/// Compares to the last byte.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    let differs = pairs.fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}

fn is_signed(key: &Key, purpose: &str, text: &str, mac: &str) -> bool {
    let mac = hex::decode(mac).unwrap_or_default();
    verify(key, signed(purpose, text).as_bytes(), &mac).is_ok()
}

fn signed(purpose: &str, text: &str) -> String {
    format!("semel-ui {purpose} v1\n{text}")
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .expect("the system has random numbers");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new(Some("may act"), Some("may look"), 1)
    }

    #[test]
    fn a_token_has_its_role() {
        for (token, role) in [
            ("may act", Some(Role::Act)),
            ("may look", Some(Role::View)),
            ("may loo", None),
            ("may look2", None),
            ("", None),
        ] {
            assert_eq!(keys().role_of(token), role, "{token}");
        }
        assert!(!Keys::new(Some(""), Some(""), 1).ask());
    }

    #[test]
    fn a_session_lasts_its_time_in_every_process() {
        let cookie = keys().begin(Role::View, "Ada", 1000).unwrap();
        let session = |now| keys().session(&cookie, now).map(|it| (it.role, it.name()));
        let ada = Some((Role::View, "Ada".to_owned()));
        assert_eq!(session(1000), ada);
        assert_eq!(session(999 + SESSION_SECONDS), ada);
        assert_eq!(session(1000 + SESSION_SECONDS), None);
        let other = Keys::new(Some("may act"), Some("a new one"), 1);
        assert_eq!(other.session(&cookie, 1000), None);
    }

    #[test]
    fn the_name_of_the_cookie_says_nothing_of_a_token() {
        let one = Keys::new(Some("may act"), Some("may look"), 8081);
        let other = Keys::new(Some("another"), None, 8081);
        assert_eq!(one.cookie_name(), other.cookie_name());
        let elsewhere = Keys::new(Some("may act"), Some("may look"), 8082);
        assert_ne!(one.cookie_name(), elsewhere.cookie_name());
    }

    #[test]
    fn nothing_of_a_session_can_be_changed() {
        let cookie = keys().begin(Role::View, "Ada", 1000).unwrap();
        let forged = [
            cookie.replace("view", "act"),
            cookie.replace("1000-", "2000-"),
            cookie.replace(&hex::encode("Ada"), &hex::encode("Eve")),
            format!("{cookie}.x"),
            cookie[..cookie.len() - 2].into(),
            cookie.rsplit_once('.').unwrap().0.to_owned() + ".",
            String::new(),
            "...".into(),
        ];
        for forged in forged {
            assert_eq!(keys().session(&forged, 1000), None, "{forged}");
        }
    }

    #[test]
    fn a_form_belongs_to_one_session() {
        let keys = keys();
        let session = |role| keys.session(&keys.begin(role, "", 1).unwrap(), 1).unwrap();
        let (one, other) = (session(Role::Act), session(Role::Act));
        let csrf = keys.csrf(Some(&one));
        assert_eq!(csrf, keys.csrf(Some(&one)));
        assert!(!is_same(&csrf, &keys.csrf(Some(&other))) && !is_same(&csrf, &keys.csrf(None)));
        assert!(!is_same(&csrf, "") && !is_same(&csrf, &csrf[1..]));
    }

    #[test]
    fn without_tokens_a_form_belongs_to_the_process() {
        let (one, other) = (Keys::new(None, None, 1), Keys::new(None, None, 1));
        assert_eq!(one.csrf(None), one.csrf(None));
        assert_ne!(one.csrf(None), other.csrf(None));
    }
}
