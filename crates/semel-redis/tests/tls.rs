//! Redis with TLS: who is let in, which certificates are refused and in which words.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may panic"
)]

use semel::store::StoreExt;
use semel::{Error, Key};
use semel_redis::{RedisSettings, RedisStore};
use std::time::Duration;
use testbed::{Certificate, Certificates, Redis, Validity};

/// A server that speaks TLS at a second port.
struct TlsServer {
    redis: Redis,
    port: u16,
    ca: Certificates,
}

impl TlsServer {
    fn start(hosts: &str, validity: Validity, clients: &str) -> Self {
        let ca = Certificates::new().unwrap();
        let Certificate { certificate, key } = ca.issue("cache", hosts, validity).unwrap();
        let port = testbed::free_port().unwrap();
        let redis = Redis::start(&[
            ("tls-port", &port.to_string()),
            ("tls-cert-file", certificate.to_str().unwrap()),
            ("tls-key-file", key.to_str().unwrap()),
            ("tls-ca-cert-file", ca.root().to_str().unwrap()),
            ("tls-auth-clients", clients),
            ("user", "shop on >s3cret ~* &* +@all"),
        ])
        .unwrap();
        Self { redis, port, ca }
    }

    fn url(&self, host: &str, options: &str) -> String {
        let (port, root) = (self.port, self.ca.root());
        format!(
            "rediss://shop:s3cret@{host}:{port}/0?ssl_ca_certs={}{options}",
            root.display()
        )
    }
}

async fn open(url: &str) -> Result<RedisStore, Error> {
    let mut settings = RedisSettings::new(url);
    settings.connect_timeout = Duration::from_secs(10);
    settings.response_timeout = Duration::from_secs(10);
    RedisStore::connect(settings).await
}

async fn look(store: &RedisStore) -> Result<(), Error> {
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

#[tokio::test]
async fn user_is_let_in_and_every_connection_has_tls() {
    let mut server = TlsServer::start("DNS:localhost", Validity::Now, "no");
    let store = open(&server.url("localhost", "")).await.unwrap();
    look(&store).await.unwrap();
    // A restart cuts every connection; those that come after it find only TLS good enough.
    server.redis.restart().unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while look(&store).await.is_err() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the store is not back"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let wrong = server.url("localhost", "").replace("s3cret", "wr0ng");
    let why = refused(&wrong).await;
    assert!(
        why.contains("user or password") && !why.contains("wr0ng"),
        "{why}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_certificate_is_said() {
    let server = TlsServer::start("DNS:localhost", Validity::Now, "no");
    let why = refused(&server.url("127.0.0.1", "")).await;
    assert!(
        why.contains("the certificate of 127.0.0.1 is for another host"),
        "{why}"
    );
    let stranger = Certificates::new().unwrap();
    let unknown = server.url("localhost", "").replace(
        server.ca.root().to_str().unwrap(),
        stranger.root().to_str().unwrap(),
    );
    let why = refused(&unknown).await;
    assert!(
        why.contains("issued by none of the trusted roots: set ssl_ca_certs"),
        "{why}"
    );
    assert!(why.contains("a repeat is safe"), "{why}");
    let system = format!("rediss://shop:s3cret@localhost:{}", server.port);
    let why = refused(&system).await;
    assert!(why.contains("issued by none of the trusted roots"), "{why}");
    let plain = server.url("localhost", "").replace(
        &format!(":{}/", server.port),
        &format!(":{}/", server.redis.port()),
    );
    let mut settings = RedisSettings::new(plain);
    settings.connect_timeout = Duration::from_secs(1);
    let error = RedisStore::connect(settings).await.unwrap_err();
    let hint = "look whether it speaks TLS on this port";
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains(hint)),
        "{error}"
    );

    let expired = TlsServer::start("DNS:localhost", Validity::Expired, "no");
    // A late renewal, or a clock: a gate that starts waits for it.
    let error = open(&expired.url("localhost", "")).await.unwrap_err();
    let says = "has expired, at 2020-02-01";
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains(says)),
        "{error}"
    );
}

#[tokio::test]
async fn client_certificates_are_shown_and_their_lack_is_named() {
    let server = TlsServer::start("IP:127.0.0.1", Validity::Now, "yes");
    let with = |certificate: &Certificate| {
        let Certificate { certificate, key } = certificate;
        let (certificate, key) = (certificate.display(), key.display());
        server.url(
            "127.0.0.1",
            &format!("&ssl_certfile={certificate}&ssl_keyfile={key}"),
        )
    };
    let right = server.ca.issue("shop", "", Validity::Now).unwrap();
    look(&open(&with(&right)).await.unwrap()).await.unwrap();
    let why = refused(&server.url("127.0.0.1", "")).await;
    assert!(why.contains("set ssl_certfile and ssl_keyfile"), "{why}");
    let stranger = Certificates::new().unwrap();
    let unknown = stranger.issue("shop", "", Validity::Now).unwrap();
    let why = refused(&with(&unknown)).await;
    assert!(
        why.contains("does not accept our client certificate"),
        "{why}"
    );
    let half = server.url("127.0.0.1", "&ssl_certfile=/c.pem");
    let why = refused(&half).await;
    assert!(why.contains("ssl_certfile needs ssl_keyfile"), "{why}");
}
