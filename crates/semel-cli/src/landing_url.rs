//! Landing URLs: where deliveries land, from one word.

use semel_postgres::Table;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where deliveries land.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum LandingUrl {
    /// `file:PATH`: JSON lines in a directory.
    Files(PathBuf),
    /// `postgres://…/DATABASE/TABLE`: the database's own URL, and the table.
    Table(String, Table),
}

const FORMS: &str =
    "file:PATH (a directory), or postgres://[user[:password]@]host[:port]/database/table[?options]";

impl FromStr for LandingUrl {
    type Err = String;

    /// Nothing of what may hold a password is repeated.
    fn from_str(url: &str) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("file", "")) => Err("file: needs a path, as in file:./landing".into()),
            Some(("file", path)) => Ok(Self::Files(path.into())),
            Some(("postgres" | "postgresql", _)) => table(url),
            Some(_) | None => Err(format!("this names no place to land: use {FORMS}")),
        }
    }
}

/// The last part of the path is the table, the rest a database's URL.
fn table(url: &str) -> Result<LandingUrl, String> {
    let (path, options) = url
        .split_once('?')
        .map_or((url, None), |(path, options)| (path, Some(options)));
    let scheme = path.find("://").map_or(0, |at| at + 3);
    let (database, name) = path
        .rsplit_once('/')
        .filter(|(database, _)| database.get(scheme..).is_some_and(|it| it.contains('/')))
        .ok_or_else(|| format!("a table is missing behind the database: use {FORMS}"))?;
    let table = name.parse().map_err(|error| format!("{error}"))?;
    let options = options.map_or_else(String::new, |options| format!("?{options}"));
    Ok(LandingUrl::Table(format!("{database}{options}"), table))
}

/// Without the URL, which can hold a password.
impl fmt::Debug for LandingUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(path) => write!(f, "file:{}", path.display()),
            Self::Table(_, table) => write!(f, "postgres://<hidden>/{table}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_the_path_is_the_table() {
        for (url, database, table) in [
            ("postgres://h/shop/landing", "postgres://h/shop", "landing"),
            (
                "postgresql://u:p%2Fw@h:5433/shop/raw.landing?sslmode=require&host=/run/x",
                "postgresql://u:p%2Fw@h:5433/shop?sslmode=require&host=/run/x",
                "raw.landing",
            ),
        ] {
            let expected = LandingUrl::Table(database.into(), table.parse().unwrap());
            assert_eq!(url.parse(), Ok(expected));
        }
        let files = LandingUrl::Files("./landing".into());
        assert_eq!("file:./landing".parse(), Ok(files));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (url, says) in [
            ("postgres://u:canary@h/shop", "a table is missing"),
            ("postgres://u:canary@h", "a table is missing"),
            ("postgres://u:canary@h/shop/", "a table is named by"),
            ("postgres://u:canary@h/shop/Landing", "a table is named by"),
            ("postgres://u:canary@h/shop/a;b", "a table is named by"),
            ("mysql://u:canary@h/shop/a", "names no place to land"),
            ("canary", "names no place to land"),
            ("file:", "file: needs a path"),
        ] {
            let message = url.parse::<LandingUrl>().unwrap_err();
            assert!(message.contains(says), "{url}: {message}");
            assert!(!message.contains("canary"), "{message}");
        }
        let url: LandingUrl = "postgres://u:canary@h/shop/landing".parse().unwrap();
        assert_eq!(format!("{url:?}"), "postgres://<hidden>/landing");
    }
}
