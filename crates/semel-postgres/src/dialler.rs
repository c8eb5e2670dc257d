//! Dialling: every connection of a store is made here, host by host, with or without TLS as the URL says.

use crate::tls::{self, TlsAttempt};
use crate::tls_options::{Tls, TlsMode, Verified};
use rand::seq::SliceRandom;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error};

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Dialler {
    hosts: Arc<[HostConfig]>,
    tls: Tls,
    random: bool,
    limit: Duration,
}

/// A connection that was made.
pub(crate) struct Dialled {
    pub(crate) client: Client,
    pub(crate) task: JoinHandle<()>,
    pub(crate) encrypted: bool,
    /// How many warnings the server has sent.
    pub(crate) warnings: Arc<AtomicU64>,
}

/// One of the hosts of a URL.
struct HostConfig {
    config: Config,
    name: String,
    /// A socket on this machine has no TLS, whatever the URL says.
    is_unix: bool,
}

// === impl Dialler ===

impl Dialler {
    /// The hosts of a URL, each with its port.
    pub(crate) fn new(config: &Config, tls: Tls, limit: Duration) -> Result<Self, &'static str> {
        let (hosts, addresses) = (config.get_hosts().len(), config.get_hostaddrs().len());
        let count = hosts.max(addresses);
        if count == 0 {
            return Err("the URL names no host; for a Unix socket write ?host=/run/postgresql");
        }
        if hosts > 0 && addresses > 0 && hosts != addresses {
            return Err("the URL has another number of hosts than of hostaddr");
        }
        if config.get_ports().len() > 1 && config.get_ports().len() != count {
            return Err("the URL has another number of ports than of hostaddr");
        }
        Ok(Self {
            hosts: (0..count).map(|nth| HostConfig::new(config, nth)).collect(),
            tls,
            random: config.get_load_balance_hosts() == LoadBalanceHosts::Random,
            limit,
        })
    }

    pub(crate) fn hosts_count(&self) -> u32 {
        u32::try_from(self.hosts.len()).unwrap_or(u32::MAX)
    }

    /// Who can read along, in one sentence.
    pub(crate) fn describe(&self, encrypted: bool) -> &'static str {
        match (encrypted, self.tls.verified) {
            (true, Verified::ChainAndHost) => "TLS, certificate and host checked",
            (true, Verified::Chain) => {
                "TLS, certificate checked but not its host: sslmode=verify-full checks both"
            }
            (true, Verified::Nothing) => {
                "TLS without a look at the certificate: only sslmode=verify-full makes sure who answers"
            }
            (false, _) if self.hosts.iter().all(|host| host.is_unix) => "over a Unix socket",
            (false, _) => "without TLS: whoever is on the way can read along",
        }
    }

    /// A connection to the first host that gives one of the wanted kind.
    pub(crate) async fn dial(&self) -> Result<Dialled, Error> {
        let mut failed = None;
        for host in self.in_order() {
            match self.dial_host(host).await {
                Ok(dialled) => return Ok(dialled),
                // A certificate that is wrong says more than the standby after it.
                Err(_) if failed.as_ref().is_some_and(tls::is_handshake) => {}
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.expect("there is at least one host"))
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "which host is asked first: nothing that is stored depends on it"
    )]
    fn in_order(&self) -> Vec<&HostConfig> {
        let mut hosts: Vec<_> = self.hosts.iter().collect();
        if self.random {
            hosts.shuffle(&mut rand::rng());
        }
        hosts
    }

    async fn dial_host(&self, host: &HostConfig) -> Result<Dialled, Error> {
        match self.tls.mode {
            _ if host.is_unix => self.attempt(host, SslMode::Disable).await.0,
            TlsMode::Disable => self.attempt(host, SslMode::Disable).await.0,
            TlsMode::Require => self.attempt(host, SslMode::Require).await.0,
            TlsMode::Allow => match self.attempt(host, SslMode::Disable).await.0 {
                Err(refused) if is_refusal(&refused) => {
                    let secure = self.attempt(host, SslMode::Require).await.0;
                    secure.map_err(|error| {
                        if tls::not_offered(&error) {
                            refused
                        } else {
                            error
                        }
                    })
                }
                dialled => dialled,
            },
            TlsMode::Prefer => match self.attempt(host, SslMode::Prefer).await {
                (Err(error), true) if tls::is_handshake(&error) || is_refusal(&error) => {
                    let plain = self.attempt(host, SslMode::Disable).await.0;
                    plain.inspect(|_| tell_without_tls(&host.name, &error))
                }
                (dialled, _) => dialled,
            },
        }
    }

    /// One connection, or why there is none, and whether TLS was begun.
    async fn attempt(&self, host: &HostConfig, mode: SslMode) -> (Result<Dialled, Error>, bool) {
        let attempt = TlsAttempt {
            config: self.tls.config.clone(),
            limit: self.limit,
            begun: Arc::default(),
        };
        let mut config = host.config.clone();
        config.ssl_mode(mode);
        let connected = config.connect(attempt.clone()).await;
        let encrypted = attempt.has_begun();
        let warnings = Arc::default();
        let counted = Arc::clone(&warnings);
        let dialled = connected.map(|(client, connection)| Dialled {
            client,
            encrypted,
            warnings,
            task: tokio::spawn(async move {
                if let Err(error) = serve(connection, &counted).await {
                    tracing::debug!(%error, "a connection to PostgreSQL ended");
                }
            }),
        });
        (dialled, encrypted)
    }
}

/// Serves a connection to its end, and counts the server's warnings.
async fn serve<S, T>(mut connection: Connection<S, T>, warnings: &AtomicU64) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notice(notice) = message? {
            let code = notice.code().code();
            tracing::debug!(code, says = notice.message(), "PostgreSQL says");
            if code.starts_with("01") || code.starts_with("57") {
                warnings.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}

/// Whether the server lets nobody in who comes like this: `pg_hba.conf` tells with TLS from without.
fn is_refusal(error: &Error) -> bool {
    error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

fn tell_without_tls(host: &str, error: &Error) {
    let why = tls::lasting_failure(error).unwrap_or_else(|| error.to_string());
    tracing::warn!(
        host,
        why,
        "PostgreSQL is used without TLS, because with it there was no connection; sslmode=verify-full refuses that"
    );
}

// === impl HostConfig ===

impl HostConfig {
    /// The nth host alone. The driver would go through all of them with TLS before any without.
    fn new(all: &Config, nth: usize) -> Self {
        let mut config = settings_of(all);
        let (host, address) = (all.get_hosts().get(nth), all.get_hostaddrs().get(nth));
        let ports = all.get_ports();
        config.port(ports.get(nth).or(ports.first()).copied().unwrap_or(5432));
        if let Some(address) = address {
            config.hostaddr(*address);
        }
        let mut is_unix = false;
        let name = match host {
            Some(Host::Tcp(name)) => name.clone(),
            #[cfg(unix)]
            Some(Host::Unix(directory)) => {
                is_unix = true;
                directory.display().to_string()
            }
            None => address.map(ToString::to_string).unwrap_or_default(),
        };
        match host {
            #[cfg(unix)]
            Some(Host::Unix(directory)) => config.host_path(directory),
            Some(Host::Tcp(_)) | None => config.host(&name),
        };
        Self {
            config,
            name,
            is_unix,
        }
    }
}

/// All but hosts, addresses, ports and TLS.
fn settings_of(all: &Config) -> Config {
    let mut config = Config::new();
    if let Some(user) = all.get_user() {
        config.user(user);
    }
    if let Some(password) = all.get_password() {
        config.password(password);
    }
    if let Some(database) = all.get_dbname() {
        config.dbname(database);
    }
    if let Some(options) = all.get_options() {
        config.options(options);
    }
    if let Some(name) = all.get_application_name() {
        config.application_name(name);
    }
    if let Some(limit) = all.get_connect_timeout() {
        config.connect_timeout(*limit);
    }
    if let Some(limit) = all.get_tcp_user_timeout() {
        config.tcp_user_timeout(*limit);
    }
    if let Some(interval) = all.get_keepalives_interval() {
        config.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        config.keepalives_retries(retries);
    }
    config
        .keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .target_session_attrs(all.get_target_session_attrs())
        .channel_binding(all.get_channel_binding())
        .load_balance_hosts(all.get_load_balance_hosts());
    config
}
