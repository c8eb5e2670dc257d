//! What is checked of senders, and what is not.

use super::{Judgement, Verdict};
use crate::config::Platform;
use crate::config::values::written;
use crate::config::volatile;
use semel::key::Part;
use semel_gate::settings::{
    Caller, IssuerKeys, KeyMissing, Route, Source, TokenRule, Verify, Webhook,
};

fn token(route: &Route) -> Option<&TokenRule> {
    match &route.verify {
        Verify::Token(rule) => Some(rule),
        Verify::Off | Verify::Signature(_) => None,
    }
}

/// Claims that all tokens of a route share.
const SHARED_CLAIMS: [&str; 3] = ["aud", "iss", "email_verified"];

/// A caller by what does not tell callers apart, or is not there any more.
pub(super) fn caller(route: &Route) -> Judgement {
    let rule = token(route)?;
    if let Some(Caller::Claim(claim)) = &route.caller {
        return by_claim(claim);
    }
    let by_token = route.caller == Some(Caller::Header("authorization".into()));
    let says = "caller = \"header:authorization\": the token is verified and then taken away, and the next one of the same \
                client is another; write caller = \"jwt:sub\"";
    Verdict::Broken.when(by_token && !rule.forwarded, says)
}

fn by_claim(claim: &str) -> Judgement {
    let why = if SHARED_CLAIMS.contains(&claim) {
        "it is the same in everybody's token, so that one caller would get another's answers"
    } else if volatile::CLAIMS.contains(&claim) {
        "it is another one in each token, so that a retry with a new token would run again"
    } else {
        return None;
    };
    let says = format!("caller = \"jwt:{claim}\": {why}; write caller = \"jwt:sub\"");
    Some((Verdict::Broken, says))
}

/// Whose word is taken for a token.
pub(super) fn issuer(route: &Route, platform: Option<Platform>) -> Judgement {
    let rule = token(route)?;
    let name = rule.issuer.names.first().map_or("", String::as_str);
    match (&rule.issuer.keys, platform) {
        (IssuerKeys::TrustCloudRun, Some(Platform::CloudRun)) => {
            let says = "verify = \"cloud-run-iam\" trusts the platform: Cloud Run has checked the signature and taken it \
                        away, so whoever reaches this process past Cloud Run can deliver; let the service require IAM";
            Some((Verdict::Warning, says.into()))
        }
        (IssuerKeys::TrustCloudRun, Some(Platform::Kubernetes) | None) => {
            let says = "verify = \"cloud-run-iam\" trusts Cloud Run to have checked the signature, and this process is not \
                        on Cloud Run (K_SERVICE is not set): write verify = \"google\"; to check a file for Cloud Run \
                        elsewhere, set K_SERVICE";
            Some((Verdict::Broken, says.into()))
        }
        (IssuerKeys::At(url), _) if url.scheme_str() != Some("https") => {
            let says = format!(
                "the keys of {name} come from {url} without TLS: this is for a local broker"
            );
            Some((Verdict::Warning, says))
        }
        (IssuerKeys::At(_), _) if rule.emails.is_empty() => {
            let says = format!(
                "every account that {name} signs a token for this audience for may deliver: emails names those that may"
            );
            Some((Verdict::Note, says))
        }
        (IssuerKeys::At(_), _) => {
            let says = format!(
                "tokens of {name} for {} and of {} are verified; none expires a delivery that was taken: a redrive needs none",
                rule.audiences.join(" or "),
                rule.emails.join(" or ")
            );
            Some((Verdict::Note, says))
        }
    }
}

/// What a signature leaves open, by what the key is made of.
pub(super) fn webhook(route: &Route) -> Judgement {
    let rule = match &route.verify {
        Verify::Signature(rule) => rule,
        Verify::Off | Verify::Token(_) => return None,
    };
    let (sender, tolerance) = (rule.sender, written(rule.tolerance));
    let key = &route.terms(Source::Webhook(sender)).key;
    let headers = key.parts().iter().filter_map(|part| match part {
        Part::Named(name) => name.strip_prefix("header:"),
        Part::Pointer(_) | Part::Form(_) | Part::Body => None,
    });
    let coverage = headers.map(|name| (name, coverage(sender, name)));
    let loosest = coverage.max_by_key(|(_, coverage)| *coverage);
    let (verdict, says) = match loosest {
        Some((name, Coverage::Renewed(why))) => (
            Verdict::Broken,
            format!("header:{name} cannot be part of a key: {why}, so every repeat would run"),
        ),
        Some((name, Coverage::Unsigned)) => (
            Verdict::Warning,
            format!(
                "signatures of {sender} do not cover header:{name}, which is part of the key: whoever has seen a delivery \
                 can send its body again with another value, and it runs again; make the key of what is signed"
            ),
        ),
        Some((_, Coverage::OwnId)) => (
            Verdict::Note,
            format!(
                "signatures of {sender} cover the body alone: whoever has seen a delivery can send its body again under \
                 another id, and it runs again"
            ),
        ),
        Some((_, Coverage::Signed)) | None if sender.signs_time() => (
            Verdict::Note,
            format!(
                "signatures of {sender} cover body, id and time: one older than {tolerance} is refused"
            ),
        ),
        Some((_, Coverage::Signed)) | None => (
            Verdict::Note,
            format!(
                "signatures of {sender} cover the body and so the key, and no time: whoever has seen a delivery can send \
                 it again when its record is forgotten"
            ),
        ),
    };
    Some((verdict, says))
}

/// How far a header is protected by the signature of a sender, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Coverage {
    /// It is signed, or follows from what is.
    Signed,
    /// The sender's own id, which it does not sign.
    OwnId,
    /// Anybody who repeats a delivery can write another.
    Unsigned,
    /// Another one in each repeat.
    Renewed(&'static str),
}

fn coverage(sender: Webhook, header: &str) -> Coverage {
    match (sender, header) {
        (Webhook::Standard, "webhook-id" | "svix-id") => Coverage::Signed,
        // Their signatures are digests of the body.
        (Webhook::GitHub, "x-hub-signature-256") | (Webhook::Shopify, "x-shopify-hmac-sha256") => {
            Coverage::Signed
        }
        (Webhook::GitHub, "x-github-delivery") | (Webhook::Shopify, "x-shopify-webhook-id") => {
            Coverage::OwnId
        }
        _ => volatile::header(header).map_or(Coverage::Unsigned, Coverage::Renewed),
    }
}

/// Senders of events that ask first.
pub(super) fn handshake(route: &Route) -> Judgement {
    let says = "the handshake of CloudEvents webhooks is refused: webhook_origins names nobody";
    let takes_events = route.sources == [Source::CloudEvents];
    Verdict::Note.when(takes_events && route.webhook_origins.is_empty(), says)
}

/// What is let through.
pub(super) fn unprotected(route: &Route) -> Judgement {
    let says = "key_missing = \"pass\": requests without a key are forwarded unprotected, and a retry of one runs again; \
                semel_unprotected_total counts them: set it to \"refuse\" when none comes any more";
    Verdict::Warning.when(route.key_missing == KeyMissing::Pass, says)
}
