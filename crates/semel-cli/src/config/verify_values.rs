//! How the settings that verify senders are written.

use super::route_values::word;
use super::tree::{Node, Value};
use super::values::{Read, Wrong, list, text};
use http::Uri;
use semel_gate::settings::{Algorithm, Issuer, key_set_url};

/// Who signs tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenIssuer {
    /// Google.
    Google,
    /// Google, and Cloud Run has checked the signature and taken it away.
    CloudRunIam,
    /// Another one, by what its tokens call it.
    Named(String),
}

pub(crate) fn token_issuer(value: &Value) -> Read<TokenIssuer> {
    let text = text(value)?;
    match text.as_str() {
        // Its own names are no way around what is asked of its tokens.
        name if name == "google" || Issuer::is_google(name) => Ok(TokenIssuer::Google),
        "cloud-run-iam" => Ok(TokenIssuer::CloudRunIam),
        url if url.starts_with("https://") || url.starts_with("http://") => {
            match key_set_url(url) {
                Ok(_) => Ok(TokenIssuer::Named(text)),
                Err(error) => Wrong::says(value, error),
            }
        }
        _ => {
            let help = "write \"google\", \"cloud-run-iam\", or the issuer as its tokens spell it, like \
                        \"https://issuer.example\"";
            Wrong::says(value, format!("{text:?} is not an issuer: {help}"))
        }
    }
}

pub(crate) fn keys_url(value: &Value) -> Read<Uri> {
    key_set_url(&text(value)?).or_else(|error| Wrong::says(value, error))
}

pub(crate) fn algorithm(value: &Value) -> Read<Algorithm> {
    word(value, &Algorithm::ALL.map(|it| (it.word(), it)))
}

/// Text, or a list of it with something in it.
pub(crate) fn one_or_more(value: &Value) -> Read<Vec<String>> {
    let texts = match &value.node {
        Node::Text(text) => vec![text.clone()],
        Node::List(_) => list(text)(value)?,
        Node::Integer(_) | Node::Switch(_) | Node::Table(_) | Node::Other(_) => {
            return Wrong::kind(value);
        }
    };
    let good = !texts.is_empty() && texts.iter().all(|text| !text.is_empty());
    Wrong::unless(
        value,
        good.then_some(texts),
        || "it is empty: nothing would be taken",
    )
}

pub(crate) fn email(value: &Value) -> Read<String> {
    let text = text(value)?;
    let parts = text.split_once('@');
    let good = parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
        && !text.contains(['*', ' ']);
    Wrong::unless(value, good.then(|| text.clone()), || {
        format!("{text:?} is not an e-mail address: write each account in full")
    })
}
