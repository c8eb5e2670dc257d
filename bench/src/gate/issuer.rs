//! An issuer of tokens, with a real key, whose key set is served on this host.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rsa::pkcs1v15::SigningKey;
use rsa::sha2::Sha256;
use rsa::signature::{SignatureEncoding, Signer};
use rsa::traits::PublicKeyParts;
use rsa::{RsaPrivateKey, rand_core::OsRng};
use serde_json::json;
use tokio::net::TcpListener;

pub(crate) const AUDIENCE: &str = "https://gate.example/orders";
pub(crate) const EMAIL: &str = "tasks@shop.iam.gserviceaccount.com";
const KEY_ID: &str = "key-1";

/// As long as Google's.
const KEY_BITS: usize = 2048;

/// Longer than any measurement.
const TOKEN_SECONDS: i64 = 24 * 3600;

/// See the module.
#[derive(Debug)]
pub(crate) struct Issuer {
    address: SocketAddr,
    key: RsaPrivateKey,
}

// === impl Issuer ===

impl Issuer {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let key = RsaPrivateKey::new(&mut OsRng, KEY_BITS).context("cannot make a key")?;
        let public = key.to_public_key();
        let (n, e) = (
            encode(public.n().to_bytes_be()),
            encode(public.e().to_bytes_be()),
        );
        let page = json!({"keys": [
            {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_ID, "n": n, "e": e},
        ]});
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(serve(listener, Bytes::from(page.to_string())));
        Ok(Self { address, key })
    }

    pub(crate) fn name(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn keys_url(&self) -> String {
        format!("{}/keys", self.name())
    }

    /// A token that is good for the whole measurement.
    pub(crate) fn token(&self) -> anyhow::Result<String> {
        let now = jiff::Timestamp::now().as_second();
        let header = json!({"alg": "RS256", "kid": KEY_ID, "typ": "JWT"});
        let claims = json!({
            "iss": self.name(), "aud": AUDIENCE, "sub": "1234567890", "email": EMAIL, "email_verified": true,
            "iat": now, "exp": now + TOKEN_SECONDS,
        });
        let signed = format!(
            "{}.{}",
            encode(header.to_string()),
            encode(claims.to_string())
        );
        let key = SigningKey::<Sha256>::new(self.key.clone());
        let signature = key.try_sign(signed.as_bytes()).context("cannot sign")?;
        Ok(format!("{signed}.{}", encode(signature.to_bytes())))
    }
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

async fn serve(listener: TcpListener, page: Bytes) {
    while let Ok((stream, _)) = listener.accept().await {
        let page = page.clone();
        let answers = service_fn(move |_: Request<Incoming>| {
            let page = page.clone();
            async move { Ok::<_, Infallible>(Response::new(Full::new(page))) }
        });
        tokio::spawn(async move {
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), answers);
            // A gate that hangs up does not concern us.
            served.await.ok();
        });
    }
}
