//! Store URLs: which store, from one word.

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
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("dir", "")) => Err("dir: needs a path, as in dir:./semel-data".into()),
            Some(("dir", path)) => Ok(Self::Embedded(path.into())),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(url.into())),
            Some(("redis" | "rediss", _)) => Ok(Self::Redis(url.into())),
            // The rest of the URL may hold a password, so only the scheme is named.
            Some((scheme, _)) => Err(format!(
                "there is no store for {scheme}: — use dir:PATH (one process), postgres://… or redis://…"
            )),
            None => Err(format!(
                "{url:?} names no store: use dir:PATH (one process), postgres://… or redis://…"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_of_the_documentation_is_known() {
        assert_eq!("dir:./x".parse(), Ok(StoreUrl::Embedded("./x".into())));
        assert_eq!("redis://h".parse(), Ok(StoreUrl::Redis("redis://h".into())));
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
}
