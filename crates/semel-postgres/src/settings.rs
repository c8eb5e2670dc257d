//! Where PostgreSQL is and how it is used: data, checked whole before anything is dialled.

use crate::dialler::Dialler;
use crate::hosts;
use crate::tls_options;
use semel::Error;
use std::fmt;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The most connections of one store: a server has a few hundred for everybody.
const POOL_SIZE_MAX: usize = 256;

/// The most items of one group: more of them answer later and are written no faster.
const GROUP_ITEMS_LIMIT: usize = 4096;

/// The longest wait for a connection or an answer: a sender would have given up by then.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// The shortest grace: longer than a claim can stall, or a fence could fall.
const GRACE_MIN: Duration = Duration::from_secs(10);

/// How the sessions of this store behave, whatever the server's defaults. A plan is made once per
/// connection and must not depend on how full the table was then: one look-up per key, always.
const SESSION: &str = "-c default_transaction_isolation=read\\ committed -c lock_timeout=20ms \
     -c plan_cache_mode=force_generic_plan -c jit=off \
     -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off";

/// Where PostgreSQL is and how it is used.
///
/// ```
/// use semel_postgres::PostgresSettings;
///
/// let mut settings = PostgresSettings::new("postgres://semel:secret@10.0.0.5/shop");
/// settings.pool_size = 8;
/// settings.pooler = true; // PgBouncer in transaction mode is in between
/// assert!(!format!("{settings:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct PostgresSettings {
    /// `postgres://[user[:password]@]host[:port][,host[:port]…][/database][?options]`. A host that is a
    /// directory (`?host=/run/postgresql`, or `%2Frun%2Fpostgresql` as host) is that of a Unix socket.
    pub url: String,
    /// How many connections this store opens at the most: 4 unless set.
    pub pool_size: usize,
    /// How many groups of one kind (claims, completions, …) are written at the same time at the most:
    /// 2 unless set. A second one begins only when half a group waits or the first takes long.
    pub lanes: usize,
    /// How many items a group has at the most: 256 unless set.
    pub group_items_max: usize,
    /// Whether to bring the schema up to date at the start: yes unless set.
    pub migrate: bool,
    /// Whether a pooler in transaction mode is in between: no unless set. Statements are then sent
    /// whole each time, and nothing is expected of a session.
    pub pooler: bool,
    /// Whether a grant may be answered before it is on disk (`synchronous_commit = off`): no unless
    /// set. A crash of the server can then lose a claim, which is the same event as a lapsed lease;
    /// claims under [`InDoubt::Park`](semel::protocol::InDoubt::Park) and everything that is not a
    /// claim stay durable.
    pub relaxed_claims: bool,
    /// How long an expired record stays before sweep may remove it: 60 s unless set, and not less
    /// than the longest lease.
    pub grace: Duration,
    /// How long connecting may take: 3 s unless set.
    pub connect_timeout: Duration,
    /// How long an answer may take: 10 s unless set. Whether an unanswered write was made is unknown.
    pub answer_timeout: Duration,
}

/// A target that makes sense.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) dialler: Dialler,
    /// Where it is, for messages: without user and password.
    pub(crate) place: String,
}

// === impl PostgresSettings ===

impl PostgresSettings {
    /// The default settings for the database at `url`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            pool_size: 4,
            lanes: 2,
            group_items_max: 256,
            migrate: true,
            pooler: false,
            relaxed_claims: false,
            grace: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(3),
            answer_timeout: Duration::from_secs(10),
        }
    }

    /// Whether all settings make sense, the files of the URL included. Nothing is dialled.
    ///
    /// ```
    /// use semel_postgres::PostgresSettings;
    ///
    /// let settings = PostgresSettings::new("postgres://db/shop?sslmode=verify-full");
    /// let error = settings.validate().unwrap_err().to_string();
    /// assert!(error.contains("sslmode=verify-full needs sslrootcert"), "{error}");
    /// ```
    ///
    /// # Errors
    /// `Invalid`, with what is wrong.
    pub fn validate(&self) -> Result<(), Error> {
        self.target().map(drop)
    }

    /// How many hosts the URL names.
    ///
    /// # Errors
    /// `Invalid`, when it cannot be read.
    pub fn hosts_count(&self) -> Result<u32, Error> {
        Ok(self.target()?.dialler.hosts_count())
    }

    /// Where to connect, if all settings make sense.
    pub(crate) fn target(&self) -> Result<Target, Error> {
        within("pool_size", self.pool_size, 1, POOL_SIZE_MAX)?;
        within("lanes", self.lanes, 1, self.pool_size)?;
        within(
            "group_items_max",
            self.group_items_max,
            1,
            GROUP_ITEMS_LIMIT,
        )?;
        let millisecond = Duration::from_millis(1);
        within(
            "connect_timeout",
            self.connect_timeout,
            millisecond,
            TIMEOUT_MAX,
        )?;
        within(
            "answer_timeout",
            self.answer_timeout,
            millisecond,
            TIMEOUT_MAX,
        )?;
        within("grace", self.grace, GRACE_MIN, semel::store::RETENTION_MAX)?;
        check_credentials(&self.url)?;
        let (url, options) = tls_options::split(&self.url).or_else(|what| wrong(&what))?;
        let mut config = config(&url)?;
        let tls = options.judge().or_else(|what| wrong(&what))?;
        let place = place(&config);
        config.connect_timeout(self.connect_timeout);
        if config.get_application_name().is_none() {
            config.application_name("semel");
        }
        if !self.pooler {
            let given = config.get_options().unwrap_or_default();
            let options = format!("{given} {SESSION}");
            config.options(options.trim());
        }
        let dialler = Dialler::new(&config, tls, self.connect_timeout);
        let dialler = dialler.or_else(wrong)?;
        Ok(Target { dialler, place })
    }
}

/// Where user and password end is read in two ways when they hold what separates parts of a URL. Part of a password
/// would become the host, in every message and in the DNS.
fn check_credentials(url: &str) -> Result<(), Error> {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let Some((credentials, rest)) = after.split_once('@') else {
        return Ok(());
    };
    let has_option = credentials
        .split_once('?')
        .is_some_and(|(_, option)| option.contains('='));
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    if has_option || credentials.contains('/') || host.contains('@') {
        return wrong(
            "the URL has an @ or / in its user, password or options: write @ as %40 and / as %2F there",
        );
    }
    Ok(())
}

fn config(url: &str) -> Result<Config, Error> {
    match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => {
            // The parser's own words could repeat the password.
            let malformed = "the URL is not a postgres://[user[:password]@]host[:port][/database][?options]; \
                             write special characters of user and password as %XX";
            let Some((rest, hosts)) = hosts::split(url) else {
                return wrong(malformed);
            };
            let mut config: Config = rest.parse().or_else(|_| wrong(malformed))?;
            hosts.or_else(wrong)?.apply(&mut config);
            Ok(config)
        }
        Some(scheme) => wrong(&format!(
            "the URL has the scheme {scheme}://, a PostgreSQL store begins with postgres://"
        )),
        None => wrong("the URL has no scheme, a PostgreSQL store begins with postgres://"),
    }
}

fn place(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".into(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let more = match config.get_hosts().len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let database = config.get_dbname().unwrap_or("(default)");
    format!("PostgreSQL at {host}:{port}{more}, database {database}")
}

fn within<T: Copy + PartialOrd + fmt::Debug>(
    name: &str,
    value: T,
    min: T,
    max: T,
) -> Result<(), Error> {
    if value < min || value > max {
        return wrong(&format!(
            "{name} {value:?} is not between {min:?} and {max:?}"
        ));
    }
    Ok(())
}

fn wrong<T>(what: &str) -> Result<T, Error> {
    Err(Error::invalid(format!(
        "PostgreSQL store: {what}; nothing was dialled, fix the setting before you retry"
    )))
}

/// Without the URL, which can hold a password.
impl fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSettings")
            .field("url", &"<hidden>")
            .field("pool_size", &self.pool_size)
            .field("lanes", &self.lanes)
            .field("group_items_max", &self.group_items_max)
            .field("migrate", &self.migrate)
            .field("pooler", &self.pooler)
            .field("relaxed_claims", &self.relaxed_claims)
            .field("grace", &self.grace)
            .field("connect_timeout", &self.connect_timeout)
            .field("answer_timeout", &self.answer_timeout)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut PostgresSettings)) -> String {
        let mut settings = PostgresSettings::new("postgres://user:s3cret@db.internal/shop");
        change(&mut settings);
        let Err(Error::Invalid(message)) = settings.target().map(|_| ()) else {
            panic!("{settings:?} was taken");
        };
        assert!(!message.contains("s3cret"), "{message}");
        message.to_string()
    }

    #[test]
    fn every_wrong_setting_is_named() {
        assert!(refused(|s| s.pool_size = 0).contains("pool_size 0"));
        assert!(refused(|s| s.lanes = 5).contains("lanes 5 is not between 1 and 4"));
        assert!(refused(|s| s.group_items_max = 0).contains("group_items_max"));
        assert!(refused(|s| s.grace = Duration::ZERO).contains("grace"));
        assert!(refused(|s| s.connect_timeout = Duration::ZERO).contains("connect_timeout"));
        assert!(refused(|s| s.answer_timeout = Duration::MAX).contains("answer_timeout"));
    }

    #[test]
    fn urls_that_cannot_be_used_are_refused_without_their_password() {
        let url = |url: &str| {
            let url = url.to_owned();
            refused(move |s| s.url = url)
        };
        assert!(url("mysql://u:s3cret@h/d").contains("the scheme mysql://"));
        assert!(url("shop").contains("no scheme"));
        assert!(url("postgres://u:s3cret").contains("a port of the URL is not a number"));
        assert!(url("postgres://u:x@h/d?s3cret=1").contains("postgres://[user"));
        for loose in [
            "postgres://u:x@s3cret@h/d",
            "postgres://u:x/s3cret@h/d",
            "postgres://h/d?password=x@s3cret",
            "postgres://h?password=x@s3cret",
        ] {
            assert!(url(loose).contains("write @ as %40"), "{loose}");
        }
        assert!(url("postgres:///d?user=s3cret").contains("names no host"));
        assert!(url("postgres://u:s3cret@a,b/d?port=1,2,3").contains("another number of ports"));
    }

    #[test]
    fn what_is_asked_of_tls_is_judged_before_anything_is_dialled() {
        let url = |options: &str| {
            let url = format!("postgres://u:s3cret@h/d?{options}");
            refused(move |s| s.url = url)
        };
        for (options, says) in [
            (
                "sslmode=on",
                "sslmode=on is not one of disable, allow, prefer",
            ),
            (
                "sslmode=verify-full",
                "sslmode=verify-full needs sslrootcert",
            ),
            ("sslmode=verify-ca", "sslmode=verify-ca needs sslrootcert"),
            (
                "sslmode=require&sslrootcert=system",
                "sslmode=require is too weak for sslrootcert=system",
            ),
            (
                "sslmode=require&sslrootcert=/no/ca.pem",
                "sslrootcert: /no/ca.pem cannot be read",
            ),
            (
                "sslmode=verify-full&sslrootcert=/no/ca.pem",
                "download it from whoever runs the server, or write sslrootcert=system",
            ),
            ("sslmode=prefer&sslcert=/no/c.pem", "sslcert needs sslkey"),
            ("sslmode=prefer&sslkey=/no/k.pem", "sslkey needs sslcert"),
            (
                "sslcert=/no/c.pem&sslkey=/no/k.pem",
                "sslcert and sslkey: /no/c.pem cannot be read",
            ),
            ("sslcrl=/no/crl.pem", "sslcrl is not supported"),
            ("sslpassword=s3cret", "sslpassword is not supported"),
            ("ssl=true", "ssl is not libpq's: write sslmode=require"),
            ("gssencmode=require", "gssencmode is not supported"),
            ("sslnegotiation=direct", "sslnegotiation is not supported"),
            (
                "target_session_attrs=standby",
                "target_session_attrs=standby is not supported",
            ),
        ] {
            let message = url(options);
            assert!(message.contains(says), "{options}: {message}");
        }
    }

    #[test]
    fn places_are_named_without_user_and_password() {
        let place = |url: &str| PostgresSettings::new(url).target().unwrap().place;
        assert_eq!(
            place("postgres://u:s3cret@db.internal/shop"),
            "PostgreSQL at db.internal:5432, database shop"
        );
        assert_eq!(
            place("postgres://u@db.internal/shop?password=s3@cret"),
            "PostgreSQL at db.internal:5432, database shop"
        );
        assert_eq!(
            place("postgres://u@a:6432,b:5432/shop"),
            "PostgreSQL at a:6432 (and 1 more), database shop"
        );
    }
}
