//! Where Redis is and how it is used: data, checked whole before anything is dialled.

use crate::tls::{self, Tls};
use redis::{ConnectionInfo, IntoConnectionInfo};
use semel::Error;
use std::fmt;
use std::time::Duration;

/// The longest prefix, in bytes: it is a part of every key's name.
const PREFIX_BYTES_MAX: usize = 64;

/// The most connections: one is enough for tens of thousands of calls a second.
const CONNECTIONS_MAX: usize = 64;

/// The longest wait for replicas or an answer: a sender would have given up by then.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Where Redis is and how it is used.
///
/// ```
/// use semel_redis::{RedisSettings, WaitReplicas};
/// use std::time::Duration;
///
/// let mut settings = RedisSettings::new("redis://user:secret@10.0.0.5:6379");
/// settings.prefix = "shop".into();
/// settings.wait_replicas = Some(WaitReplicas {
///     count: 1,
///     timeout: Duration::from_millis(500),
/// });
/// assert!(!format!("{settings:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct RedisSettings {
    /// `redis://[user:password@]host[:port][/database]`, or with TLS `rediss://…`, which takes
    /// `?ssl_ca_certs=FILE` (whom to believe, unless those that this machine believes), `ssl_certfile` and
    /// `ssl_keyfile` (our own certificate).
    pub url: String,
    /// How every key begins, so that installations can share a server: `sml` unless set. Letters,
    /// digits, `_`, `-` and `.`.
    pub prefix: String,
    /// How many connections share the calls: 2 unless set. Large calls and lists use the last one, so
    /// that they do not hold the others up; one is enough for the others.
    pub connections: usize,
    /// How many replicas must confirm a write before it is answered; none unless set. Confirmed
    /// writes go out in groups, one group per connection at a time.
    pub wait_replicas: Option<WaitReplicas>,
    /// Use a server that evicts keys although an evicted record runs its work again.
    pub allow_eviction: bool,
    /// How long connecting may take: 1 s unless set.
    pub connect_timeout: Duration,
    /// How long an answer may take: 2 s unless set. Whether an unanswered write was made is unknown.
    pub response_timeout: Duration,
}

/// Which confirmation a write waits for (`WAIT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitReplicas {
    /// How many replicas must have the write in memory.
    pub count: u32,
    /// How long to wait for them.
    pub timeout: Duration,
}

// === impl RedisSettings ===

impl RedisSettings {
    /// The default settings for the server at `url`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: "sml".into(),
            connections: 2,
            wait_replicas: None,
            allow_eviction: false,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(2),
        }
    }

    /// Whether all settings make sense, the files of the URL included. Nothing is dialled.
    ///
    /// ```
    /// use semel_redis::RedisSettings;
    ///
    /// let settings = RedisSettings::new("rediss://cache/0?ssl_ca_certs=no/such/ca.pem");
    /// let error = settings.validate().unwrap_err().to_string();
    /// assert!(error.contains("no/such/ca.pem cannot be read"), "{error}");
    /// ```
    ///
    /// # Errors
    /// `Invalid`, with what is wrong.
    pub fn validate(&self) -> Result<(), Error> {
        self.place().map(drop)
    }

    /// Where to connect, if all settings make sense.
    pub(crate) fn place(&self) -> Result<(ConnectionInfo, Option<Tls>), Error> {
        validate_prefix(&self.prefix)?;
        if self.connections == 0 || self.connections > CONNECTIONS_MAX {
            return wrong(&format!(
                "connections {} is not between 1 and {CONNECTIONS_MAX}",
                self.connections
            ));
        }
        validate_timeout("connect_timeout", self.connect_timeout)?;
        validate_timeout("response_timeout", self.response_timeout)?;
        if let Some(wait) = self.wait_replicas {
            validate_timeout("the timeout of wait_replicas", wait.timeout)?;
            if wait.count == 0 {
                return wrong("wait_replicas waits for 0 replicas; leave it out instead");
            }
        }
        let (url, options) = tls::split(&self.url).or_else(|what| wrong(&what))?;
        // The parser's own words could repeat the password.
        let info = url.as_str().into_connection_info().or_else(|_| {
            wrong("the URL is not a redis://[user:password@]host[:port][/database]")
        })?;
        let tls = options.map(|options| options.judge(&info)).transpose();
        Ok((info, tls.or_else(|what| wrong(&what))?))
    }
}

fn validate_prefix(prefix: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if prefix.is_empty() || prefix.len() > PREFIX_BYTES_MAX || !prefix.chars().all(plain) {
        return wrong(&format!(
            "prefix {prefix:?} must have 1 to {PREFIX_BYTES_MAX} letters, digits, '_', '-' or '.'"
        ));
    }
    Ok(())
}

fn validate_timeout(name: &str, timeout: Duration) -> Result<(), Error> {
    if timeout < Duration::from_millis(1) || timeout > TIMEOUT_MAX {
        return wrong(&format!(
            "{name} {timeout:?} is not between 1 ms and {TIMEOUT_MAX:?}"
        ));
    }
    Ok(())
}

fn wrong<T>(what: &str) -> Result<T, Error> {
    Err(Error::invalid(format!(
        "Redis store: {what}; nothing was dialled, fix the setting before you retry"
    )))
}

/// Without the URL, which can hold a password.
impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings")
            .field("url", &"<hidden>")
            .field("prefix", &self.prefix)
            .field("connections", &self.connections)
            .field("wait_replicas", &self.wait_replicas)
            .field("allow_eviction", &self.allow_eviction)
            .field("connect_timeout", &self.connect_timeout)
            .field("response_timeout", &self.response_timeout)
            .finish()
    }
}
