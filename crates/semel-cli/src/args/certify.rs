//! The arguments of `semel certify`.

use std::path::PathBuf;
use url::Url;

/// A service, and a request that it accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CertifyArgs {
    /// Where requests with a key go. They are real: take a test account
    #[arg(value_name = "URL", value_parser = web_address)]
    pub(crate) url: Url,
    /// The payload; {id} is new for each piece of work
    #[arg(long, default_value = r#"{"id": "{id}"}"#)]
    pub(crate) body: String,
    /// Another payload under the same key; unless given, the same with another {id}
    #[arg(long, value_name = "BODY")]
    pub(crate) other_body: Option<String>,
    #[arg(long, default_value = "POST")]
    /// The method
    pub(crate) method: http::Method,
    /// Added to every request, as "Authorization: Bearer …"
    #[arg(long, value_name = "HEADER", value_parser = header)]
    pub(crate) header: Vec<(http::HeaderName, http::HeaderValue)>,
    /// The headers of another caller, in place of the first one's of the same name
    #[arg(long, value_name = "HEADER", value_parser = header)]
    pub(crate) other_header: Vec<(http::HeaderName, http::HeaderValue)>,
    /// The header that holds the key
    #[arg(long, value_name = "NAME", default_value = "Idempotency-Key")]
    pub(crate) key_header: http::HeaderName,
    /// Write the key as the draft does, in double quotes
    #[arg(long)]
    pub(crate) quoted: bool,
    /// How many requests under one key are sent at once
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(2..))]
    pub(crate) at_once: u8,
    /// How long to wait for an answer, in milliseconds
    #[arg(long, default_value_t = 10_000)]
    pub(crate) timeout_ms: u64,
    /// Roots to believe, for an https:// address; those of this machine unless given
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXIT_CODES: &str = "Exit codes:
  0   no rule is broken
  1   a rule is not honoured: the table says which
  2   could not judge: no success to begin with, or answers that show nothing";

fn web_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|why| why.to_string())?;
    match (url.scheme(), url.host()) {
        ("http" | "https", Some(_)) => Ok(url),
        (_, _) => Err("not an http:// or https:// address".to_owned()),
    }
}

fn header(text: &str) -> Result<(http::HeaderName, http::HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("write NAME: VALUE")?;
    let name = name
        .trim()
        .parse()
        .map_err(|_| format!("{name:?} is not a header name"))?;
    let value = value
        .trim()
        .parse()
        .map_err(|_| "this value cannot be sent".to_owned())?;
    Ok((name, value))
}
