//! The way to a handler: a host is looked up once for each connection, every address it has is looked at, and the
//! connection goes to one of these.

use super::address::{refuse, refuse_name};
use http::Uri;
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tower::Service;

/// Opens connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Connector {
    names: Resolver,
}

/// Who knows the addresses of a host.
#[derive(Clone, Debug, Default)]
pub(super) enum Resolver {
    /// The machine.
    #[default]
    System,
    /// For tests: the next answer of a list.
    #[cfg(test)]
    Scripted(std::sync::Arc<std::sync::Mutex<std::collections::VecDeque<Vec<std::net::IpAddr>>>>),
}

/// No connection was made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct ConnectError(String);

// === impl Connector ===

impl Connector {
    #[cfg(test)]
    pub(super) fn with_resolver(names: Resolver) -> Self {
        Self { names }
    }

    async fn connect(&self, to: &Uri) -> Result<TokioIo<TcpStream>, ConnectError> {
        let host = to.host().unwrap_or_default();
        let port = to.port_u16().unwrap_or(default_port(to));
        let addresses = self.addresses(host, port).await?;
        check(host, &addresses)?;
        let mut last = ConnectError(format!("{host} has no address"));
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(ready(stream)),
                Err(error) => last = ConnectError(format!("no connection to {address}: {error}")),
            }
        }
        Err(last)
    }

    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = literal.parse() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        if let Some(refused) = refuse_name(host) {
            let what = refused.text();
            return Err(ConnectError(format!(
                "{host} names {what}, which is never called"
            )));
        }
        self.names.look_up(host, port).await
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(&to).await })
    }
}

// === impl Resolver ===

impl Resolver {
    async fn look_up(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        match self {
            Self::System => match tokio::net::lookup_host((host, port)).await {
                Ok(found) => Ok(found.collect()),
                Err(error) => Err(ConnectError(format!("{host} was not found: {error}"))),
            },
            #[cfg(test)]
            Self::Scripted(script) => {
                let next = script.lock().unwrap().pop_front().unwrap_or_default();
                let addresses = next.into_iter().map(|ip| SocketAddr::new(ip, port));
                Ok(addresses.collect())
            }
        }
    }
}

/// One forbidden address among many is enough: who answers so may answer otherwise next time.
fn check(host: &str, addresses: &[SocketAddr]) -> Result<(), ConnectError> {
    for address in addresses.iter().map(SocketAddr::ip) {
        if let Some(refused) = refuse(address) {
            let what = refused.text();
            let via = match host.contains(&address.to_string()) {
                true => String::new(),
                false => format!(" (of {host})"),
            };
            return Err(ConnectError(format!(
                "{address}{via} is or stands for {what}, which is never called"
            )));
        }
    }
    Ok(())
}

fn ready(stream: TcpStream) -> TokioIo<TcpStream> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "small packets may be held back");
    }
    TokioIo::new(stream)
}

fn default_port(to: &Uri) -> u16 {
    match to.scheme_str() {
        Some("https") => 443,
        Some(_) | None => 80,
    }
}
