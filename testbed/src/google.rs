//! Firestore as it is reached in production: by TLS, with a token of the metadata server. What the emulator cannot show
//! is played, the rest is the emulator's.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use semel_tls::{Alpn, IdentityFiles, ServerIdentity};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use crate::certificates::Certificate;
use crate::grpc::{GrpcAnswer, GrpcCall, GrpcForwarder, serve_grpc};

/// gRPC's numbers of what it says by itself.
const INVALID_ARGUMENT: u32 = 3;
const UNAUTHENTICATED: u32 = 16;

/// A server with TLS before an emulator, and the metadata server whose tokens it accepts.
#[derive(Debug)]
pub struct Google {
    address: SocketAddr,
    metadata: SocketAddr,
    state: Arc<State>,
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct State {
    emulator: Option<GrpcForwarder>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    tokens: u32,
    calls: Vec<GrpcCall>,
    refuses: Option<(String, u32, String)>,
}

// === impl Google ===

impl Google {
    /// Starts it on free ports. Without an emulator it has only refusals.
    ///
    /// # Errors
    /// When the certificate cannot be used.
    pub fn start(certificate: &Certificate, emulator: Option<&str>) -> anyhow::Result<Self> {
        let identity = Arc::new(ServerIdentity::read(IdentityFiles {
            certificate: certificate.certificate.clone(),
            key: certificate.key.clone(),
        })?);
        let tls = TlsAcceptor::from(Arc::new(identity.server_config(Alpn::Http2)));
        let state = Arc::new(State {
            emulator: emulator.map(GrpcForwarder::to),
            inner: Mutex::default(),
        });
        let runtime = Runtime::new().context("no runtime")?;
        let inside = runtime.enter();
        let (listener, address) = listen()?;
        let (tokens, metadata) = listen()?;
        drop(inside);
        runtime.spawn(serve(listener, tls, Arc::clone(&state)));
        runtime.spawn(serve_tokens(tokens, Arc::clone(&state)));
        Ok(Self {
            address,
            metadata,
            state,
            runtime: Some(runtime),
        })
    }

    /// Its endpoint, by this name for 127.0.0.1.
    #[must_use]
    pub fn endpoint(&self, host: &str) -> String {
        format!("https://{host}:{}", self.address.port())
    }

    /// `host:port` of its metadata server, as `GCE_METADATA_HOST` has it.
    #[must_use]
    pub fn metadata_host(&self) -> String {
        self.metadata.to_string()
    }

    /// From now on calls of this method (`""` is every one) hear this status, by its number, and these words.
    pub fn refuse(&self, method: &str, code: u32, says: &str) {
        self.state.lock().refuses = Some((method.into(), code, says.into()));
    }

    /// No token that it gave is good any more.
    pub fn revoke(&self) {
        self.state.lock().tokens += 1;
    }

    /// What it was asked, in this order.
    #[must_use]
    pub fn calls(&self) -> Vec<GrpcCall> {
        self.state.lock().calls.clone()
    }
}

impl Drop for Google {
    fn drop(&mut self) {
        // Whoever drops it may run on a runtime, where waiting for this one is forbidden.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

// === impl State ===

impl State {
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(self: Arc<Self>, mut call: GrpcCall) -> anyhow::Result<GrpcAnswer> {
        if let Some(refused) = self.lock().judge(&call)? {
            return Ok(refused);
        }
        let emulator = self.emulator.as_ref().context("there is no emulator")?;
        let owner = HeaderValue::from_static("Bearer owner");
        call.headers.insert("authorization", owner);
        emulator.forward(call).await
    }
}

// === impl Inner ===

impl Inner {
    fn token(&self) -> String {
        format!("token-{}", self.tokens)
    }

    fn judge(&mut self, call: &GrpcCall) -> anyhow::Result<Option<GrpcAnswer>> {
        self.calls.push(call.clone());
        let bearer = format!("Bearer {}", self.token());
        if call
            .headers
            .get("authorization")
            .is_none_or(|it| *it != *bearer)
        {
            let says = "Request had invalid authentication credentials.";
            return GrpcAnswer::status(UNAUTHENTICATED, says).map(Some);
        }
        if !call.headers.contains_key("x-goog-request-params") {
            return GrpcAnswer::status(INVALID_ARGUMENT, "Missing routing header.").map(Some);
        }
        match &self.refuses {
            Some((method, code, says)) if call.path.ends_with(method) => {
                GrpcAnswer::status(*code, says).map(Some)
            }
            Some(_) | None => Ok(None),
        }
    }
}

fn listen() -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((TcpListener::from_std(listener)?, address))
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, state) = (tls.clone(), Arc::clone(&state));
        tokio::spawn(async move {
            // A client that does not believe us says so and goes: that is its own business.
            if let Ok(stream) = tls.accept(stream).await {
                let answer = move |call| Arc::clone(&state).answer(call);
                drop(serve_grpc(stream, answer).await);
            }
        });
    }
}

async fn serve_tokens(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = hyper::service::service_fn(move |_: Request<Incoming>| {
            let token = state.lock().token();
            let granted = format!(r#"{{"access_token":"{token}","expires_in":3600}}"#);
            async { anyhow::Ok(Response::new(Full::new(Bytes::from(granted)))) }
        });
        let served = hyper::server::conn::http1::Builder::new();
        tokio::spawn(served.serve_connection(TokioIo::new(stream), service));
    }
}
