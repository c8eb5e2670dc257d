//! Against a token server on this machine, which plays Google's three.

use super::credentials::{Account, UserSecrets, from_file, from_metadata};
use super::*;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::{Json, Router};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// What was asked of it, and how long its tokens last.
#[derive(Debug, Default)]
struct Google {
    asked: Mutex<Vec<(HeaderMap, String)>>,
    tokens: AtomicU64,
    lasts: AtomicU64,
    refuses: Mutex<Option<(StatusCode, Value)>>,
    /// While somebody has it, nobody is answered.
    held: tokio::sync::Mutex<()>,
}

async fn answer(
    State(google): State<Arc<Google>>,
    headers: HeaderMap,
    body: String,
) -> axum::response::Response {
    google.asked.lock().unwrap().push((headers, body));
    drop(google.held.lock().await);
    if let Some((status, why)) = google.refuses.lock().unwrap().clone() {
        return (status, Json(why)).into_response();
    }
    let number = google.tokens.fetch_add(1, Ordering::SeqCst);
    let lasts = google.lasts.load(Ordering::SeqCst);
    Json(json!({"access_token": format!("token-{number}"), "expires_in": lasts, "token_type": "Bearer"}))
        .into_response()
}

impl Google {
    async fn start(lasts: u64) -> (Arc<Self>, String) {
        let google = Arc::new(Self::default());
        google.lasts.store(lasts, Ordering::SeqCst);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&google));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (google, address)
    }

    fn last(&self) -> (HeaderMap, String) {
        self.asked.lock().unwrap().last().unwrap().clone()
    }
}

fn file(dir: &TempDir, content: &Value) -> PathBuf {
    let path = dir.path().join("credentials.json");
    std::fs::write(&path, content.to_string()).unwrap();
    path
}

fn key_file(dir: &TempDir) -> String {
    dir.path().join("key.pem").display().to_string()
}

fn openssl(words: &[&str]) {
    testbed::run(Command::new("openssl").args(words)).unwrap();
}

/// Google checks it with the public key that it kept.
fn is_signed(dir: &TempDir, text: &str, signature: &[u8]) {
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("text"), text).unwrap();
    std::fs::write(path("signature"), signature).unwrap();
    let public = path("public.pem");
    openssl(&["pkey", "-in", &key_file(dir), "-pubout", "-out", &public]);
    let (signature, text) = (path("signature"), path("text"));
    openssl(&[
        "dgst",
        "-sha256",
        "-verify",
        &public,
        "-signature",
        &signature,
        &text,
    ]);
}

fn service_file(dir: &TempDir, token_uri: &str) -> PathBuf {
    service_file_with(dir, token_uri, &json!("kid-1"))
}

fn service_file_with(dir: &TempDir, token_uri: &str, key_id: &Value) -> PathBuf {
    let key = key_file(dir);
    openssl(&["genrsa", "-out", &key, "2048"]);
    let key = std::fs::read_to_string(key).unwrap();
    file(
        dir,
        &json!({
            "type": "service_account", "client_email": "gate@shop.iam.gserviceaccount.com",
            "private_key": key, "private_key_id": key_id, "token_uri": token_uri,
        }),
    )
}

#[tokio::test]
async fn service_account_signs_for_its_token() {
    let (google, address) = Google::start(3_600).await;
    let dir = TempDir::new().unwrap();
    let uri = format!("http://{address}/token");
    let tokens = Tokens::new(from_file(&service_file(&dir, &uri)).unwrap()).unwrap();
    assert_eq!(tokens.current().await.unwrap().bearer, "Bearer token-0");
    let (_, body) = google.last();
    assert!(body.starts_with(
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant%2Dtype%3Ajwt%2Dbearer&assertion="
    ));
    let assertion = body
        .rsplit('=')
        .next()
        .unwrap()
        .replace("%2E", ".")
        .replace("%2D", "-")
        .replace("%5F", "_");
    let parts: Vec<_> = assertion.split('.').collect();
    let [header, claims, signature] = parts[..] else {
        panic!("{assertion}");
    };
    let decoded = |part| BASE64_URL_SAFE_NO_PAD.decode(part).unwrap();
    let header: Value = serde_json::from_slice(&decoded(header)).unwrap();
    assert_eq!(
        header,
        json!({"alg": "RS256", "typ": "JWT", "kid": "kid-1"})
    );
    let claims: Value = serde_json::from_slice(&decoded(claims)).unwrap();
    assert_eq!(claims["iss"], "gate@shop.iam.gserviceaccount.com");
    assert_eq!(claims["aud"], uri.as_str());
    let (text, _) = assertion.rsplit_once('.').unwrap();
    is_signed(&dir, text, &decoded(signature));
}

#[tokio::test]
async fn key_without_an_id_is_named_by_none() {
    let (google, address) = Google::start(3_600).await;
    let dir = TempDir::new().unwrap();
    let uri = format!("http://{address}/token");
    let file = service_file_with(&dir, &uri, &Value::Null);
    let tokens = Tokens::new(from_file(&file).unwrap()).unwrap();
    drop(tokens.current().await.unwrap());
    let (_, body) = google.last();
    let header = BASE64_URL_SAFE_NO_PAD.encode(json!({"alg": "RS256", "typ": "JWT"}).to_string());
    assert!(body.contains(&format!("assertion={header}")), "{body}");
}

#[test]
fn token_is_asked_for_by_tls_or_on_this_machine() {
    let dir = TempDir::new().unwrap();
    for uri in [
        "http://10.0.0.1/token",
        "http://localhost.evil.example",
        "ftp://localhost",
        "token",
    ] {
        let error = from_file(&service_file(&dir, uri)).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(uri) && text.contains("is not https://"),
            "{text}"
        );
    }
    for uri in [
        "https://oauth2.googleapis.com/token",
        "http://localhost:1/",
        "http://[::1]:1/",
    ] {
        drop(from_file(&service_file(&dir, uri)).unwrap());
    }
}

#[tokio::test]
async fn token_is_used_until_it_is_old_and_asked_for_once() {
    let (google, address) = Google::start(3_600).await;
    let tokens = Arc::new(Tokens::new(from_metadata(Some(&address)).unwrap()).unwrap());
    let asking = (0..8).map(|_| {
        let tokens = Arc::clone(&tokens);
        tokio::spawn(async move { tokens.current().await.unwrap().bearer })
    });
    for asked in asking.collect::<Vec<_>>() {
        assert_eq!(asked.await.unwrap(), "Bearer token-0");
    }
    let (headers, _) = google.last();
    assert_eq!(headers["metadata-flavor"], "Google");
    let first = tokens.current().await.unwrap();
    tokens.forget(&first);
    assert_eq!(tokens.current().await.unwrap().bearer, "Bearer token-1");
    // Whoever was refused with an older one does not cost the others theirs.
    tokens.forget(&first);
    let second = tokens.current().await.unwrap();
    assert_eq!(second.bearer, "Bearer token-1");
    // One that is as good as over is not kept.
    google.lasts.store(TRAVEL.as_secs(), Ordering::SeqCst);
    tokens.forget(&second);
    assert_eq!(tokens.current().await.unwrap().bearer, "Bearer token-2");
    assert_eq!(tokens.current().await.unwrap().bearer, "Bearer token-3");
}

fn state(tokens: &Tokens) -> MutexGuard<'_, super::State> {
    tokens.0.as_ref().unwrap().lock()
}

#[tokio::test]
async fn token_that_is_still_good_is_used_while_no_other_can_be_had() {
    let (google, address) = Google::start(3_600).await;
    let tokens = Tokens::new(from_metadata(Some(&address)).unwrap()).unwrap();
    let first = tokens.current().await.unwrap().bearer;
    state(&tokens).current.as_mut().unwrap().fresh_until = Instant::now();
    let asked = || google.asked.lock().unwrap().len();
    let held = google.held.lock().await;
    // Another is asked for, once, and nobody waits for it.
    for _ in 0..3 {
        assert_eq!(tokens.current().await.unwrap().bearer, first);
    }
    while asked() < 2 {
        tokio::task::yield_now().await;
    }
    *google.refuses.lock().unwrap() = Some((StatusCode::BAD_REQUEST, json!({})));
    drop(held);
    // For a while after a refusal, nobody asks.
    while state(&tokens).asked.is_some() {
        tokio::task::yield_now().await;
    }
    let again = google.held.lock().await;
    let (rest, until) = state(&tokens).rest.unwrap();
    assert_eq!(rest, REST_MIN);
    state(&tokens).rest = Some((rest, until + MARGIN_MAX));
    assert_eq!(tokens.current().await.unwrap().bearer, first);
    assert!(state(&tokens).asked.is_none());
    state(&tokens).rest = Some((rest, Instant::now()));
    while asked() < 3 {
        assert_eq!(tokens.current().await.unwrap().bearer, first);
        tokio::task::yield_now().await;
    }
    drop(again);
    while state(&tokens).asked.is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(state(&tokens).rest.unwrap().0, REST_MIN * 2);
}

#[tokio::test]
async fn token_that_is_said_to_last_for_ever_is_kept_for_a_day() {
    let (_google, address) = Google::start(u64::MAX).await;
    let tokens = Tokens::new(from_metadata(Some(&address)).unwrap()).unwrap();
    assert_eq!(tokens.current().await.unwrap().bearer, "Bearer token-0");
    let good_until = state(&tokens).current.as_ref().unwrap().good_until;
    assert!(good_until <= Instant::now() + LASTS_MAX);
}

#[tokio::test]
async fn token_of_a_short_life_is_fresh_for_most_of_it() {
    let (google, address) = Google::start(100).await;
    let tokens = Tokens::new(from_metadata(Some(&address)).unwrap()).unwrap();
    let first = tokens.current().await.unwrap().bearer;
    assert_eq!(tokens.current().await.unwrap().bearer, first);
    assert!(state(&tokens).asked.is_none());
    assert_eq!(google.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn who_asks_for_tokens_and_dies_is_replaced() {
    let (_google, address) = Google::start(3_600).await;
    let tokens = Tokens::new(from_metadata(Some(&address)).unwrap()).unwrap();
    let (dead, asked) = watch::channel(None);
    drop(dead);
    state(&tokens).asked = Some(asked);
    assert_eq!(tokens.current().await.unwrap().bearer, "Bearer token-0");
}

#[tokio::test]
async fn everybody_who_waits_hears_the_one_answer() {
    let (google, address) = Google::start(3_600).await;
    let tokens = Arc::new(Tokens::new(from_metadata(Some(&address)).unwrap()).unwrap());
    *google.refuses.lock().unwrap() = Some((StatusCode::SERVICE_UNAVAILABLE, json!({})));
    let held = google.held.lock().await;
    let asking = (0..8).map(|_| {
        let tokens = Arc::clone(&tokens);
        tokio::spawn(async move { tokens.current().await.map(|it| it.bearer) })
    });
    let asking: Vec<_> = asking.collect();
    // By the time the server has heard, each of them has asked.
    while google.asked.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(held);
    for asked in asking {
        let error = asked.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }
    assert_eq!(google.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn authorized_user_hands_in_its_refresh_token() {
    let (google, address) = Google::start(3_600).await;
    let account = Account::User {
        secrets: UserSecrets {
            client_id: "id".into(),
            client_secret: "s&cret".into(),
            refresh_token: "1//refresh".into(),
        },
        quota_project: Some("shop-prod".into()),
        token_uri: format!("http://{address}/token"),
    };
    let tokens = Tokens::new(TokenSource::Account(account)).unwrap();
    assert!(!format!("{tokens:?}").contains("s&cret"));
    let token = tokens.current().await.unwrap();
    assert_eq!(token.bearer, "Bearer token-0");
    assert_eq!(token.quota_project.unwrap(), "shop-prod");
    let (_, body) = google.last();
    assert_eq!(
        body,
        "grant_type=refresh%5Ftoken&client_id=id&client_secret=s%26cret&refresh_token=1%2F%2Frefresh"
    );
}

#[tokio::test]
async fn refused_token_says_why_and_unreachable_one_may_be_tried_again() {
    let (google, address) = Google::start(3_600).await;
    let tokens = Tokens::new(from_metadata(Some(&address)).unwrap()).unwrap();
    let why = json!({"error": "invalid_grant", "error_description": "Token has been expired or revoked."});
    *google.refuses.lock().unwrap() = Some((StatusCode::BAD_REQUEST, why));
    let error = tokens.current().await.unwrap_err();
    assert!(matches!(error, Error::Denied(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("invalid_grant Token has been expired"),
        "{error}"
    );
    for status in [
        StatusCode::BAD_GATEWAY,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_MANY_REQUESTS,
    ] {
        *google.refuses.lock().unwrap() = Some((status, json!({})));
        let error = tokens.current().await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }

    let port = testbed::free_port().unwrap();
    let nobody = Tokens::new(from_metadata(Some(&format!("127.0.0.1:{port}"))).unwrap()).unwrap();
    let error = nobody.current().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}

#[test]
fn other_kinds_of_credentials_are_refused_by_name() {
    let dir = TempDir::new().unwrap();
    for (content, says) in [
        (
            json!({"type": "external_account"}),
            "\"external_account\", which is not supported",
        ),
        (
            json!({"type": "impersonated_service_account"}),
            "\"impersonated_service_account\"",
        ),
        (
            json!({"type": "service_account"}),
            "client_email and private_key",
        ),
        (
            json!({"type": "authorized_user", "client_secret": "canary"}),
            "refresh_token",
        ),
        (
            json!({"installed": {"client_secret": "canary"}}),
            "it has no type",
        ),
        (
            json!({"type": "service_account", "client_email": "x", "private_key": "canary"}),
            "private_key that is no PEM",
        ),
    ] {
        let error = from_file(&file(&dir, &content)).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(says) && text.contains("credentials.json"),
            "{text}"
        );
        assert!(!text.contains("canary"), "{text}");
    }
    let missing = from_file(&dir.path().join("none.json")).unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");
}
