//! Handlers with `https`: who is believed, and what becomes of a delivery when nobody is.

use super::{TlsFront, identity};
use crate::support::{Bed, Handler, here, route};
use http::Uri;
use rustls::server::WebPkiClientVerifier;
use semel::protocol::{InDoubt, State};
use semel_gate::Server;
use semel_gate::settings::{Settings, Upstream};
use std::path::PathBuf;
use std::sync::Arc;
use testbed::{Certificates, Validity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn upstream(base: Uri, ca: PathBuf) -> Upstream {
    Upstream {
        base,
        ca: Some(ca),
        h2c: false,
    }
}

/// A gate before this handler, reached so.
async fn bed(handler: Handler, base: Uri, ca: PathBuf) -> Bed {
    let parks = |settings: &mut Settings| {
        settings.routes[0].upstream = upstream(base, ca);
        settings.routes[0].in_doubt = InDoubt::Park;
    };
    Bed::on(Arc::default(), handler, parks).await
}

#[tokio::test]
async fn a_handler_with_a_good_certificate_is_asked_by_its_name() {
    let ca = Certificates::new().unwrap();
    let certificate = ca.issue("handler", "DNS:localhost", Validity::Now).unwrap();
    let handler = Handler::start().await;
    let front = TlsFront::start(handler.address, &certificate).await;
    let bed = bed(handler, front.url("localhost"), ca.root()).await;
    bed.task("n").await.is(200);
    bed.task("n").await.is_replay(200);
    assert_eq!(bed.runs(), 1);
    assert_eq!(front.names(), [Some("localhost".into())]);
}

#[tokio::test]
async fn a_handler_with_a_bad_certificate_gets_nothing_and_the_reply_says_why() {
    let (ca, stranger) = (Certificates::new().unwrap(), Certificates::new().unwrap());
    let issue = |hosts, validity| ca.issue("handler", hosts, validity).unwrap();
    let cases = [
        (
            issue("DNS:other.test", Validity::Now),
            ca.root(),
            "is for another host",
        ),
        (
            issue("DNS:localhost", Validity::Expired),
            ca.root(),
            "has expired, at 2020-02-01",
        ),
        (
            issue("DNS:localhost", Validity::Later),
            ca.root(),
            "is not valid before 2049-01-01",
        ),
        (
            issue("DNS:localhost", Validity::Now),
            stranger.root(),
            "set upstream_ca",
        ),
        (ca.own().unwrap(), ca.root(), "is a CA's own"),
    ];
    for (certificate, believed, says) in cases {
        let handler = Handler::start().await;
        let front = TlsFront::start(handler.address, &certificate).await;
        let bed = bed(handler, front.url("localhost"), believed).await;
        let answer = bed.task("n").await;
        answer.is_problem(502, "handler-unreachable");
        assert!(
            answer.text().contains("the certificate of localhost"),
            "{answer:?}"
        );
        assert!(answer.text().contains(says), "{answer:?}");
        assert!(answer.text().contains("nothing was run"), "{answer:?}");
        // Nothing was sent: that is not in doubt, and does not count.
        let record = bed.record().await;
        assert_eq!((record.state, record.attempts), (State::Waiting, 0));
        assert_eq!(bed.runs(), 0);
    }
}

#[tokio::test]
async fn a_handler_that_speaks_no_tls_or_stalls_gets_nothing() {
    let ca = Certificates::new().unwrap();
    let plain = TcpListener::bind(here()).await.unwrap();
    let deaf = TcpListener::bind(here()).await.unwrap();
    let url = |listener: &TcpListener| {
        let address = listener.local_addr().unwrap();
        format!("https://{address}").parse().unwrap()
    };
    let cases = [
        (url(&plain), "127.0.0.1 does not speak TLS on this port"),
        (url(&deaf), "no connection with TLS within 3s"),
    ];
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            // The whole greeting: what is left unread at the end would reset the connection.
            let greeting = stream.read(&mut [0; 4096]).await;
            assert!(greeting.unwrap() > 0);
            let refusal = b"HTTP/1.1 400 Bad Request\r\n\r\n";
            stream.write_all(refusal).await.unwrap();
        }
    });
    for (base, says) in cases {
        let handler = Handler::start().await;
        let bed = bed(handler, base, ca.root()).await;
        let answer = bed.task("n").await;
        answer.is_problem(502, "handler-unreachable");
        assert!(answer.text().contains(says), "{answer:?}");
        assert_eq!(bed.record().await.state, State::Waiting);
        assert_eq!(bed.record().await.attempts, 0);
    }
}

#[tokio::test]
async fn a_handler_that_asks_for_a_certificate_has_not_looked_at_the_request() {
    let ca = Certificates::new().unwrap();
    let certificate = ca.issue("handler", "DNS:localhost", Validity::Now).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    let root = std::fs::read(ca.root()).unwrap();
    let root = rustls::pki_types::pem::PemObject::from_pem_slice(&root).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = Arc::new(roots);
    let clients = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
    let shown = Arc::new(semel_tls::ServerIdentity::read(identity(&certificate)).unwrap());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_cert_resolver(shown);
    let handler = Handler::start().await;
    let front = TlsFront::with(handler.address, config).await;
    let bed = bed(handler, front.url("localhost"), ca.root()).await;
    let answer = bed.task("n").await;
    answer.is_problem(502, "handler-unreachable");
    assert!(answer.text().contains("client certificate"), "{answer:?}");
    assert_eq!(bed.record().await.state, State::Waiting);
    assert_eq!(bed.runs(), 0);
}

#[tokio::test]
async fn each_route_believes_its_own_roots() {
    let (ca, stranger) = (Certificates::new().unwrap(), Certificates::new().unwrap());
    let certificate = ca.issue("handler", "DNS:localhost", Validity::Now).unwrap();
    let handler = Handler::start().await;
    let front = TlsFront::start(handler.address, &certificate).await;
    let base = front.url("localhost");
    let address = handler.address;
    let bed = Bed::on(Arc::default(), handler, |settings| {
        settings.routes[0].upstream = upstream(base.clone(), ca.root());
        let mut other = route("other", "/other", address);
        other.upstream = upstream(base, stranger.root());
        settings.routes.push(other);
    })
    .await;
    // The first route leaves an open connection behind, which the second must not take.
    bed.task("n").await.is(200);
    let ask = crate::support::Sender::Task.sends("m", "{}").path("/other");
    let answer = bed.ask(ask).await;
    answer.is_problem(502, "handler-unreachable");
    assert!(
        answer
            .text()
            .contains("issued by none of the trusted roots"),
        "{answer:?}"
    );
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_gate_does_not_start_with_files_that_it_cannot_use() {
    let mut settings = crate::support::settings(here());
    settings.routes[0].upstream =
        upstream("https://localhost".parse().unwrap(), "/no/ca.pem".into());
    let store: Arc<crate::support::Switch> = Arc::default();
    let error = Server::bind(settings, store).await.unwrap_err();
    assert!(
        error.to_string().contains("/no/ca.pem cannot be read"),
        "{error}"
    );
}
