//! What is checked of senders, and what is not.

use super::{Judgement, Verdict};
use crate::config::Platform;
use crate::config::values::written;
use semel_gate::settings::{
    Caller, IssuerKeys, KeyMissing, Route, Source, TokenRule, Verify, Webhook,
};

fn token(route: &Route) -> Option<&TokenRule> {
    match &route.verify {
        Verify::Token(rule) => Some(rule),
        Verify::Off | Verify::Signature(_) => None,
    }
}

/// A caller by a header that is not there any more.
pub(super) fn caller(route: &Route) -> Judgement {
    let rule = token(route)?;
    let by_token = route.caller == Some(Caller::Header("authorization".into()));
    let says = "caller = \"header:authorization\": the token is verified and then taken away, and the next one of the same \
                client is another; write caller = \"jwt:sub\"";
    Verdict::Broken.when(by_token && !rule.forwarded, says)
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

/// What a signature leaves open.
pub(super) fn webhook(route: &Route) -> Judgement {
    let rule = match &route.verify {
        Verify::Signature(rule) => rule,
        Verify::Off | Verify::Token(_) => return None,
    };
    let (sender, tolerance) = (rule.sender, written(rule.tolerance));
    let says = match sender {
        Webhook::Stripe | Webhook::Standard => {
            format!(
                "signatures of {sender} cover body, id and time: one older than {tolerance} is refused"
            )
        }
        Webhook::GitHub | Webhook::Shopify => format!(
            "signatures of {sender} cover the body alone: whoever has seen a delivery can send its body again under \
             another id, and it runs again"
        ),
    };
    Some((Verdict::Note, says))
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
