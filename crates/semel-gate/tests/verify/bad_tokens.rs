//! Tokens that are not believed, each refused before anything is kept.

use super::issuer::{
    AUDIENCE, By, Draft, EMAIL, TestIssuer, encode, id, jwk, p256, public_bytes, signed, with,
};
use super::refused;
use crate::support::{Ask, Sender};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE};
use ring::hmac;
use serde_json::{Value, json};

/// What is wrong, the reason that is told, and what is sent.
type Case = (String, &'static str, Ask);

#[tokio::test]
async fn each_bad_token_is_refused_and_leaves_nothing() {
    let issuer = TestIssuer::start().await;
    let bed = issuer.bed().await;
    let cases: Vec<Case> = [
        not_tokens(&issuer),
        algorithms(&issuer),
        headers(&issuer),
        signatures(&issuer),
        claims(&issuer),
        malformed_claims(&issuer),
        times(&issuer),
    ]
    .concat();
    assert!(cases.len() >= 60, "{}", cases.len());
    for (case, reason, ask) in cases {
        let answer = bed.ask(ask).await;
        refused(&bed, &answer, reason, &case).await;
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge, Some("Bearer"), "{case}");
    }
    bed.ask(issuer.task("good")).await.is(200);
    assert_eq!(bed.runs(), 1);
}

fn task() -> Ask {
    Sender::Task.sends("t1", "{}")
}

fn case(what: impl Into<String>, reason: &'static str, token: &str) -> Case {
    (what.into(), reason, with(task(), token))
}

fn not_tokens(issuer: &TestIssuer) -> Vec<Case> {
    let good = issuer.token();
    let parts: Vec<_> = good.split('.').collect();
    let (header, body, signature) = (parts[0], parts[1], parts[2]);
    let sent = |value: &str| task().header("Authorization", value);
    let twice = with(with(task(), &good), &good);
    vec![
        ("no header".into(), "token_missing", task()),
        ("basic".into(), "token_missing", sent("Basic YTpi")),
        ("no token".into(), "token_missing", sent("Bearer")),
        ("no scheme".into(), "token_missing", sent(&good)),
        ("two headers".into(), "token_repeated", twice),
        (
            "two tokens in one".into(),
            "token_malformed",
            sent(&format!("Bearer {good}, Bearer {good}")),
        ),
        (
            "two spaces".into(),
            "token_malformed",
            sent(&format!("Bearer  {good}")),
        ),
        case("not a token", "token_malformed", "opaque"),
        case("two parts", "token_malformed", &format!("{header}.{body}")),
        case(
            "four parts",
            "token_malformed",
            &format!("{good}.{signature}"),
        ),
        case(
            "five parts",
            "token_malformed",
            &format!("{header}.{body}.a.b.{signature}"),
        ),
        case("empty parts", "token_malformed", ".."),
        case(
            "a padded signature",
            "token_malformed",
            &format!("{good}=="),
        ),
        case(
            "padded claims",
            "token_malformed",
            &format!("{header}.{body}=.{signature}"),
        ),
        case(
            "padded claims that are signed",
            "token_malformed",
            &padded(issuer),
        ),
        case(
            "the other alphabet",
            "token_malformed",
            &other_alphabet(issuer),
        ),
        case(
            "a header that is not JSON",
            "token_malformed",
            &format!("{}.{body}.{signature}", encode("x")),
        ),
        case(
            "a header that is a list",
            "token_malformed",
            &format!("{}.{body}.{signature}", encode("[]")),
        ),
    ]
}

fn padded(issuer: &TestIssuer) -> String {
    let draft = issuer.draft().claim("pad", "x".into());
    let claims = URL_SAFE.encode(format!("{} ", draft.claims));
    assert!(claims.ends_with('=') || claims.len() % 4 == 0);
    signed(
        &draft.header.to_string(),
        &format!("{}=", claims.trim_end_matches('=')),
        By::First,
    )
}

fn other_alphabet(issuer: &TestIssuer) -> String {
    let draft = issuer.draft().claim("x", "???>>>~~~???>>>".into());
    let claims = STANDARD_NO_PAD.encode(draft.claims.to_string());
    assert!(claims.contains(['+', '/']), "{claims}");
    signed(&draft.header.to_string(), &claims, By::First)
}

fn algorithms(issuer: &TestIssuer) -> Vec<Case> {
    let named = |name: Value| issuer.draft().header("alg", name);
    let unsigned = |name: &str| {
        let draft = named(name.into());
        let (header, claims) = (draft.header.to_string(), draft.claims.to_string());
        format!("{}.{}.", encode(header), encode(claims))
    };
    let (_, sign) = p256(id(By::First));
    vec![
        case("none", "algorithm", &unsigned("none")),
        case("None", "algorithm", &unsigned("None")),
        case("nOnE", "algorithm", &unsigned("nOnE")),
        case("none, signed", "algorithm", &named("none".into()).token()),
        case(
            "HS256 by the public key",
            "algorithm",
            &by_public_key(&named("HS256".into())),
        ),
        case(
            "HS256 by the public key, said to be RS256",
            "signature",
            &by_public_key(&issuer.draft()),
        ),
        case("RS384", "algorithm", &named("RS384".into()).token()),
        case("PS256", "algorithm", &named("PS256".into()).token()),
        case("rs256", "algorithm", &named("rs256".into()).token()),
        case("ES256", "algorithm", &sign(&named("ES256".into()))),
        case(
            "ES256, said to be RS256",
            "signature",
            &sign(&issuer.draft()),
        ),
        case(
            "no algorithm",
            "algorithm",
            &issuer.draft().without_header("alg").token(),
        ),
        case(
            "an algorithm that is a list",
            "token_malformed",
            &named(json!(["RS256"])).token(),
        ),
        case(
            "an algorithm that is null",
            "token_malformed",
            &named(Value::Null).token(),
        ),
    ]
}

/// The old trick: what everybody knows as if it were a secret.
fn by_public_key(draft: &Draft) -> String {
    let (header, claims) = (draft.header.to_string(), draft.claims.to_string());
    let signed = format!("{}.{}", encode(header), encode(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, &public_bytes(By::First));
    format!("{signed}.{}", encode(hmac::sign(&key, signed.as_bytes())))
}

fn headers(issuer: &TestIssuer) -> Vec<Case> {
    let draft = || issuer.draft();
    let brings = |name: &str, value: Value| {
        let token = draft().header(name, value).by(By::Second).token();
        case(name, "header_member", &token)
    };
    let url = json!(format!("{}/keys", issuer.name()));
    let twice = r#"{"alg":"none","alg":"RS256","kid":"key-1"}"#;
    let claims = encode(draft().claims.to_string());
    vec![
        brings("jwk", jwk(By::Second)),
        brings("jku", url.clone()),
        brings("x5u", url),
        brings("x5c", json!(["MIIB"])),
        brings("crit", json!(["exp"])),
        brings("b64", json!(false)),
        brings("zip", json!("DEF")),
        case(
            "no key id",
            "key_unknown",
            &draft().without_header("kid").token(),
        ),
        case(
            "an empty key id",
            "key_unknown",
            &draft().header("kid", "".into()).token(),
        ),
        case(
            "a long key id",
            "key_unknown",
            &draft().header("kid", "k".repeat(257).into()).token(),
        ),
        case(
            "another key id",
            "key_unknown",
            &draft().header("kid", "key-9".into()).token(),
        ),
        case(
            "a key id that is a number",
            "token_malformed",
            &draft().header("kid", 1.into()).token(),
        ),
        case(
            "an access token",
            "token_malformed",
            &draft().header("typ", "at+jwt".into()).token(),
        ),
        case(
            "an algorithm twice",
            "token_malformed",
            &signed(twice, &claims, By::First),
        ),
    ]
}

fn signatures(issuer: &TestIssuer) -> Vec<Case> {
    let good = issuer.token();
    let (signed_part, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = signed_part.split_once('.').unwrap();
    let other = issuer.draft().claim("sub", "2".into()).claims.to_string();
    let cut = |length: usize| format!("{signed_part}.{}", &signature[..length]);
    vec![
        case(
            "another key's",
            "signature",
            &issuer.draft().by(By::Second).token(),
        ),
        case("none", "signature", &format!("{signed_part}.")),
        case("cut to a half", "signature", &cut(172)),
        case("some letters short", "signature", &cut(336)),
        case(
            "of zeros",
            "signature",
            &format!("{signed_part}.{}", encode([0_u8; 256])),
        ),
        case(
            "of other claims",
            "signature",
            &format!("{header}.{}.{signature}", encode(other)),
        ),
        case(
            "taken away, as by Cloud Run",
            "signature",
            &format!("{signed_part}.SIGNATURE_REMOVED_BY_GOOGLE"),
        ),
    ]
}

/// A token in which a claim is another one, or is missing.
fn claimed(issuer: &TestIssuer, claim: &str, reason: &'static str, value: Option<Value>) -> Case {
    let what = format!("{claim}: {value:?}");
    let draft = match value {
        Some(value) => issuer.draft().claim(claim, value),
        None => issuer.draft().without_claim(claim),
    };
    case(what, reason, &draft.token())
}

fn claims(issuer: &TestIssuer) -> Vec<Case> {
    let name = issuer.name();
    let claims = [
        ("iss", "claim", None),
        ("iss", "issuer", Some(json!("https://accounts.google.com"))),
        ("iss", "issuer", Some(json!(format!("{name}/")))),
        ("iss", "issuer", Some(json!(name.to_uppercase()))),
        ("iss", "claim", Some(json!([name]))),
        ("aud", "claim", None),
        ("aud", "audience", Some(json!("https://else.example"))),
        ("aud", "audience", Some(json!("https://gate.example/work"))),
        ("aud", "audience", Some(json!(format!("{AUDIENCE}/")))),
        ("aud", "claim", Some(json!([AUDIENCE]))),
        ("aud", "claim", Some(json!([AUDIENCE, "x"]))),
        ("aud", "claim", Some(Value::Null)),
        ("email", "claim", None),
        ("email", "email", Some(json!("mallory@shop.example"))),
        ("email", "email", Some(json!(EMAIL.to_uppercase()))),
        ("email", "claim", Some(json!([EMAIL]))),
        ("email_verified", "email_unverified", None),
        ("email_verified", "email_unverified", Some(json!(false))),
        ("email_verified", "email_unverified", Some(json!("true"))),
        ("email_verified", "email_unverified", Some(json!(1))),
    ];
    let claims = claims.into_iter();
    claims
        .map(|(claim, reason, value)| claimed(issuer, claim, reason, value))
        .collect()
}

/// Claims that are not one JSON object, or can be read in two ways.
fn malformed_claims(issuer: &TestIssuer) -> Vec<Case> {
    let header = issuer.draft().header.to_string();
    let text = issuer.draft().claims.to_string();
    let twice = text.replacen('{', r#"{"email":"mallory@example.com","#, 1);
    let escaped = text.replacen('{', r#"{"\u0061ud":"https://else.example","#, 1);
    [twice, escaped, format!("{text} {{}}"), format!("[{text}]")]
        .into_iter()
        .map(|text| {
            let token = signed(&header, &encode(&text), By::First);
            case(text, "token_malformed", &token)
        })
        .collect()
}

fn times(issuer: &TestIssuer) -> Vec<Case> {
    let now = issuer.draft().claims["iat"].as_i64().unwrap();
    let times = [
        ("exp", "expired", Some(json!(now - 61))),
        ("exp", "expired", Some(json!(0))),
        ("exp", "expired", Some(json!(-1))),
        ("exp", "claim", Some(json!((now + 3600).to_string()))),
        ("exp", "claim", Some(Value::Null)),
        ("exp", "claim", None),
        ("nbf", "not_yet_valid", Some(json!(now + 120))),
        ("nbf", "claim", Some(json!("now"))),
        ("iat", "not_yet_valid", Some(json!(now + 120))),
        ("iat", "claim", None),
    ];
    let times = times.into_iter();
    times
        .map(|(claim, reason, value)| claimed(issuer, claim, reason, value))
        .collect()
}
