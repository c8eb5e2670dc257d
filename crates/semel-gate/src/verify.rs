//! Verification: whether a sender is who the route takes deliveries of. It happens once, at intake and before any key
//! is named: what is refused here leaves no record and no letter. A redrive runs what was verified when it came.
//!
//! The checks are pure functions over a rule, the request and the time; only `keys` asks another server.

mod refusal;
mod token;
mod oidc;
mod key_set;
mod verifier;
mod keys;
mod fetch;
mod webhook;
mod handshake;

pub use key_set::KeySet;
pub use oidc::Claims;
pub use refusal::Refusal;
pub use token::Token;
pub use webhook::{check as check_signature, secret_bytes};

pub(crate) use handshake::answer as answer_handshake;
pub(crate) use keys::KeySets;

use crate::delivery_log;
use crate::gate::{Gate, RouteState};
use crate::headers::remove_platform_token;
use crate::settings::{IssuerKeys, TokenRule, Verify};
use crate::upstream::{Reply, full};
use bytes::Bytes;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Request};
use std::sync::Arc;

/// Checks what can be checked before the body is there: the token. What it says of its holder is handed on in place of
/// the token itself, which the handler gets only if the route says so.
pub(crate) async fn verify_head(
    gate: &Gate,
    route: &RouteState,
    headers: &mut HeaderMap,
) -> Result<Option<Claims>, Refusal> {
    let rule = match &route.settings.verify {
        Verify::Off => return Ok(None),
        Verify::Signature(_) => {
            remove_platform_token(headers);
            return Ok(None);
        }
        Verify::Token(rule) => rule,
    };
    // Cloud Run checks that one instead, so that nobody has looked at the signature of the other.
    let replaced = remove_platform_token(headers);
    if replaced && rule.issuer.keys == IssuerKeys::TrustCloudRun {
        return Err(Refusal::TokenReplaced);
    }
    let claims = verify_token(&gate.key_sets, rule, headers).await?;
    if !rule.forwarded {
        headers.remove(AUTHORIZATION);
    }
    Ok(Some(claims))
}

/// The signature is checked before anything that the token says is believed.
async fn verify_token(
    key_sets: &KeySets,
    rule: &TokenRule,
    headers: &HeaderMap,
) -> Result<Claims, Refusal> {
    let token = Token::parse(token::bearer(headers)?, &rule.algorithms)?;
    match &rule.issuer.keys {
        IssuerKeys::TrustCloudRun => token.is_checked_by_cloud_run()?,
        IssuerKeys::At(url) => {
            let keys = key_sets.at(url).holding(&token.key_id).await?;
            keys.verify(&token)?;
        }
    }
    oidc::check(rule, &token, now())
}

/// Checks what needs the body: the signature of a webhook.
pub(crate) async fn verify_body(
    gate: &Gate,
    route: &Arc<RouteState>,
    request: &Arc<Request<Bytes>>,
) -> Result<(), Refusal> {
    if !matches!(route.settings.verify, Verify::Signature(_)) {
        return Ok(());
    }
    let (route, signed, now) = (Arc::clone(route), Arc::clone(request), now());
    let check = move || match &route.settings.verify {
        Verify::Signature(rule) => webhook::check(rule, signed.headers(), signed.body(), now),
        Verify::Off | Verify::Token(_) => Ok(()),
    };
    gate.blocking_pool.run(request.body().len(), check).await
}

/// Tells a sender that it is not believed, and writes that down.
pub(crate) fn turned_away(gate: &Gate, route: &RouteState, why: Refusal) -> Reply {
    let name = &route.settings.name;
    let mut reply = crate::refusal::unverified(why).reply().map(full);
    if matches!(route.settings.verify, Verify::Token(_)) {
        let bearer = HeaderValue::from_static("Bearer");
        reply.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    }
    gate.metrics.senders.unverified(name, why.word());
    delivery_log::write_unverified(name, why.word(), reply.status());
    reply
}

/// Seconds since 1970, as tokens and signatures count.
#[allow(
    clippy::disallowed_methods,
    reason = "issuers and senders write the time of day"
)]
fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}
