//! PostgreSQL with TLS: what each `sslmode` does, which certificates are refused and in which words.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may panic"
)]

use semel::store::StoreExt;
use semel::{Error, Key};
use semel_postgres::{PostgresSettings, PostgresStore};
use std::fmt::Write as _;
use std::time::Duration;
use testbed::{Certificate, Certificates, Postgres, Validity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Who may come how.
const HBA: &str = "\
local     all postgres               trust
host      all postgres  127.0.0.1/32 trust
host      all reader    127.0.0.1/32 trust
host      all scram     127.0.0.1/32 scram-sha-256
hostssl   all secure    127.0.0.1/32 trust
hostnossl all plain     127.0.0.1/32 trust
hostssl   all client    127.0.0.1/32 cert
";

/// How long a store may take to find its server again, on a slow machine.
const RECOVERY_MAX: Duration = Duration::from_secs(20);

/// A server with a certificate for `localhost`, and none for `127.0.0.1`.
struct TlsServer {
    postgres: Postgres,
    ca: Certificates,
    certificate: Certificate,
}

impl TlsServer {
    fn start() -> Self {
        let ca = Certificates::new().unwrap();
        let certificate = ca.issue("db", "DNS:localhost", Validity::Now).unwrap();
        let hba = ca.write("pg_hba.conf", HBA).unwrap();
        let root = ca.root();
        let files = [&certificate.certificate, &certificate.key, &root, &hba];
        let [certificate_file, key_file, root_file, hba_file] =
            files.map(|path| path.to_str().unwrap());
        let postgres = Postgres::start_with(&[
            ("ssl", "on"),
            ("ssl_cert_file", certificate_file),
            ("ssl_key_file", key_file),
            ("ssl_ca_file", root_file),
            ("hba_file", hba_file),
        ])
        .unwrap();
        let server = Self {
            postgres,
            ca,
            certificate,
        };
        let mut roles = String::new();
        for role in ["reader", "scram", "secure", "plain", "client"] {
            write!(
                roles,
                "CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 's3cret';"
            )
            .unwrap();
        }
        roles += "ALTER ROLE reader SET default_transaction_read_only = on";
        server.ask(&roles);
        server
    }

    /// The URL of a user at a host, with options; `CA` among them stands for the file of the CA.
    fn url(&self, user: &str, host: &str, options: &str) -> String {
        let port = self.postgres.port();
        let root = self.ca.root();
        let options = options.replace("CA", root.to_str().unwrap());
        format!("postgres://{user}:s3cret@{host}:{port}/postgres?{options}")
    }

    fn ask(&self, statement: &str) -> String {
        testbed::query(&self.postgres.url(), statement).unwrap()
    }

    /// How the connections of stores came: `t` with TLS, `f` without.
    fn connections(&self) -> String {
        self.ask(
            "SELECT coalesce(string_agg(DISTINCT ssl::text, ','), 'none') FROM pg_stat_ssl \
             JOIN pg_stat_activity USING (pid) WHERE application_name = 'semel'",
        )
    }

    fn cut_connections(&self) {
        self.ask(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'semel'",
        );
    }
}

async fn open(url: &str) -> Result<PostgresStore, Error> {
    let mut settings = PostgresSettings::new(url);
    settings.connect_timeout = Duration::from_secs(10);
    PostgresStore::connect(settings).await
}

async fn look(store: &PostgresStore) -> Result<(), Error> {
    store.look(&Key::from_bytes([1; 32])).await.map(drop)
}

/// Why a URL is refused for good; never with the password.
async fn refused(url: &str) -> String {
    match open(url).await.unwrap_err() {
        Error::Invalid(why) => {
            assert!(!why.to_string().contains("s3cret"), "{why}");
            why.to_string()
        }
        other => panic!("not invalid: {other}"),
    }
}

/// What libpq does with a URL: `t` for TLS, `f` for none, `refused`.
fn by_libpq(url: &str) -> String {
    let asked = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    testbed::query(url, asked).unwrap_or_else(|_| "refused".into())
}

/// The same of ours.
async fn by_us(url: &str) -> String {
    match open(url).await {
        Ok(store) if store.encryption().starts_with("TLS") => "t".into(),
        Ok(store) => {
            assert!(store.encryption().contains("without TLS"));
            "f".into()
        }
        Err(Error::Invalid(_)) => "refused".into(),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn every_sslmode_does_what_it_does_in_libpq() {
    let server = TlsServer::start();
    let stranger = Certificates::new().unwrap();
    let stranger = format!("sslrootcert={}", stranger.root().display());
    // One store migrates; the others find everything there.
    open(&server.url("secure", "localhost", "")).await.unwrap();
    let mut seen = Vec::new();
    for user in ["postgres", "secure", "plain"] {
        for host in ["localhost", "127.0.0.1"] {
            for mode in [
                "",
                "disable",
                "allow",
                "prefer",
                "require",
                "verify-ca",
                "verify-full",
            ] {
                for root in ["", "sslrootcert=CA", stranger.as_str()] {
                    let mode = if mode.is_empty() {
                        String::new()
                    } else {
                        format!("sslmode={mode}&")
                    };
                    let url = server.url(user, host, &format!("{mode}{root}"));
                    let (ours, libpq) = (by_us(&url).await, by_libpq(&url));
                    assert_eq!(ours, libpq, "{url}");
                    seen.push(ours);
                }
            }
        }
    }
    for outcome in ["t", "f", "refused"] {
        assert!(seen.iter().any(|it| it == outcome), "never {outcome}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_certificate_is_said() {
    let server = TlsServer::start();
    let stranger = Certificates::new().unwrap();
    let stranger = format!(
        "sslmode=verify-full&sslrootcert={}",
        stranger.root().display()
    );
    let full = "sslmode=verify-full&sslrootcert=CA";
    for (host, options, says) in [
        (
            "127.0.0.1",
            full,
            "the certificate of 127.0.0.1 is for another host",
        ),
        ("127.0.0.1", full, "another host (localhost)"),
        (
            "localhost",
            &stranger,
            "the certificate of localhost was issued by none of the trusted roots",
        ),
        ("localhost", &stranger, "set sslrootcert"),
        (
            "localhost",
            "sslrootcert=system",
            "issued by none of the trusted roots",
        ),
    ] {
        let why = refused(&server.url("postgres", host, options)).await;
        assert!(why.contains(says), "{why}");
        assert!(why.contains("a retry is safe"), "{why}");
    }
}

#[tokio::test]
async fn certificates_that_are_only_out_of_their_time_are_waited_for() {
    let server = TlsServer::start();
    let full = "sslmode=verify-full&sslrootcert=CA";
    let certificates = [
        (
            server
                .ca
                .issue("db", "DNS:localhost", Validity::Expired)
                .unwrap(),
            ("has expired, at 2020-02-01", Passes::Yes),
        ),
        (
            server
                .ca
                .issue("db", "DNS:localhost", Validity::Later)
                .unwrap(),
            ("is not valid before 2049-01-01", Passes::Yes),
        ),
        (server.ca.own().unwrap(), ("is a CA's own", Passes::No)),
        (
            server.ca.issue("localhost", "", Validity::Now).unwrap(),
            ("is not version 3 of X.509", Passes::No),
        ),
    ];
    for (certificate, (says, passes)) in certificates {
        server.certificate.replace_by(&certificate).unwrap();
        server.ask("SELECT pg_reload_conf()");
        let url = server.url("postgres", "localhost", full);
        let (mut why, mut seen) = (String::new(), Passes::No);
        for _ in 0..100 {
            // The server reads its files again a moment after it said that it will.
            why = match open(&url).await {
                Ok(_) => "none".into(),
                Err(error) => {
                    seen = match &error {
                        Error::Unavailable(_) => Passes::Yes,
                        _ => Passes::No,
                    };
                    error.to_string()
                }
            };
            if why.contains(says) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(why.contains(says), "{says}: {why}");
        assert_eq!(seen, passes, "{why}");
    }
}

/// Whether a gate that starts waits for it to be over.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Passes {
    Yes,
    No,
}

#[tokio::test]
async fn client_certificates_are_shown_and_their_lack_is_named() {
    let server = TlsServer::start();
    let stranger = Certificates::new().unwrap();
    let with = |certificate: &Certificate| {
        let Certificate { certificate, key } = certificate;
        let (certificate, key) = (certificate.display(), key.display());
        let full = "sslmode=verify-full&sslrootcert=CA";
        server.url(
            "client",
            "localhost",
            &format!("{full}&sslcert={certificate}&sslkey={key}"),
        )
    };
    let right = server.ca.issue("client", "", Validity::Now).unwrap();
    let store = open(&with(&right)).await.unwrap();
    assert_eq!(store.encryption(), "TLS, certificate and host checked");

    let without = server.url("client", "localhost", "sslmode=verify-full&sslrootcert=CA");
    let why = refused(&without).await;
    assert!(why.contains("set sslcert and sslkey"), "{why}");
    let other = server.ca.issue("somebody", "", Validity::Now).unwrap();
    let why = refused(&with(&other)).await;
    assert!(why.contains("to a certificate of this user"), "{why}");
    let unknown = stranger.issue("client", "", Validity::Now).unwrap();
    let why = refused(&with(&unknown)).await;
    assert!(
        why.contains("does not accept our client certificate"),
        "{why}"
    );
    let issue = || server.ca.issue("client", "DNS:client", Validity::Now);
    let mixed = Certificate {
        certificate: issue().unwrap().certificate,
        key: issue().unwrap().key,
    };
    let why = refused(&with(&mixed)).await;
    assert!(why.contains("does not belong to the certificate"), "{why}");
}

#[tokio::test]
async fn passwords_are_bound_to_the_certificate() {
    let server = TlsServer::start();
    let bound = "sslmode=verify-full&sslrootcert=CA&channel_binding=require";
    open(&server.url("scram", "localhost", bound))
        .await
        .unwrap();
    let why = refused(&server.url(
        "scram",
        "localhost",
        "sslmode=disable&channel_binding=require",
    ))
    .await;
    assert!(why.contains("connect with TLS"), "{why}");
    let wrong = server
        .url("scram", "localhost", bound)
        .replace("s3cret", "wr0ng");
    let why = refused(&wrong).await;
    assert!(why.contains("password") && !why.contains("wr0ng"), "{why}");
}

#[tokio::test]
async fn every_later_connection_has_tls_too() {
    let server = TlsServer::start();
    let url = server.url("secure", "localhost", "sslmode=verify-full&sslrootcert=CA");
    let store = open(&url).await.unwrap();
    look(&store).await.unwrap();
    assert_eq!(server.connections(), "true");

    // The server comes back with a certificate that has expired: the store says so, and recovers.
    let valid = Certificate {
        certificate: server
            .ca
            .write("valid.pem", &read(&server.certificate.certificate))
            .unwrap(),
        key: server
            .ca
            .write("valid.key", &read(&server.certificate.key))
            .unwrap(),
    };
    let expired = server
        .ca
        .issue("db", "DNS:localhost", Validity::Expired)
        .unwrap();
    server.certificate.replace_by(&expired).unwrap();
    server.ask("SELECT pg_reload_conf()");
    let says = |error: &Error| matches!(error, Error::Denied(why) if why.contains("has expired"));
    until("an expired certificate is told", &server, &store, |seen| {
        seen.as_ref().is_err_and(says)
    })
    .await;
    server.certificate.replace_by(&valid).unwrap();
    server.ask("SELECT pg_reload_conf()");
    until("the store is back", &server, &store, Result::is_ok).await;
    assert_eq!(server.connections(), "true");
}

fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Cuts the store's connections and uses it, until it answers as it should.
async fn until(
    what: &str,
    server: &TlsServer,
    store: &PostgresStore,
    good: impl Fn(&Result<(), Error>) -> bool,
) {
    let deadline = tokio::time::Instant::now() + RECOVERY_MAX;
    loop {
        server.cut_connections();
        // The first one finds out that its connection is gone.
        drop(look(store).await);
        let seen = look(store).await;
        if good(&seen) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{what}: {seen:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn unix_sockets_have_no_tls_whatever_the_mode() {
    let server = TlsServer::start();
    let directory = server.ask("SHOW unix_socket_directories");
    let encoded = directory.replace('/', "%2F");
    let port = server.postgres.port();
    let root = server.ca.root();
    let full = format!("sslmode=verify-full&sslrootcert={}", root.display());
    for url in [
        format!("postgres://postgres@{encoded}:{port}/postgres?{full}"),
        format!("postgres:///postgres?user=postgres&host={directory}&port={port}&{full}"),
        format!("postgres:///postgres?user=postgres&host={encoded}&port={port}"),
        format!("postgres:///postgres?user=postgres&host=/no,{directory}&port={port}"),
    ] {
        let store = open(&url).await.unwrap();
        assert_eq!(store.encryption(), "over a Unix socket", "{url}");
        look(&store).await.unwrap();
    }
    // A socket that is not there, then a host: that one's connection has TLS, and needs it.
    let mixed = format!("postgres:///postgres?user=postgres&host=/no,localhost&port={port}&{full}");
    let store = open(&mixed).await.unwrap();
    assert_eq!(store.encryption(), "TLS, certificate and host checked");
    look(&store).await.unwrap();
}

#[tokio::test]
async fn hosts_are_tried_until_one_is_as_wanted() {
    let server = TlsServer::start();
    let (port, dead) = (server.postgres.port(), testbed::free_port().unwrap());
    let root = server.ca.root();
    let url = |user: &str, hosts: &str, attributes: &str| {
        let root = root.display();
        format!(
            "postgres://{user}@{hosts}/postgres?sslmode=verify-full&sslrootcert={root}&target_session_attrs={attributes}"
        )
    };
    // One is gone, one has a certificate for another host.
    let hosts = format!("localhost:{dead},127.0.0.1:{port},localhost:{port}");
    open(&url("postgres", &hosts, "read-write")).await.unwrap();
    // One port is for all hosts: the first has a certificate for another host.
    let hosts = url("postgres", "127.0.0.1,localhost", "read-write");
    open(&format!("{hosts}&port={port}")).await.unwrap();
    let hosts = format!("localhost:{dead},127.0.0.1:{port}");
    let why = refused(&url("postgres", &hosts, "read-write")).await;
    assert!(
        why.contains("the certificate of 127.0.0.1 is for another host"),
        "{why}"
    );

    let alone = format!("localhost:{port}");
    let error = open(&url("reader", &alone, "read-write"))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("does not allow writes")),
        "{error}"
    );
    let mut settings = PostgresSettings::new(url("reader", &alone, "any"));
    settings.migrate = false;
    PostgresStore::connect(settings).await.unwrap();
}

#[tokio::test]
async fn host_that_stalls_in_the_handshake_is_passed_over() {
    let server = TlsServer::start();
    let stalled = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stalled_port = stalled.local_addr().unwrap().port();
    let stalling = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((mut stream, _)) = stalled.accept().await {
            let mut request = [0; 8];
            stream.read_exact(&mut request).await.unwrap();
            stream.write_all(b"S").await.unwrap();
            held.push(stream);
        }
    });
    let (port, root) = (server.postgres.port(), server.ca.root());
    let mut settings = PostgresSettings::new(format!(
        "postgres://postgres@localhost:{stalled_port},localhost:{port}/postgres?sslmode=verify-full&sslrootcert={}",
        root.display()
    ));
    settings.connect_timeout = Duration::from_secs(2);
    let store = PostgresStore::connect(settings).await.unwrap();
    look(&store).await.unwrap();
    stalling.abort();
}

#[tokio::test]
async fn server_without_tls_is_refused_where_tls_is_required() {
    let url = testbed::fresh_database("without_tls").unwrap();
    let why = refused(&format!("{url}?sslmode=require")).await;
    assert!(why.contains("it does not offer TLS"), "{why}");
    assert!(why.contains("a retry is safe"), "{why}");
    let store = open(&format!("{url}?sslmode=prefer")).await.unwrap();
    assert!(store.encryption().starts_with("without TLS"));
}
