//! Requests to a service, over TCP or TLS, each on a connection of its own and each sent once.

use crate::args::certify::CertifyArgs;
use anyhow::Context;
use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use semel_prove::certify::{Answer, Ask, Caller, Transport};
use semel_tls::{Roots, Verify, client_config};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::{Position, Url};

/// More of an answer is not compared.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// What the name of a header contains that marks a replay.
const REPLAY: [&str; 2] = ["replay", "idempotent"];

/// Everything that is the same for all requests.
struct Service {
    url: Url,
    method: http::Method,
    headers: HeaderMap,
    /// In place of those of the same name.
    other_headers: HeaderMap,
    key_header: http::HeaderName,
    quoted: bool,
    timeout: Duration,
    tls: Option<TlsConnector>,
}

/// A way to send requests as the arguments say.
pub(super) async fn open(args: &CertifyArgs) -> anyhow::Result<Transport> {
    let tls = if args.url.scheme() == "https" {
        let roots = args.ca.clone().map_or(Roots::System, Roots::File);
        let mut config = client_config(&Verify::Full(roots), None)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Some(TlsConnector::from(Arc::new(config)))
    } else {
        None
    };
    let service = Arc::new(Service {
        url: args.url.clone(),
        method: args.method.clone(),
        headers: args.header.iter().cloned().collect(),
        other_headers: args.other_header.iter().cloned().collect(),
        key_header: args.key_header.clone(),
        quoted: args.quoted,
        timeout: Duration::from_millis(args.timeout_ms),
        tls,
    });
    service
        .connect()
        .await
        .with_context(|| format!("{} cannot be reached", args.url))?;
    Ok(Arc::new(move |ask| {
        let service = Arc::clone(&service);
        Box::pin(async move { service.ask(&ask).await })
    }))
}

// === impl Service ===

impl Service {
    async fn ask(&self, ask: &Ask) -> Result<Answer, String> {
        let answered = tokio::time::timeout(self.timeout, self.answer(ask)).await;
        let late = |_| format!("no answer within {} ms", self.timeout.as_millis());
        answered.map_err(late)?.map_err(|why| format!("{why:#}"))
    }

    async fn answer(&self, ask: &Ask) -> anyhow::Result<Answer> {
        let request = self.request(ask)?;
        let stream = self.connect().await?;
        match &self.tls {
            None => exchange(stream, request).await,
            Some(tls) => {
                let host = self.url.host_str().unwrap_or_default();
                let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())?;
                exchange(tls.connect(name, stream).await?, request).await
            }
        }
    }

    async fn connect(&self) -> anyhow::Result<TcpStream> {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or(80);
        let connecting = TcpStream::connect((host.trim_matches(['[', ']']), port));
        Ok(tokio::time::timeout(self.timeout, connecting).await??)
    }

    fn request(&self, ask: &Ask) -> anyhow::Result<Request<Full<Bytes>>> {
        let path = &self.url[Position::BeforePath..Position::AfterQuery];
        let host = &self.url[Position::BeforeHost..Position::AfterPort];
        let mut request = Request::builder().method(&self.method).uri(path);
        if let Some(key) = &ask.key {
            let key = if self.quoted {
                format!("\"{key}\"")
            } else {
                key.clone()
            };
            request = request.header(&self.key_header, key);
        }
        let mut request = request.body(Full::new(Bytes::from(ask.body.clone())))?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, host.parse()?);
        headers.insert(header::CONNECTION, "close".parse()?);
        headers.insert(header::CONTENT_TYPE, "application/json".parse()?);
        headers.extend(self.headers.clone());
        if ask.caller == Caller::Other {
            headers.extend(self.other_headers.clone());
        }
        Ok(request)
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<Answer> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let talk = async {
        let answer = sender.send_request(request).await?;
        let replay_header = replay_header(answer.headers());
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX)
            .collect()
            .await;
        let body = body.map_err(|why| anyhow::anyhow!(why))?.to_bytes();
        anyhow::Ok(Answer {
            status,
            replay_header,
            body,
        })
    };
    tokio::pin!(talk);
    tokio::select! {
        answer = &mut talk => answer,
        // An orderly end of the connection comes with the answer, an error with its own.
        _ = connection => talk.await,
    }
}

/// The header that marks a replay, and does not deny it.
fn replay_header(headers: &HeaderMap) -> Option<String> {
    let mut headers = headers
        .iter()
        .filter_map(|(name, value)| Some((name, value.to_str().ok()?)));
    let (name, value) = headers.find(|(name, value)| {
        let marks = REPLAY.iter().any(|word| name.as_str().contains(word));
        marks && !["", "false", "0", "no"].contains(&value.to_lowercase().as_str())
    })?;
    Some(format!("{name}: {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replays_are_known_by_their_header() {
        let of = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            replay_header(&headers)
        };
        let marked = Some("idempotent-replayed: true".to_owned());
        assert_eq!(of("idempotent-replayed", "true"), marked);
        assert_eq!(of("idempotent-replayed", "false"), None);
        // It repeats the key, and says nothing.
        assert_eq!(of("idempotency-key", "a1"), None);
    }
}
