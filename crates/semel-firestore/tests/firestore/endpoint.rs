//! Another endpoint than Google's public one: TLS, the token, and whom to believe.

use crate::support::{google, settings};
use axum::http::StatusCode;
use semel::protocol::{Claim, Claimed, Held, State};
use semel::store::StoreExt;
use semel::{Error, Fingerprint, Key};
use semel_firestore::{FirestoreSettings, FirestoreStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use testbed::{Certificates, Google, Validity};

const HOUR: Duration = Duration::from_secs(3_600);

/// Far beyond the store's own deadline here, for a machine with other things to do.
const GUARD: Duration = Duration::from_secs(60);

/// What connecting says, which must be for good.
async fn refused(settings: FirestoreSettings) -> String {
    let error = FirestoreStore::connect(settings).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("nothing was sent, a retry is safe"), "{text}");
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_go_by_tls_with_a_token_and_the_database_that_they_are_for() {
    let Some(emulated) = settings() else { return };
    let emulator = emulated.emulator_host.clone();
    let (ca, google, mut settings) = google(emulator.as_deref());
    let project = emulated.project;
    settings.project = project.clone();
    let store = FirestoreStore::connect(settings).await.unwrap();
    assert!(store.place().contains("https://localhost:"));
    let claim = Claim::new(Key::from_bytes([1; 32]), Fingerprint::of(b"x"));
    let Claimed::Granted(lease) = store.claim(&claim).await.unwrap() else {
        panic!("not granted");
    };
    // A token that is refused is asked for again.
    google.revoke();
    let done = store.complete(&lease, &b"done"[..].into(), HOUR).await;
    assert_eq!(done, Ok(Held::Applied(State::Succeeded)));
    let calls = google.calls();
    let headers = |name: &str| {
        let all = calls.iter().map(|it| it.headers[name].to_str().unwrap());
        all.collect::<Vec<_>>()
    };
    let tokens = headers("authorization");
    assert_eq!(tokens.first(), Some(&"Bearer token-0"));
    assert_eq!(tokens.last(), Some(&"Bearer token-1"));
    let routed = format!("database=projects%2F{project}%2Fdatabases%2F(default)");
    for database in headers("x-goog-request-params") {
        assert_eq!(database, routed);
    }
    drop(ca);
}

/// Whoever grants tokens: not the first time, and from then on those that are good.
async fn hesitant_tokens() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(AtomicU32::new(0));
    let answer = move || async move {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => (StatusCode::SERVICE_UNAVAILABLE, ""),
            _ => (
                StatusCode::OK,
                r#"{"access_token":"token-0","expires_in":3600}"#,
            ),
        }
    };
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_that_cannot_be_had_is_asked_for_again_until_the_time_is_over() {
    let Some(emulated) = settings() else { return };
    let (_ca, _google, mut settings) = google(emulated.emulator_host.as_deref());
    settings.metadata_host = Some(hesitant_tokens().await);
    drop(FirestoreStore::connect(settings.clone()).await.unwrap());

    // Whoever does not answer at all.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    settings.metadata_host = Some(silent.local_addr().unwrap().to_string());
    settings.timeout = Duration::from_millis(300);
    let connecting = FirestoreStore::connect(settings);
    let error = tokio::time::timeout(GUARD, connecting).await.unwrap();
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    let text = error.to_string();
    for part in ["did not answer in time", "GOOGLE_APPLICATION_CREDENTIALS"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_requests_name_the_project_that_pays() {
    let Some(emulated) = settings() else { return };
    let (_ca, google, mut settings) = google(emulated.emulator_host.as_deref());
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("user.json");
    let user = r#"{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r",
                   "quota_project_id":"shop-prod","token_uri":"http://TOKENS/token"}"#;
    let user = user.replace("TOKENS", &google.metadata_host());
    std::fs::write(&file, user).unwrap();
    settings.credentials_file = Some(file);
    drop(FirestoreStore::connect(settings).await.unwrap());
    for call in google.calls() {
        assert_eq!(call.headers["x-goog-user-project"], "shop-prod");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_certificate_is_said_at_once() {
    let (ca, google, settings) = google(None);
    let stranger = Certificates::new().unwrap();
    let mut unknown = settings.clone();
    unknown.ssl_ca_certs = Some(stranger.root());
    let text = refused(unknown).await;
    assert!(
        text.contains("issued by none of the trusted roots: set ssl_ca_certs"),
        "{text}"
    );

    let mut system = settings.clone();
    system.ssl_ca_certs = None;
    let text = refused(system).await;
    assert!(
        text.contains("issued by none of the trusted roots"),
        "{text}"
    );

    let mut other = settings.clone();
    other.endpoint = Some(google.endpoint("127.0.0.1"));
    let text = refused(other).await;
    assert!(text.contains("is for another host (localhost)"), "{text}");

    // Who does not speak TLS: the metadata server.
    let mut plain = settings.clone();
    plain.endpoint = Some(format!("https://{}", google.metadata_host()));
    let text = refused(plain).await;
    assert!(text.contains("does not speak TLS on this port"), "{text}");
    assert_eq!(google.calls().len(), 0, "nobody was shown a token");
    drop(ca);
}

#[tokio::test]
async fn certificate_out_of_its_time_may_be_renewed_meanwhile() {
    let (ca, _google, mut settings) = google(None);
    let expired = ca.issue("google", "DNS:localhost", Validity::Expired);
    let expired = Google::start(&expired.unwrap(), None).unwrap();
    settings.endpoint = Some(expired.endpoint("localhost"));
    settings.timeout = Duration::from_millis(300);
    let error = FirestoreStore::connect(settings).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("has expired, at 2020-02-01"), "{text}");
    assert!(text.contains("a retry is safe"), "{text}");
}

#[test]
fn endpoint_without_tls_or_sense_is_refused_before_anything_is_dialled() {
    for (option, says) in [
        ("endpoint=http://10.0.0.1:8080", "has no TLS"),
        ("endpoint=10.0.0.1:443", "is not https://HOST[:PORT]"),
        ("endpoint=https://", "is not https://HOST[:PORT]"),
        ("endpoint=https://h/v1", "is not https://HOST[:PORT]"),
        ("endpoint=https://h?x=1", "is not https://HOST[:PORT]"),
        ("endpoint=https://h:port", "is not https://HOST[:PORT]"),
        ("endpoint=ftp://h", "is not https://HOST[:PORT]"),
        ("endpoint=https://u:canary@h", "has a user in it"),
        ("ssl_ca_certs=/no/ca.pem", "/no/ca.pem cannot be read"),
        ("endpoint", "endpoint=https://HOST"),
    ] {
        let url = format!("firestore://shop-prod?prefix=shop&{option}");
        let settings = FirestoreSettings::from_url(&url);
        let error = settings.and_then(|it| it.validate()).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(says) && text.contains("before you retry"),
            "{text}"
        );
        assert!(!text.contains("canary"), "{text}");
    }
    let good = FirestoreSettings::from_url("firestore://shop-prod?endpoint=https://h:8443/");
    let mut good = good.unwrap();
    assert_eq!(good.validate(), Ok(()));
    good.emulator_host = Some("127.0.0.1:8080".into());
    let both = good.validate().unwrap_err().to_string();
    assert!(both.contains("unset one of them"), "{both}");
}
