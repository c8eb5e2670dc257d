//! What a token must claim, once its signature is known to be the issuer's.

use super::Refusal;
use super::token::{Token, members, text_of};
use crate::settings::TokenRule;
use crate::source::json::{self, Members};
use std::collections::BTreeMap;

/// What a verified token says of its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    texts: BTreeMap<String, String>,
    email_verified: bool,
}

/// How far the issuer's clock may be from this one.
const SKEW_SECONDS: f64 = 60.0;

/// The claims of a token that this rule takes, at this many seconds since 1970.
pub(super) fn check(rule: &TokenRule, token: &Token<'_>, now: i64) -> Result<Claims, Refusal> {
    let claims = members(&token.claims)?;
    let issuer = required(&claims, "iss")?;
    if !rule.issuer.names.contains(&issuer) {
        return Err(Refusal::Issuer);
    }
    // A list of audiences is for whoever may be mistaken for another of them.
    let audience = required(&claims, "aud")?;
    if !rule.audiences.contains(&audience) {
        return Err(Refusal::Audience);
    }
    check_times(&claims, now)?;
    let claims = Claims::of(&claims);
    if !rule.emails.is_empty() {
        let email = claims.text("email").ok_or(Refusal::Claim)?;
        if !claims.email_verified {
            return Err(Refusal::EmailUnverified);
        }
        if !rule.emails.iter().any(|known| known == email) {
            return Err(Refusal::Email);
        }
    }
    Ok(claims)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "seconds are far below 2^53 for as long as anybody cares"
)]
fn check_times(claims: &Members<'_>, now: i64) -> Result<(), Refusal> {
    let now = now as f64;
    let expires = seconds(claims, "exp")?.ok_or(Refusal::Claim)?;
    if expires + SKEW_SECONDS <= now {
        return Err(Refusal::Expired);
    }
    let issued = seconds(claims, "iat")?.ok_or(Refusal::Claim)?;
    let begins = seconds(claims, "nbf")?.unwrap_or(issued);
    if issued.max(begins) - SKEW_SECONDS > now {
        return Err(Refusal::NotYetValid);
    }
    Ok(())
}

fn required(claims: &Members<'_>, name: &str) -> Result<String, Refusal> {
    match text_of(claims, name) {
        Ok(Some(text)) => Ok(text),
        Ok(None) | Err(_) => Err(Refusal::Claim),
    }
}

/// A time in seconds since 1970, if it is there.
fn seconds(claims: &Members<'_>, name: &str) -> Result<Option<f64>, Refusal> {
    let Some(value) = claims.get_even_null(name) else {
        return Ok(None);
    };
    match serde_json::from_str::<f64>(value.get()) {
        Ok(number) if number.is_finite() => Ok(Some(number)),
        Ok(_) | Err(_) => Err(Refusal::Claim),
    }
}

// === impl Claims ===

impl Claims {
    fn of(members: &Members<'_>) -> Self {
        let texts = members.iter().filter_map(|(name, value)| {
            let text = json::text(value)?;
            Some((name.to_owned(), text.into_owned()))
        });
        Self {
            texts: texts.collect(),
            email_verified: members
                .get("email_verified")
                .is_some_and(|value| value.get() == "true"),
        }
    }

    /// Who the holder is by this claim. An e-mail address that the issuer does not vouch for is nobody's.
    #[must_use]
    pub fn holder(&self, claim: &str) -> Option<&str> {
        self.text(claim)
            .filter(|text| !text.is_empty() && (claim != "email" || self.email_verified))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }
}
