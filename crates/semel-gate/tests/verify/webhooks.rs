//! Signed webhooks: what each sender signs, and what is refused. The senders' own packages sign in the tests of the
//! command.

use super::{now, refused};
use crate::support::{Ask, Bed, keyed_by};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use semel_gate::settings::{Secret, SignatureRule, Source, TOLERANCE_DEFAULT, Verify, Webhook};
use serde_json::json;

const NEW: &str = "whsec_bmV3IHNlY3JldCBuZXcgc2VjcmV0";
const OLD: &str = "whsec_b2xkIHNlY3JldCBvbGQgc2VjcmV0";
const OTHER: &str = "whsec_bm90IGEgc2VjcmV0IG5vdCBhIHNlY3JldA==";

const BODY: &str = r#"{"id":"evt_1","type":"paid"}"#;

/// A gate with a route for this sender, which knows two secrets.
async fn bed(sender: Webhook) -> Bed {
    Bed::route(|route| {
        route.sources = vec![Source::Webhook(sender)];
        route.caller = None;
        route.final_statuses = vec![422..=422];
        keyed_by(route, sender.word());
        route.verify = Verify::Signature(SignatureRule {
            sender,
            secrets: vec![Secret(NEW.into()), Secret(OLD.into())],
            tolerance: TOLERANCE_DEFAULT,
        });
    })
    .await
}

/// A signature over this text.
fn mac(sender: Webhook, secret: &str, text: &str) -> Vec<u8> {
    let key = match sender {
        Webhook::Stripe | Webhook::GitHub | Webhook::Shopify => secret.as_bytes().to_vec(),
        Webhook::Standard => STANDARD.decode(&secret["whsec_".len()..]).unwrap(),
    };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

/// A delivery under this id, signed at this time with these secrets, of which each makes a signature.
fn signed(sender: Webhook, id: &str, body: &str, secrets: &[&str], time: i64) -> Ask {
    let ask = Ask::post("/work").body(body.to_owned());
    let macs = |text: &str| -> Vec<_> { secrets.iter().map(|it| mac(sender, it, text)).collect() };
    match sender {
        Webhook::Stripe => {
            let macs = macs(&format!("{time}.{body}"));
            let macs: Vec<_> = macs
                .iter()
                .map(|mac| format!(",v1={}", hex::encode(mac)))
                .collect();
            ask.header("Stripe-Signature", &format!("t={time}{}", macs.concat()))
        }
        Webhook::GitHub => ask.header("X-GitHub-Delivery", id).header(
            "X-Hub-Signature-256",
            &format!("sha256={}", hex::encode(&macs(body)[0])),
        ),
        Webhook::Shopify => ask
            .header("X-Shopify-Webhook-Id", id)
            .header("X-Shopify-Hmac-SHA256", &STANDARD.encode(&macs(body)[0])),
        Webhook::Standard => {
            let macs = macs(&format!("{id}.{time}.{body}"));
            let macs: Vec<_> = macs
                .iter()
                .map(|mac| format!("v1,{}", STANDARD.encode(mac)))
                .collect();
            ask.header("webhook-id", id)
                .header("webhook-timestamp", &time.to_string())
                .header("webhook-signature", &macs.join(" "))
        }
    }
}

const fn signature_header(sender: Webhook) -> &'static str {
    match sender {
        Webhook::Stripe => "Stripe-Signature",
        Webhook::GitHub => "X-Hub-Signature-256",
        Webhook::Shopify => "X-Shopify-Hmac-SHA256",
        Webhook::Standard => "webhook-signature",
    }
}

fn header<'a>(ask: &'a Ask, name: &str) -> &'a str {
    let found = ask.headers.iter().find(|(other, _)| other == name);
    &found.unwrap().1
}

#[tokio::test]
async fn a_signed_event_takes_effect_once() {
    for sender in Webhook::ALL {
        let bed = bed(sender).await;
        bed.ask(signed(sender, "evt_1", BODY, &[NEW], now()))
            .await
            .is(200);
        let seen = bed.handler.arrived().await;
        assert_eq!(seen.header("semel-source"), Some(sender.word()));
        assert_eq!(seen.body, BODY.as_bytes());
        // The handler may check it again.
        assert!(
            seen.header(&signature_header(sender).to_ascii_lowercase())
                .is_some()
        );
        // Signed again, with the other secret, as a retry is while they are replaced.
        let retry = signed(sender, "evt_1", BODY, &[OLD], now() + 1);
        bed.ask(retry).await.is_replay(200);
        assert_eq!(bed.runs(), 1, "{sender}");
        let next = BODY.replace("evt_1", "evt_2");
        bed.ask(signed(sender, "evt_2", &next, &[NEW], now()))
            .await
            .is(200);
        assert_eq!(bed.runs(), 2, "{sender}");
    }
}

#[tokio::test]
async fn a_forged_body_binds_no_key() {
    for sender in Webhook::ALL {
        let bed = bed(sender).await;
        let forged = BODY.replace("paid", "paix");
        let good = signed(sender, "evt_1", BODY, &[NEW], now());
        let name = signature_header(sender);
        let asks = [
            (
                "another body",
                good.clone().body(forged.clone()),
                "signature",
            ),
            (
                "a space more",
                good.clone().body(format!("{BODY} ")),
                "signature",
            ),
            ("no body", good.clone().body(""), "signature"),
            (
                "another secret",
                signed(sender, "evt_1", &forged, &[OTHER], now()),
                "signature",
            ),
            (
                "no signature",
                good.clone().without(name),
                "signature_missing",
            ),
            (
                "two signatures",
                good.clone().header(name, header(&good, name)),
                "signature_malformed",
            ),
        ];
        for (case, ask, reason) in asks {
            let answer = bed.ask(ask).await;
            refused(&bed, &answer, reason, &format!("{sender}: {case}")).await;
            assert_eq!(answer.header("www-authenticate"), None);
        }
        // The real one is new work.
        bed.ask(good).await.is(200);
        assert_eq!(bed.runs(), 1, "{sender}");
    }
}

#[tokio::test]
async fn malformed_signatures_are_refused() {
    let right = |sender| hex::encode(mac(sender, NEW, BODY));
    let time = now();
    let stripe = hex::encode(mac(Webhook::Stripe, NEW, &format!("{time}.{BODY}")));
    let of_standard = STANDARD.encode(mac(Webhook::Standard, NEW, &format!("evt_1.{time}.{BODY}")));
    let many = format!("t={time}{}", format!(",v1={}", "00".repeat(32)).repeat(33));
    let cases = [
        (
            Webhook::Stripe,
            format!("v1={stripe}"),
            "signature_malformed",
        ),
        (Webhook::Stripe, format!("t={time}"), "signature"),
        (
            Webhook::Stripe,
            format!("t={time},v0={stripe}"),
            "signature",
        ),
        (
            Webhook::Stripe,
            format!("t={time},t={time},v1={stripe}"),
            "signature_malformed",
        ),
        (
            Webhook::Stripe,
            format!("t=+{time},v1={stripe}"),
            "signature_malformed",
        ),
        (
            Webhook::Stripe,
            format!("t=,v1={stripe}"),
            "signature_malformed",
        ),
        (
            Webhook::Stripe,
            format!("t={time},v1=xyz"),
            "signature_malformed",
        ),
        (
            Webhook::Stripe,
            format!("t={time},v1={}", &stripe[..62]),
            "signature",
        ),
        (Webhook::Stripe, "nothing".into(), "signature_malformed"),
        (Webhook::Stripe, many, "signature_malformed"),
        (
            Webhook::GitHub,
            right(Webhook::GitHub),
            "signature_malformed",
        ),
        (
            Webhook::GitHub,
            format!("sha1={}", right(Webhook::GitHub)),
            "signature_malformed",
        ),
        (Webhook::GitHub, "sha256=".into(), "signature"),
        (Webhook::Shopify, right(Webhook::Shopify), "signature"),
        (Webhook::Shopify, "=".into(), "signature_malformed"),
        (Webhook::Standard, of_standard.clone(), "signature"),
        (Webhook::Standard, format!("v1a,{of_standard}"), "signature"),
        (Webhook::Standard, format!("v2,{of_standard}"), "signature"),
        (Webhook::Standard, "v1,???".into(), "signature_malformed"),
    ];
    for (sender, signature, reason) in cases {
        let bed = bed(sender).await;
        let name = signature_header(sender);
        let ask = signed(sender, "evt_1", BODY, &[NEW], time).without(name);
        let answer = bed.ask(ask.header(name, &signature)).await;
        refused(&bed, &answer, reason, &format!("{sender}: {signature}")).await;
    }
}

#[tokio::test]
async fn an_old_signature_is_not_taken() {
    for sender in [Webhook::Stripe, Webhook::Standard] {
        let bed = bed(sender).await;
        for apart in [-400, 400, -1_000_000] {
            let answer = bed
                .ask(signed(sender, "evt_1", BODY, &[NEW], now() + apart))
                .await;
            refused(&bed, &answer, "timestamp", &format!("{sender}: {apart}")).await;
        }
        for (id, apart) in [("evt_1", -200), ("evt_2", 200)] {
            let body = BODY.replace("evt_1", id);
            let ask = signed(sender, id, &body, &[NEW], now() + apart);
            bed.ask(ask).await.is(200);
        }
    }
}

/// While a secret is replaced, senders sign with both.
#[tokio::test]
async fn one_of_several_signatures_is_enough() {
    for sender in [Webhook::Stripe, Webhook::Standard] {
        let bed = bed(sender).await;
        let ask = signed(sender, "evt_1", BODY, &[OTHER, OLD], now());
        bed.ask(ask).await.is(200);
        assert_eq!(bed.runs(), 1);
    }
}

#[tokio::test]
async fn svix_spells_its_headers_in_its_own_way() {
    let sender = Webhook::Standard;
    let bed = bed(sender).await;
    let respell = |mut ask: Ask| {
        for (name, _) in &mut ask.headers {
            *name = name.replace("webhook-", "svix-");
        }
        ask
    };
    let ask = || signed(sender, "msg_1", BODY, &[NEW], now());
    let both = ask().header("svix-id", "msg_2");
    let answer = bed.ask(both).await;
    refused(&bed, &answer, "signature_malformed", "both spellings").await;
    bed.ask(respell(ask())).await.is(200);
    bed.ask(ask()).await.is_replay(200);
    assert_eq!(bed.runs(), 1);
    // The id is signed.
    let renamed = respell(ask()).without("svix-id").header("svix-id", "msg_2");
    bed.ask(renamed).await.is_problem(401, "unverified");
}

/// A webhook's sender does not look at answers: what fails for good is kept for a person.
#[tokio::test]
async fn a_webhook_that_fails_for_good_is_kept_and_redriven_without_a_signature() {
    let sender = Webhook::Stripe;
    let bed = bed(sender).await;
    bed.handler.says(422);
    let late = signed(sender, "evt_1", BODY, &[NEW], now() - 290);
    bed.ask(late).await.is(200);
    let letter = bed.letter().await;
    let said = bed.redrive(&letter).await;
    said.is(200, &json!({"outcome": "ran", "closed": true}));
    assert_eq!(bed.runs(), 2);
}

/// A signed event without an id is the sender's own: a person looks at it.
#[tokio::test]
async fn a_signed_event_without_an_id_is_kept() {
    let bed = bed(Webhook::GitHub).await;
    let ask = signed(Webhook::GitHub, "d1", BODY, &[NEW], now()).without("X-GitHub-Delivery");
    bed.ask(ask).await.is(200);
    assert_eq!((bed.letters().await.len(), bed.runs()), (1, 0));
}
