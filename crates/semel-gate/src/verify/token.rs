//! A token in the compact form of RFC 7515, read strictly: what could be read in two ways, brings a key of its own or
//! asks for something that nobody here understands is not a token.

use super::Refusal;
use crate::settings::Algorithm;
use crate::source::json::{self, Members};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::fmt;

/// A token that is well formed. Nothing it says is believed yet.
pub struct Token<'a> {
    /// How it says that it is signed: one of the ways that the route takes.
    pub algorithm: Algorithm,
    /// Which of the issuer's keys it says signed it.
    pub key_id: String,
    /// The whole of it.
    pub(super) text: &'a str,
    /// The claims, as JSON.
    pub(super) claims: Vec<u8>,
    /// What is signed.
    pub(super) signed: &'a str,
    signature: &'a str,
}

/// No issuer's tokens come near this.
const BYTES_MAX: usize = 16 * 1024;

const KEY_ID_BYTES_MAX: usize = 256;

/// Members of a header that make a verifier use another key than the issuer's, or read the rest in another way.
const REFUSED_MEMBERS: [&str; 9] = [
    "b64", "crit", "enc", "jku", "jwk", "p2c", "x5c", "x5u", "zip",
];

/// What Cloud Run leaves of a signature that it has checked.
const REMOVED_BY_CLOUD_RUN: &str = "SIGNATURE_REMOVED_BY_GOOGLE";

/// The one bearer token of a request.
pub(super) fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    if headers.get_all(AUTHORIZATION).iter().count() > 1 {
        return Err(Refusal::TokenRepeated);
    }
    let value = headers.get(AUTHORIZATION).ok_or(Refusal::TokenMissing)?;
    let value = value.to_str().map_err(|_| Refusal::TokenMalformed)?;
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token),
        Some(_) | None => Err(Refusal::TokenMissing),
    }
}

// === impl Token ===

impl<'a> Token<'a> {
    /// Reads a token that is signed in one of these ways.
    ///
    /// # Errors
    /// When it is not well formed, or its header asks for anything else.
    pub fn parse(text: &'a str, algorithms: &[Algorithm]) -> Result<Self, Refusal> {
        let malformed = Refusal::TokenMalformed;
        if text.len() > BYTES_MAX {
            return Err(malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(malformed)?;
        let header = decode(header)?;
        let header = members(&header)?;
        if header
            .iter()
            .any(|(name, _)| REFUSED_MEMBERS.contains(&name))
        {
            return Err(Refusal::HeaderMember);
        }
        let named = text_of(&header, "alg")?.ok_or(Refusal::Algorithm)?;
        let algorithm = algorithms.iter().find(|known| known.word() == named);
        let kind = text_of(&header, "typ")?;
        if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("JWT")) {
            return Err(malformed);
        }
        Ok(Self {
            algorithm: *algorithm.ok_or(Refusal::Algorithm)?,
            key_id: key_id(&header)?,
            text,
            claims: decode(claims)?,
            signed,
            signature,
        })
    }

    /// The signature as bytes.
    pub(super) fn signature(&self) -> Result<Vec<u8>, Refusal> {
        decode(self.signature)
    }

    /// Whether Cloud Run has checked the signature. Anybody could write this in its place: only Cloud Run may be able
    /// to reach this process.
    pub(super) fn is_checked_by_cloud_run(&self) -> Result<(), Refusal> {
        if self.signature == REMOVED_BY_CLOUD_RUN {
            Ok(())
        } else {
            Err(Refusal::NotCheckedByCloudRun)
        }
    }
}

impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

fn key_id(header: &Members<'_>) -> Result<String, Refusal> {
    let id = text_of(header, "kid")?.ok_or(Refusal::KeyUnknown)?;
    if id.is_empty() || id.len() > KEY_ID_BYTES_MAX {
        return Err(Refusal::KeyUnknown);
    }
    Ok(id)
}

/// Base64 for URLs, without padding, in its one spelling.
fn decode(part: &str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| Refusal::TokenMalformed)
}

/// The members of a JSON object, none of them twice.
pub(super) fn members(object: &[u8]) -> Result<Members<'_>, Refusal> {
    json::members(object, |_| true).map_err(|_| Refusal::TokenMalformed)
}

/// A member that must be text, if it is there.
pub(super) fn text_of(members: &Members<'_>, name: &str) -> Result<Option<String>, Refusal> {
    match members.get_even_null(name) {
        None => Ok(None),
        Some(value) => match json::text(value) {
            Some(text) => Ok(Some(text.into_owned())),
            None => Err(Refusal::TokenMalformed),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RS256: &[Algorithm] = &[Algorithm::Rs256];

    fn refusal(text: &str) -> Refusal {
        Token::parse(text, RS256).unwrap_err()
    }

    #[test]
    fn a_token_is_shown_to_nobody() {
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","kid":"k"}"#);
        let text = format!("{header}.e30.c2lnbmF0dXJl");
        let token = Token::parse(&text, RS256).unwrap();
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_eq!(token.signature().unwrap(), b"signature");
    }

    #[test]
    fn a_token_of_any_length_is_not_read() {
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","kid":"k"}"#);
        let of = |claims: usize| format!("{header}.{}.", "A".repeat(claims * 4));
        assert!(Token::parse(&of(1000), RS256).is_ok());
        assert_eq!(refusal(&of(5000)), Refusal::TokenMalformed);
    }

    #[test]
    fn base64_has_one_spelling() {
        // The last letter has bits that say nothing: they must be zero.
        for part in ["e31", "e30=", "e30 ", "e3\u{e9}", "e+/0"] {
            assert_eq!(decode(part), Err(Refusal::TokenMalformed), "{part}");
        }
        assert_eq!(decode("e30").unwrap(), b"{}");
    }

    proptest! {
        /// Whatever is sent, it is read or refused.
        #[test]
        fn no_text_breaks_the_reader(text in "[A-Za-z0-9_.=-]{0,80}", json in "[{}\\[\\]\",:a-z0-9\\\\]{0,40}") {
            drop(Token::parse(&text, RS256));
            let header = URL_SAFE_NO_PAD.encode(json);
            drop(Token::parse(&format!("{header}.e30.AAAA"), RS256));
        }
    }
}
