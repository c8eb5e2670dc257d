//! Store URLs: which store, from one word.

use clap::builder::{TypedValueParser, ValueParserFactory};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where records are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// `dir:PATH`, the embedded store.
    Embedded(PathBuf),
    /// `postgres://…`
    Postgres(String),
    /// `redis://…`
    Redis(String),
    /// `firestore://…`
    Firestore(String),
}

const FORMS: &str = "dir:PATH (one process), postgres://…, redis://… or firestore://PROJECT";

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("dir", "")) => Err("dir: needs a path, as in dir:./semel-data".into()),
            Some(("dir", path)) => Ok(Self::Embedded(path.into())),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(url.into())),
            Some(("redis" | "rediss", _)) => Ok(Self::Redis(url.into())),
            Some(("firestore", _)) => Ok(Self::Firestore(url.into())),
            // Anything but a scheme may hold a password, so nothing else is repeated.
            Some((scheme, _)) if is_scheme(scheme) => {
                Err(format!("there is no store for {scheme}: — use {FORMS}"))
            }
            Some(_) | None if url.contains('=') => Err(format!(
                "libpq's keyword=value form is not taken: use {FORMS}"
            )),
            Some(_) | None => Err(format!("this names no store: use {FORMS}")),
        }
    }
}

fn is_scheme(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

/// The parser of `--store`. The usual ones repeat the value, which may hold a password.
#[derive(Clone, Debug)]
pub(crate) struct StoreUrlParser;

impl TypedValueParser for StoreUrlParser {
    type Value = StoreUrl;

    fn parse_ref(
        &self,
        command: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<StoreUrl, clap::Error> {
        let says = match value.to_str().map(str::parse) {
            Some(Ok(url)) => return Ok(url),
            Some(Err(says)) => says,
            None => "this is not UTF-8".into(),
        };
        let says = format!("--store: {says}\n");
        Err(clap::Error::raw(ErrorKind::ValueValidation, says).with_cmd(command))
    }
}

impl ValueParserFactory for StoreUrl {
    type Parser = StoreUrlParser;

    fn value_parser() -> Self::Parser {
        StoreUrlParser
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_of_the_documentation_is_known() {
        assert_eq!("dir:./x".parse(), Ok(StoreUrl::Embedded("./x".into())));
        assert_eq!("redis://h".parse(), Ok(StoreUrl::Redis("redis://h".into())));
        let firestore = StoreUrl::Firestore("firestore://p".into());
        assert_eq!("firestore://p".parse(), Ok(firestore));
        for url in ["postgres://h/d", "postgresql://h/d"] {
            assert_eq!(url.parse(), Ok(StoreUrl::Postgres(url.into())));
        }
    }

    #[test]
    fn an_unknown_scheme_is_named_without_its_password() {
        let message = "mysql://root:secret@h/d".parse::<StoreUrl>().unwrap_err();
        assert!(
            message.contains("there is no store for mysql:"),
            "{message}"
        );
        assert!(message.contains("postgres://"), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }

    #[test]
    fn what_is_not_a_url_is_not_repeated() {
        for text in [
            "host=db user=gate password=canary",
            "host=db password=canary:7 dbname=shop",
            "canary",
            "gate@canary:x",
            "",
        ] {
            let message = text.parse::<StoreUrl>().unwrap_err();
            assert!(message.contains("postgres://"), "{message}");
            assert!(!message.contains("canary"), "{message}");
        }
    }
}
