//! Where the dependencies are, and which of them is meant.

use super::{Dependency, gate};
use crate::error::Error;
use crate::options::Options;
use crate::world::protocol::Protocol;
use std::net::SocketAddr;
use tokio::net::lookup_host;
use url::{Position, Url};

/// Google's clients read the emulator's address here, which is not a URL.
const FIRESTORE: &str = "FIRESTORE_EMULATOR_HOST";

/// Where a dependency really is.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// The environment variable by which processes find it.
    pub(crate) env: String,
    /// Before the world is planned, it may hold `{port.NAME}`.
    pub(crate) url: String,
    pub(crate) protocol: Protocol,
    /// Encrypted connections are not proxied: the process would notice.
    pub(crate) encrypted: bool,
}

// === impl Endpoint ===

impl Endpoint {
    /// Where a dependency of the scenario is, or what is wrong with it.
    pub(super) fn new(dependency: &Dependency, options: &Options) -> Result<Self, String> {
        let env = dependency.env.clone();
        if env.is_empty() || env.contains(['=', '\0']) {
            return Err(format!("a [[dependency]]: {env:?} is not a variable"));
        }
        let given = dependency.url.as_ref().or(options.environment.get(&env));
        let given = given.filter(|url| !url.is_empty()).ok_or_else(|| {
            format!("dependency `{env}` has no `url`, and the environment does not name it")
        })?;
        if env == FIRESTORE {
            return Self::emulator(&env, given);
        }
        let (scheme, _) = given
            .split_once("://")
            .ok_or_else(|| format!("dependency `{env}`: `{given}` is not a URL"))?;
        let strict = given.contains("sslmode=require") || given.contains("sslmode=verify");
        let (protocol, encrypted) = match scheme {
            "postgres" | "postgresql" => (Protocol::Postgres, strict),
            "redis" => (Protocol::Redis, false),
            "rediss" => (Protocol::Redis, true),
            "http" => (Protocol::Http, false),
            "https" => (Protocol::Http, true),
            _ => (Protocol::Other, false),
        };
        Ok(Self {
            env,
            url: given.clone(),
            protocol,
            encrypted,
        })
    }

    fn emulator(env: &str, given: &str) -> Result<Self, String> {
        let has_port = given.contains(':') && !given.contains('/');
        let right = has_port.then(|| Self {
            env: env.to_owned(),
            url: given.to_owned(),
            protocol: Protocol::Firestore,
            encrypted: false,
        });
        right.ok_or_else(|| format!("dependency `{env}`: `{given}` is not HOST:PORT"))
    }

    /// Host and port.
    pub(crate) fn address(&self) -> Result<String, Error> {
        let Self { env, url, .. } = self;
        if self.protocol == Protocol::Firestore {
            return Ok(url.clone());
        }
        let address = Url::parse(url).ok().and_then(|url| {
            let host = url.host_str().filter(|host| !host.is_empty())?;
            let port = url.port_or_known_default().or(match url.scheme() {
                "postgres" | "postgresql" => Some(5432),
                "redis" => Some(6379),
                "amqp" => Some(5672),
                _ => None,
            })?;
            Some(format!("{host}:{port}"))
        });
        address
            .ok_or_else(|| Error::Scenario(format!("dependency `{env}`: `{url}` names no address")))
    }

    /// The URL with an address of our own.
    pub(crate) fn at(&self, port: u16) -> String {
        if self.protocol == Protocol::Firestore {
            return format!("127.0.0.1:{port}");
        }
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let user = authority.rsplit_once('@');
        let user = user.map_or_else(String::new, |(user, _)| format!("{user}@"));
        format!("{scheme}://{user}127.0.0.1:{port}{path}")
    }
}

/// The address behind the host of a URL.
pub(crate) async fn resolve(url: &Url) -> Option<SocketAddr> {
    let port = url.port_or_known_default().unwrap_or(80);
    // `[::1]` is not a name, but its brackets would make it one.
    let host = url.host_str()?.trim_matches(['[', ']']);
    let mut found = lookup_host((host, port)).await.ok()?;
    found.next()
}

/// What a request line says of a URL.
pub(crate) fn path_and_query(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

/// Which dependency is meant: the named one, or the only one of its kind. None: a SQLite file.
pub(crate) fn find<'a>(
    on: Option<&str>,
    protocol: Protocol,
    endpoints: &'a [Endpoint],
) -> Result<Option<(usize, &'a Endpoint)>, String> {
    let mut endpoints = endpoints.iter().enumerate();
    let Some(on) = on else {
        // What belongs to the gate alone is meant by nobody else.
        let own = |it: &Endpoint| [gate::STORE, gate::UPSTREAM].contains(&&*it.env);
        let mut fitting = endpoints.filter(|(_, it)| it.protocol == protocol && !own(it));
        return match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(Some(only)),
            (None, _) => Err(format!("no [[dependency]] speaks {protocol:?}")),
            (Some(_), Some(_)) => Err(format!("several dependencies speak {protocol:?}: say `on`")),
        };
    };
    if protocol == Protocol::Postgres && on.starts_with("sqlite:") {
        return Ok(None);
    }
    let named = endpoints.find(|(_, it)| it.env == on);
    let named = named.ok_or_else(|| format!("`{on}` is not a [[dependency]]"))?;
    if named.1.protocol != protocol {
        return Err(format!("`{on}` does not speak {protocol:?}"));
    }
    Ok(Some(named))
}

/// Whether `on` says who is to be asked in this protocol; `None`: nobody is asked.
pub(crate) fn check_on(
    on: Option<&str>,
    protocol: Option<Protocol>,
    endpoints: &[Endpoint],
) -> Result<(), String> {
    match protocol {
        Some(protocol) => find(on, protocol, endpoints).map(drop),
        None if on.is_some() => Err("`on` is only for sql, redis and firestore".to_owned()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Endpoint {
        Endpoint {
            env: "X".to_owned(),
            url: url.to_owned(),
            protocol: Protocol::Other,
            encrypted: false,
        }
    }

    #[test]
    fn address_is_cut_out_of_a_url_and_nothing_else_changes() {
        let at = |url, port| {
            let endpoint = endpoint(url);
            (endpoint.address().unwrap(), endpoint.at(port))
        };
        let (to, url) = at("postgres://me:p%40w@db.example/shop?x=1", 99);
        assert_eq!(to, "db.example:5432");
        assert_eq!(url, "postgres://me:p%40w@127.0.0.1:99/shop?x=1");
        let (to, url) = at("http://127.0.0.1:80", 7);
        assert_eq!((&*to, &*url), ("127.0.0.1:80", "http://127.0.0.1:7"));
        assert!(endpoint("redis://").address().is_err());
        let (to, url) = at("postgres://me@[::1]:5433/shop", 99);
        assert_eq!(to, "[::1]:5433");
        assert_eq!(url, "postgres://me@127.0.0.1:99/shop");
    }

    #[test]
    fn emulator_of_firestore_is_named_without_a_scheme() {
        let new = |address| Endpoint::emulator(FIRESTORE, address);
        let endpoint = new("localhost:8080").unwrap();
        assert_eq!(endpoint.protocol, Protocol::Firestore);
        assert_eq!(endpoint.address().unwrap(), "localhost:8080");
        assert_eq!(endpoint.at(99), "127.0.0.1:99");
        let why = new("http://localhost:8080").unwrap_err();
        assert!(why.contains("HOST:PORT"), "{why}");
    }

    #[tokio::test]
    async fn address_of_the_newer_protocol_is_found() {
        let url = Url::parse("http://[::1]:3000/").unwrap();
        let found = resolve(&url).await.map(|found| found.to_string());
        assert_eq!(found.as_deref(), Some("[::1]:3000"));
    }
}
