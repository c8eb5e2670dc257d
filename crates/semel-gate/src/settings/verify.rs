//! How senders show who they are: by a token that an issuer signed, or by a signature over the body.

use super::Secret;
use http::Uri;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// How a route's senders show who they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// They do not: whoever reaches the route may deliver.
    #[default]
    Off,
    /// By a bearer token (OpenID Connect).
    Token(TokenRule),
    /// By a signature over the body, with a secret that both sides know.
    Signature(SignatureRule),
}

/// Which tokens a route takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRule {
    /// Who signs them.
    pub issuer: Issuer,
    /// Whom they must be for: exactly one of these.
    pub audiences: Vec<String>,
    /// Whose they may be; empty for everybody that the issuer vouches for.
    pub emails: Vec<String>,
    /// How they may be signed.
    pub algorithms: Vec<Algorithm>,
    /// Whether the handler gets the token, too.
    pub forwarded: bool,
}

/// Who signs tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// What its tokens call it, letter by letter: one of these.
    pub names: Vec<String>,
    /// How its signature is checked.
    pub keys: IssuerKeys,
}

/// How an issuer's signature is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssuerKeys {
    /// Here, with the key set at this URL.
    At(Uri),
    /// By Cloud Run in front of this process, which then replaces the signature: whoever can reach this process past
    /// Cloud Run can deliver.
    TrustCloudRun,
}

/// How a token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA, PKCS #1 v1.5, with SHA-256.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
}

/// Which signed bodies a route takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureRule {
    /// Who signs them.
    pub sender: Webhook,
    /// With one of these; several while a secret is replaced by another.
    pub secrets: Vec<Secret>,
    /// How far the sender's clock may be from this one, where the signature covers a time.
    pub tolerance: Duration,
}

/// A sender of webhooks whose form is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Webhook {
    /// Stripe.
    Stripe,
    /// GitHub.
    GitHub,
    /// Shopify.
    Shopify,
    /// Whoever follows the Standard Webhooks specification, Svix among them.
    Standard,
}

/// What becomes of an API client's request without a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyMissing {
    /// It is refused.
    #[default]
    Refuse,
    /// It is forwarded unprotected, counted and logged, while old clients learn to send one.
    Pass,
}

/// Why a URL is not taken for a key set or an issuer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetUrlError {
    /// It is not a URL.
    #[error("it is not a URL: write one like \"https://issuer.example/keys\"")]
    Malformed,
    /// Whoever is on the way could put keys of their own there.
    #[error(
        "keys that come without TLS could be anybody's: write https://, or an address of this host"
    )]
    Plain,
}

/// The default of [`SignatureRule::tolerance`]: what the senders' own libraries allow.
pub const TOLERANCE_DEFAULT: Duration = Duration::from_secs(300);

const GOOGLE: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];
const GOOGLE_KEYS: &str = "https://www.googleapis.com/oauth2/v3/certs";

// === impl Issuer ===

impl Issuer {
    /// Google, who signs the tokens of Cloud Tasks, Pub/Sub, Eventarc and Cloud Scheduler.
    #[must_use]
    pub fn google() -> Self {
        Self {
            names: GOOGLE.map(Into::into).into(),
            keys: IssuerKeys::At(Uri::from_static(GOOGLE_KEYS)),
        }
    }

    /// Google, where Cloud Run with its IAM check on has looked at the signature and taken it away.
    #[must_use]
    pub fn trusting_cloud_run() -> Self {
        Self {
            keys: IssuerKeys::TrustCloudRun,
            ..Self::google()
        }
    }

    /// Whether this is what Google's tokens call their issuer.
    #[must_use]
    pub fn is_google(name: &str) -> bool {
        let name = name.trim_end_matches('/');
        GOOGLE.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Another one.
    #[must_use]
    pub fn named(name: impl Into<String>, keys: Uri) -> Self {
        Self {
            names: vec![name.into()],
            keys: IssuerKeys::At(keys),
        }
    }
}

/// The URL of a key set. Without TLS it must be on this host.
///
/// # Errors
/// When it is not a URL, or leads elsewhere without TLS.
pub fn key_set_url(text: &str) -> Result<Uri, KeySetUrlError> {
    let uri: Uri = text.parse().map_err(|_| KeySetUrlError::Malformed)?;
    let host = uri.host().ok_or(KeySetUrlError::Malformed)?;
    // A password would be logged with the URL.
    if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
        return Err(KeySetUrlError::Malformed);
    }
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if is_this_host(host) => Ok(uri),
        Some("http") => Err(KeySetUrlError::Plain),
        Some(_) | None => Err(KeySetUrlError::Malformed),
    }
}

/// Whether these are the keys that sign for everybody with an account at Google, in any of their forms.
#[must_use]
pub fn is_google_key_set(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default();
    host.eq_ignore_ascii_case("www.googleapis.com") && url.path().starts_with("/oauth2/")
}

fn is_this_host(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

// === impl Algorithm ===

impl Algorithm {
    /// All that can be chosen from.
    pub const ALL: [Self; 2] = [Self::Rs256, Self::Es256];

    /// Its name in tokens, key sets and settings.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
        }
    }
}

// === impl Webhook ===

impl Webhook {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Stripe, Self::GitHub, Self::Shopify, Self::Standard];

    /// The word for it, in settings, headers and log lines; also the name of its key's preset.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
            Self::GitHub => "github",
            Self::Shopify => "shopify",
            Self::Standard => "standard-webhooks",
        }
    }

    /// Whether the signature covers the time of the delivery, so that an old one can be refused.
    #[must_use]
    pub const fn signs_time(self) -> bool {
        match self {
            Self::Stripe | Self::Standard => true,
            Self::GitHub | Self::Shopify => false,
        }
    }
}

impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_over_tls_or_from_this_host() {
        for good in [
            "https://issuer.example/keys",
            "http://127.0.0.1:8085/oauth2/v3/certs",
            "http://[::1]:1/keys",
            "http://localhost:1/keys",
        ] {
            assert!(key_set_url(good).is_ok(), "{good}");
        }
        for plain in [
            "http://issuer.example/keys",
            "http://10.0.0.1/keys",
            "http://localhost.evil.example/",
        ] {
            assert_eq!(key_set_url(plain), Err(KeySetUrlError::Plain), "{plain}");
        }
        for bad in [
            "",
            "issuer.example",
            "/keys",
            "ftp://issuer.example/",
            "https://",
            "https://user:password@issuer.example/keys",
        ] {
            assert_eq!(key_set_url(bad), Err(KeySetUrlError::Malformed), "{bad}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let rule = Verify::Signature(SignatureRule {
            sender: Webhook::Stripe,
            secrets: vec![Secret("whsec_canary".into())],
            tolerance: TOLERANCE_DEFAULT,
        });
        assert!(!format!("{rule:?}").contains("canary"));
    }
}
