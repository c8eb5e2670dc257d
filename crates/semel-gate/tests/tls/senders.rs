//! Senders that are shown a certificate.

use super::identity;
use crate::log_lines;
use crate::support::wire::{closed, connect, exchange};
use crate::support::{Bed, Sender, until, within};
use bytes::Bytes;
use http::HeaderValue;
use http::header::HOST;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use semel_gate::settings::ListenerTls;
use semel_tls::{Roots, Verify, client_config};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::Duration;
use testbed::{Certificate, Certificates, Validity};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A gate that shows this certificate and looks at its files all the time.
async fn bed(certificate: &Certificate) -> Bed {
    let tls = ListenerTls {
        identity: identity(certificate),
        reload_every: Duration::from_millis(20),
    };
    Bed::with(|settings| settings.tls = Some(tls)).await
}

/// A client that believes this root and offers these versions of HTTP.
async fn dial(
    gate: SocketAddr,
    root: PathBuf,
    alpn: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut config = client_config(&Verify::Full(Roots::File(root)), None).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(gate).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// A connection that speaks HTTP/1.1.
async fn client(gate: SocketAddr, root: PathBuf) -> http1::SendRequest<Full<Bytes>> {
    let stream = dial(gate, root, &[]).await.unwrap();
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn status(sender: &mut http1::SendRequest<Full<Bytes>>, gate: SocketAddr, name: &str) -> u16 {
    let mut request = Sender::Task.sends(name, "{}").request(gate);
    *request.uri_mut() = "/work".parse().unwrap();
    let host = HeaderValue::from_static("localhost");
    request.headers_mut().insert(HOST, host);
    sender.ready().await.unwrap();
    let answer = within("a reply", sender.send_request(request))
        .await
        .unwrap();
    let status = answer.status().as_u16();
    answer.into_body().collect().await.unwrap();
    status
}

#[tokio::test]
async fn both_versions_of_http_are_served_and_none_without_tls() {
    let ca = Certificates::new().unwrap();
    let certificate = ca.issue("gate", "DNS:localhost", Validity::Now).unwrap();
    let bed = bed(&certificate).await;
    let mut first = client(bed.gate, ca.root()).await;
    assert_eq!(status(&mut first, bed.gate, "n").await, 200);

    let stream = dial(bed.gate, ca.root(), &["h2", "http/1.1"])
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut second, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut request = Sender::Task.sends("n", "{}").request(bed.gate);
    *request.uri_mut() = "https://localhost/work".parse().unwrap();
    let answer = within("a reply", second.send_request(request))
        .await
        .unwrap();
    assert_eq!(answer.headers()["idempotent-replayed"], "true");
    assert_eq!(bed.runs(), 1);

    let said = exchange(bed.gate, Sender::Task.sends("m", "{}").raw()).await;
    assert!(!said.starts_with("HTTP"), "{said:?}");
    assert_eq!(bed.runs(), 1);
}

#[tokio::test]
async fn a_handshake_that_stalls_is_cut_and_holds_nobody_up() {
    let ca = Certificates::new().unwrap();
    let certificate = ca.issue("gate", "DNS:localhost", Validity::Now).unwrap();
    let tls = ListenerTls {
        identity: identity(&certificate),
        reload_every: Duration::from_secs(3600),
    };
    let bed = Bed::with(|settings| {
        settings.tls = Some(tls);
        settings.limits.head_within = Duration::from_secs(1);
    })
    .await;
    let stalled = connect(bed.gate, b"").await;
    let mut other = client(bed.gate, ca.root()).await;
    assert_eq!(status(&mut other, bed.gate, "n").await, 200);
    closed(stalled).await;
    // Nor does one hold up the end of the gate.
    let _stalled = connect(bed.gate, b"").await;
    drop(other);
    let (served, ..) = bed.stop();
    within("the end of the gate", served).await.unwrap();
}

#[tokio::test]
async fn new_files_are_for_new_connections_and_broken_ones_for_nobody() {
    log_lines::listen();
    let (ca, other) = (Certificates::new().unwrap(), Certificates::new().unwrap());
    let shown = ca.issue("gate", "DNS:localhost", Validity::Now).unwrap();
    let bed = bed(&shown).await;
    let mut old = client(bed.gate, ca.root()).await;
    assert_eq!(status(&mut old, bed.gate, "n").await, 200);

    let renewed = other.issue("gate", "DNS:localhost", Validity::Now).unwrap();
    shown.replace_by(&renewed).unwrap();
    let takes = async |root: PathBuf| dial(bed.gate, root, &[]).await.is_ok();
    until("the new certificate is shown", async || {
        takes(other.root()).await
    })
    .await;
    assert!(!takes(ca.root()).await);
    assert_eq!(status(&mut old, bed.gate, "m").await, 200);

    let old_one = other.issue("gate", "DNS:localhost", Validity::Expired);
    shown.replace_by(&old_one.unwrap()).unwrap();
    let says = "senders refuse the certificate: renew it, or look at the clock";
    until("the expired certificate is told", async || {
        !log_lines::lines("message", says).is_empty()
    })
    .await;
    let renewed = other.issue("gate", "DNS:localhost", Validity::Now).unwrap();
    shown.replace_by(&renewed).unwrap();
    until("a good one is shown again", async || {
        takes(other.root()).await
    })
    .await;

    std::fs::write(&shown.certificate, "half of a fi").unwrap();
    let says = "the new certificate cannot be used: the old one stays until the files are good";
    let about = shown.certificate.display().to_string();
    let told = async || {
        let lines = log_lines::lines("message", says);
        lines.iter().any(|line| {
            line["error"]
                .as_str()
                .is_some_and(|error| error.contains(&about))
        })
    };
    until("the broken file is told", told).await;
    assert!(takes(other.root()).await);
    assert_eq!(status(&mut old, bed.gate, "o").await, 200);
    assert!(!log_lines::text().contains("PRIVATE KEY"));
}

/// A file system that does not answer, as a mounted one may not: whoever reads the certificate waits.
#[test]
fn files_that_do_not_answer_are_told_and_hold_up_neither_senders_nor_the_end() {
    log_lines::listen();
    let ca = Certificates::new().unwrap();
    let shown = ca.issue("gate", "DNS:localhost", Validity::Now).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let held = runtime.block_on(async {
        let bed = bed(&shown).await;
        let held = HeldFile::hold(&shown.certificate);
        let held = within("somebody reads", held.asked_for()).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(10)).await;
        tokio::time::resume();
        until("the silence is told", async || {
            log_lines::text().contains("no answer within 10s; the old certificate stays")
        })
        .await;
        let mut sender = client(bed.gate, ca.root()).await;
        assert_eq!(status(&mut sender, bed.gate, "n").await, 200);
        drop(sender);
        let (served, ..) = bed.stop();
        within("the end of the gate", served).await.unwrap();
        held
    });
    // Nor does the process wait at its end for who still reads.
    drop(runtime);
    drop(held);
}

/// A file that nobody can open for a while: another process has a lease on it, and does not give it back.
struct HeldFile {
    holder: Child,
    says: BufReader<ChildStdout>,
}

/// Says `asked` as soon as somebody opens the file.
const HOLD: &str = "
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, lambda *_: print('asked', flush=True))
file = os.open(sys.argv[1], os.O_RDWR)
while True:
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        break
    except BlockingIOError:
        pass
while True:
    signal.pause()
";

impl HeldFile {
    fn hold(path: &Path) -> Self {
        let mut python = std::process::Command::new("python3");
        python.args(["-c", HOLD]).arg(path).stdout(Stdio::piped());
        let mut holder = python.spawn().unwrap();
        let says = BufReader::new(holder.stdout.take().unwrap());
        Self { holder, says }
    }

    /// Waits until somebody wants to read it, and cannot.
    async fn asked_for(mut self) -> Self {
        let waiting = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            self.says.read_line(&mut line).unwrap();
            assert_eq!(line, "asked\n");
            self
        });
        waiting.await.unwrap()
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        self.holder.kill().unwrap();
        self.holder.wait().unwrap();
    }
}
