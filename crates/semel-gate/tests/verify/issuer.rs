//! An issuer of a test's own: it signs tokens with real keys and serves its key set on a port of this host.

use crate::support::{Ask, Bed, Sender, here};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use rsa::pkcs1v15::SigningKey;
use rsa::sha2::Sha256;
use rsa::signature::{SignatureEncoding, Signer};
use rsa::traits::PublicKeyParts;
use rsa::{RsaPrivateKey, rand_core::OsRng};
use semel_gate::settings::{Algorithm, Issuer, Route, Settings, Source, TokenRule, Verify};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub(crate) const AUDIENCE: &str = "https://gate.example/work?a=1";
pub(crate) const EMAIL: &str = "tasks@shop.iam.gserviceaccount.com";

/// Two keys: making one takes a while, so all tests share them.
static KEYS: OnceLock<[RsaPrivateKey; 2]> = OnceLock::new();

/// See the module.
#[derive(Clone)]
pub(crate) struct TestIssuer {
    address: SocketAddr,
    served: Arc<Served>,
}

struct Served {
    page: Mutex<Option<String>>,
    fetches: AtomicUsize,
    /// Answers wait while this is true.
    held: watch::Sender<bool>,
}

/// Which of the keys signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    First,
    Second,
}

/// A token that is being written.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) header: Value,
    pub(crate) claims: Value,
    pub(crate) by: By,
}

// === impl TestIssuer ===

impl TestIssuer {
    /// An issuer with its first key.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(here()).await.unwrap();
        let issuer = Self {
            address: listener.local_addr().unwrap(),
            served: Arc::new(Served {
                page: Mutex::new(None),
                fetches: AtomicUsize::new(0),
                held: watch::Sender::new(false),
            }),
        };
        issuer.shows(&[jwk(By::First)]);
        let pages = axum::Router::new()
            .route("/keys", get(page))
            .with_state(Arc::clone(&issuer.served));
        tokio::spawn(async move { axum::serve(listener, pages).await });
        issuer
    }

    pub(crate) fn name(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Has these keys from now on.
    pub(crate) fn shows(&self, keys: &[Value]) {
        self.serves(&json!({ "keys": keys }).to_string());
    }

    /// Answers with this text from now on.
    pub(crate) fn serves(&self, page: &str) {
        *self.served.page.lock().unwrap() = Some(page.into());
    }

    /// Answers with 500 from now on.
    pub(crate) fn is_down(&self) {
        *self.served.page.lock().unwrap() = None;
    }

    /// Keeps everybody waiting, until it is called with `false`.
    pub(crate) fn hold(&self, hold: bool) {
        self.served.held.send_replace(hold);
    }

    /// How often its keys were asked for.
    pub(crate) fn fetches(&self) -> usize {
        self.served.fetches.load(Ordering::SeqCst)
    }

    /// Which tokens a route takes that trusts it.
    pub(crate) fn rule(&self) -> TokenRule {
        let url = format!("{}/keys", self.name()).parse().unwrap();
        TokenRule {
            issuer: Issuer::named(self.name(), url),
            audiences: vec![AUDIENCE.into()],
            emails: vec![EMAIL.into()],
            algorithms: vec![Algorithm::Rs256],
            forwarded: false,
        }
    }

    /// A gate whose route takes tasks with its tokens.
    pub(crate) async fn bed(&self) -> Bed {
        self.bed_with(|_, _| {}).await
    }

    /// The same with another route and rule.
    pub(crate) async fn bed_with(&self, change: impl FnOnce(&mut Route, &mut TokenRule)) -> Bed {
        self.bed_of(|settings, rule| change(&mut settings.routes[0], rule))
            .await
    }

    /// The same with other settings.
    pub(crate) async fn bed_of(&self, change: impl FnOnce(&mut Settings, &mut TokenRule)) -> Bed {
        let mut rule = self.rule();
        Bed::with(|settings| {
            settings.routes[0].sources = vec![Source::CloudTasks];
            change(settings, &mut rule);
            settings.routes[0].verify = Verify::Token(rule);
        })
        .await
    }

    /// A token that is good, and can be made worse.
    pub(crate) fn draft(&self) -> Draft {
        let now = super::now();
        Draft {
            header: json!({"alg": "RS256", "kid": id(By::First), "typ": "JWT"}),
            claims: json!({
                "iss": self.name(), "aud": AUDIENCE, "sub": "1234567890", "azp": "1234567890",
                "email": EMAIL, "email_verified": true, "iat": now, "exp": now + 3600,
            }),
            by: By::First,
        }
    }

    /// A good token.
    pub(crate) fn token(&self) -> String {
        self.draft().token()
    }

    /// A task with a good token.
    pub(crate) fn task(&self, name: &str) -> Ask {
        with(Sender::Task.sends(name, "{}"), &self.token())
    }
}

async fn page(State(served): State<Arc<Served>>) -> Response {
    served.fetches.fetch_add(1, Ordering::SeqCst);
    let mut held = served.held.subscribe();
    drop(held.wait_for(|held| !held).await);
    let page = served.page.lock().unwrap().clone();
    match page {
        Some(page) => ([(header::CACHE_CONTROL, "public, max-age=0")], page).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A request with this token.
pub(crate) fn with(ask: Ask, token: &str) -> Ask {
    ask.header("Authorization", &format!("Bearer {token}"))
}

// === impl Draft ===

impl Draft {
    pub(crate) fn header(mut self, name: &str, value: Value) -> Self {
        self.header[name] = value;
        self
    }

    pub(crate) fn claim(mut self, name: &str, value: Value) -> Self {
        self.claims[name] = value;
        self
    }

    pub(crate) fn without_header(mut self, name: &str) -> Self {
        self.header.as_object_mut().unwrap().remove(name);
        self
    }

    pub(crate) fn without_claim(mut self, name: &str) -> Self {
        self.claims.as_object_mut().unwrap().remove(name);
        self
    }

    pub(crate) fn by(self, by: By) -> Self {
        Self { by, ..self }
    }

    pub(crate) fn token(&self) -> String {
        signed(
            &self.header.to_string(),
            &encode(self.claims.to_string()),
            self.by,
        )
    }
}

/// This header and these claims, of which the latter are encoded already, signed.
pub(crate) fn signed(header: &str, claims: &str, by: By) -> String {
    let signed = format!("{}.{claims}", encode(header));
    let key = SigningKey::<Sha256>::new(private(by).clone());
    let signature = key.sign(signed.as_bytes()).to_bytes();
    format!("{signed}.{}", encode(signature))
}

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn private(by: By) -> &'static RsaPrivateKey {
    let keys = KEYS.get_or_init(|| [(); 2].map(|()| RsaPrivateKey::new(&mut OsRng, 2048).unwrap()));
    match by {
        By::First => &keys[0],
        By::Second => &keys[1],
    }
}

pub(crate) const fn id(by: By) -> &'static str {
    match by {
        By::First => "key-1",
        By::Second => "key-2",
    }
}

/// The public half of a key.
pub(crate) fn jwk(by: By) -> Value {
    let public = private(by).to_public_key();
    let (n, e) = (public.n().to_bytes_be(), public.e().to_bytes_be());
    json!({
        "kty": "RSA", "use": "sig", "alg": "RS256", "kid": id(by), "n": encode(n), "e": encode(e),
    })
}

/// The modulus, which everybody knows.
pub(crate) fn public_bytes(by: By) -> Vec<u8> {
    private(by).to_public_key().n().to_bytes_be()
}

/// A key on P-256: its public half, and how it signs a header and claims.
pub(crate) fn p256(id: &str) -> (Value, impl Fn(&Draft) -> String) {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random);
    let pair = pair.unwrap();
    let point = pair.public_key().as_ref().to_vec();
    let jwk = json!({
        "kty": "EC", "crv": "P-256", "kid": id, "x": encode(&point[1..33]), "y": encode(&point[33..]),
    });
    let sign = move |draft: &Draft| {
        let (header, claims) = (draft.header.to_string(), draft.claims.to_string());
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = pair.sign(&random, signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(signature))
    };
    (jwk, sign)
}
