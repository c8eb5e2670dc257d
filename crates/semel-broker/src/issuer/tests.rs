use super::*;
use crate::context::Context;
use axum::body::Body;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Request;
use http_body_util::BodyExt;
use rsa::pkcs1v15::{Signature, VerifyingKey};
use rsa::pkcs8::DecodePublicKey;
use rsa::signature::Verifier;
use rsa::{BigUint, RsaPublicKey};
use serde_json::Value;
use tower::ServiceExt;

const EMAIL: &str = "caller@project.iam.gserviceaccount.com";

fn decode(part: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(part).unwrap()
}

/// The header and the claims of a token, and whether this key signed it.
fn opened(token: &str, key: &RsaPublicKey) -> (Value, Value, bool) {
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, claims) = signed.split_once('.').unwrap();
    let signature = Signature::try_from(&*decode(signature)).unwrap();
    let verified = VerifyingKey::<Sha256>::new(key.clone()).verify(signed.as_bytes(), &signature);
    let json = |part| serde_json::from_slice(&decode(part)).unwrap();
    (json(header), json(claims), verified.is_ok())
}

async fn get(context: &Arc<Context>, path: &str) -> Value {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = routes(Arc::clone(context)).oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn a_token_verifies_with_what_the_issuer_shows() {
    let context = Context::in_test(Storage::in_memory(), &[]);
    let token = context.issuer.token(EMAIL, "https://a/b?c").await.unwrap();
    let about = get(&context, "/.well-known/openid-configuration").await;
    let base = about["issuer"].as_str().unwrap();
    let jwks_uri = about["jwks_uri"].as_str().unwrap();
    let jwks = get(&context, jwks_uri.strip_prefix(base).unwrap()).await;
    let jwk = &jwks["keys"][0];
    let number = |name: &str| BigUint::from_bytes_be(&decode(jwk[name].as_str().unwrap()));
    let key = RsaPublicKey::new(number("n"), number("e")).unwrap();
    let (header, claims, verified) = opened(&token, &key);
    assert!(verified);
    assert_eq!(header["alg"], "RS256");
    assert_eq!(header["typ"], "JWT");
    assert_eq!(header["kid"], jwk["kid"]);
    assert_eq!(claims["iss"], base);
    assert_eq!(claims["aud"], "https://a/b?c");
    assert_eq!(claims["email"], EMAIL);
    assert_eq!(claims["email_verified"], true);
    assert_eq!(claims["azp"], claims["sub"]);
    let sub = claims["sub"].as_str().unwrap();
    assert!(sub.len() == 21 && sub.bytes().all(|byte| byte.is_ascii_digit()));
    let span = claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap();
    assert_eq!(span, 3600);

    let pems = get(&context, "/oauth2/v1/certs").await;
    let pem = pems[header["kid"].as_str().unwrap()].as_str().unwrap();
    assert_eq!(RsaPublicKey::from_public_key_pem(pem).unwrap(), key);

    let mut forged = token;
    forged.replace_range(40..41, if &forged[40..41] == "A" { "B" } else { "A" });
    let (signed, signature) = forged.rsplit_once('.').unwrap();
    let signature = Signature::try_from(&*decode(signature)).unwrap();
    let verifying = VerifyingKey::<Sha256>::new(key);
    assert!(verifying.verify(signed.as_bytes(), &signature).is_err());
}

#[tokio::test]
async fn the_key_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut keys = Vec::new();
    for _ in 0..2 {
        let storage = Storage::open(directory.path()).unwrap();
        let clock = Clock::start(Duration::ZERO);
        let issuer = Issuer::new(clock, storage, "http://127.0.0.1:1".into());
        keys.push(issuer.key().await.unwrap().as_jwks());
    }
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn a_clock_put_forward_does_not_make_tokens_of_the_future() {
    let context = Context::in_test(Storage::in_memory(), &[]);
    let day = Duration::from_secs(24 * 3600);
    context.advance(day).await.unwrap();
    let token = context.issuer.token(EMAIL, "a").await.unwrap();
    let claims: Value = serde_json::from_slice(&decode(token.split('.').nth(1).unwrap())).unwrap();
    let iat = claims["iat"].as_i64().unwrap();
    let ahead = context.clock.now().timestamp().seconds - iat;
    assert!((86_400..86_460).contains(&ahead), "{ahead}");
}

#[tokio::test]
async fn a_token_is_used_again_until_it_is_nearly_over() {
    let context = Context::in_test(Storage::in_memory(), &[]);
    let issuer = &context.issuer;
    let first = issuer.token(EMAIL, "a").await.unwrap();
    assert_eq!(issuer.token(EMAIL, "a").await.unwrap(), first);
    assert_ne!(issuer.token(EMAIL, "b").await.unwrap(), first);
    assert_ne!(issuer.token("other@x", "a").await.unwrap(), first);
    let holder = Holder {
        email: EMAIL.into(),
        audience: "a".into(),
    };
    let now = context.clock.wall();
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let later = |by| issuer.kept_for(&holder, now.plus(by)).is_some();
    assert!(later(minutes(54)));
    assert!(!later(minutes(55)));
}

#[test]
fn no_more_tokens_are_kept_than_there_is_room_for() {
    let clock = Clock::start(Duration::ZERO);
    let issuer = Issuer::new(clock, Storage::in_memory(), String::new());
    for number in 0..3 * KEPT_MAX {
        let holder = Holder {
            email: EMAIL.into(),
            audience: number.to_string(),
        };
        issuer.keep(holder, "", Time(0));
        assert!(issuer.kept.lock().unwrap().len() <= KEPT_MAX);
    }
}
