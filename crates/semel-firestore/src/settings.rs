//! Which database, and how it is reached: data, checked whole before anything is dialled.

use crate::channel;
use crate::token::{self, TokenSource};
use percent_encoding::percent_decode_str;
use semel::Error;
use semel_tls::Roots;
use std::path::PathBuf;
use std::time::Duration;

/// The longest prefix, in bytes: it is a part of every document's name.
const PREFIX_BYTES_MAX: usize = 64;

/// The longest that one operation may take: a sender would have given up by then.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// The database that a project has unless it names others.
const DATABASE_DEFAULT: &str = "(default)";

/// Which database, and how it is reached.
///
/// ```
/// use semel_firestore::FirestoreSettings;
///
/// let settings = FirestoreSettings::from_url("firestore://my-project/orders?prefix=shop")?;
/// assert_eq!(settings.project, "my-project");
/// assert_eq!(settings.database, "orders");
/// assert_eq!(settings.prefix, "shop");
/// # Ok::<(), semel::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FirestoreSettings {
    /// The project's id.
    pub project: String,
    /// The database's id: `(default)` unless set.
    pub database: String,
    /// How the name of every collection begins, so that installations can share a database: `semel` unless set.
    pub prefix: String,
    /// `https://HOST[:PORT]` of a private or regional endpoint: Google's public one unless set.
    pub endpoint: Option<String>,
    /// The PEM file of the roots to believe at the endpoint, and nobody else: those of this machine unless set.
    pub ssl_ca_certs: Option<PathBuf>,
    /// `host:port` of an emulator, which needs no credentials. `FIRESTORE_EMULATOR_HOST` in Google's clients.
    pub emulator_host: Option<String>,
    /// The file of a service account or an authorized user; without it, the metadata server of Google's machines is asked
    /// for tokens. `GOOGLE_APPLICATION_CREDENTIALS` in Google's clients.
    pub credentials_file: Option<PathBuf>,
    /// `host[:port]` of the metadata server: `metadata.google.internal` unless set. `GCE_METADATA_HOST` in Google's clients.
    pub metadata_host: Option<String>,
    /// Whether operations begin with what this process believes (that a key is new, that nobody has taken its lease) and
    /// write it on condition that it is true: one round trip for a new claim, a renewal and a completion, and one more for
    /// the first duplicate of another's work. True unless set.
    pub guess: bool,
    /// How long one operation may take, with everything that is tried again: 5 s unless set, and a second more for each
    /// 900,000 bytes of a large result.
    pub timeout: Duration,
    /// How long after a sweep another begins, whoever asks for it, of all who share the collections: each reads every
    /// document. A day unless set; zero is whenever somebody asks.
    pub sweep_every: Duration,
}

// === impl FirestoreSettings ===

impl FirestoreSettings {
    /// The default settings for the default database of a project.
    #[must_use]
    pub fn new(project: impl Into<String>) -> Self {
        Self {
            project: project.into(),
            database: DATABASE_DEFAULT.into(),
            prefix: "semel".into(),
            endpoint: None,
            ssl_ca_certs: None,
            emulator_host: None,
            credentials_file: None,
            metadata_host: None,
            guess: true,
            timeout: Duration::from_secs(5),
            sweep_every: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// The settings that `firestore://PROJECT[/DATABASE][?prefix=PREFIX][&endpoint=https://HOST][&ssl_ca_certs=FILE]` names.
    ///
    /// # Errors
    /// `Invalid`, with what is wrong.
    pub fn from_url(url: &str) -> Result<Self, Error> {
        let rest = url
            .strip_prefix("firestore://")
            .map_or_else(|| wrong(FORM), Ok)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (project, database) = place.split_once('/').unwrap_or((place, ""));
        let mut settings = Self::new(decoded(project)?);
        if !database.is_empty() {
            settings.database = decoded(database)?;
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("prefix", prefix)) => settings.prefix = decoded(prefix)?,
                Some(("endpoint", endpoint)) => settings.endpoint = Some(decoded(endpoint)?),
                Some(("ssl_ca_certs", file)) => settings.ssl_ca_certs = Some(decoded(file)?.into()),
                Some((name, _)) => {
                    return wrong(&format!("the URL has no option {name:?}: {FORM}"));
                }
                None => return wrong(FORM),
            }
        }
        Ok(settings)
    }

    /// Whether all settings make sense, the files that they name included. Nothing is dialled.
    ///
    /// ```
    /// use semel_firestore::FirestoreSettings;
    ///
    /// let error = FirestoreSettings::new("prod").validate().unwrap_err().to_string();
    /// assert!(error.contains("an alias"), "{error}");
    /// ```
    ///
    /// # Errors
    /// `Invalid`, with what is wrong.
    pub fn validate(&self) -> Result<(), Error> {
        self.tokens()?;
        match &self.ssl_ca_certs {
            Some(file) => channel::tls(Roots::File(file.clone())).map(drop),
            None => Ok(()),
        }
    }

    /// Where tokens come from, if all settings make sense.
    pub(crate) fn tokens(&self) -> Result<TokenSource, Error> {
        validate_project(&self.project)?;
        validate_database(&self.database)?;
        validate_prefix(&self.prefix)?;
        if self.timeout < Duration::from_millis(1) || self.timeout > TIMEOUT_MAX {
            return wrong(&format!(
                "timeout {:?} is not between 1 ms and {TIMEOUT_MAX:?}",
                self.timeout
            ));
        }
        validate_endpoint(self)?;
        match (&self.emulator_host, &self.credentials_file) {
            (Some(host), _) if !is_authority(host) => wrong(&format!(
                "FIRESTORE_EMULATOR_HOST {host:?} is not host:port, as in 127.0.0.1:8080"
            )),
            (Some(_), _) => Ok(TokenSource::Emulator),
            (None, Some(file)) => token::from_file(file),
            (None, None) => token::from_metadata(self.metadata_host.as_deref()),
        }
    }
}

const FORM: &str = "the URL must be firestore://PROJECT[/DATABASE], and after a ? prefix=PREFIX, endpoint=https://HOST or \
                    ssl_ca_certs=FILE";

fn decoded(text: &str) -> Result<String, Error> {
    let text = percent_decode_str(text).decode_utf8();
    text.map_or_else(|_| wrong(FORM), |text| Ok(text.into_owned()))
}

/// An id as Google gives it; what people call a project by (an alias of `.firebaserc`, its display name) is none.
fn validate_project(project: &str) -> Result<(), Error> {
    // Projects of a domain are written example.com:project.
    let id = project.rsplit_once(':').map_or(project, |(_, id)| id);
    let first = id.starts_with(|c: char| c.is_ascii_lowercase());
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_id =
        (6..=30).contains(&id.len()) && first && id.chars().all(plain) && !id.ends_with('-');
    if is_id {
        return Ok(());
    }
    wrong(&format!(
        "{project:?} is not a project's id, which has 6 to 30 lower-case letters, digits and hyphens; an alias of \
         .firebaserc, a display name or a number is not one: `gcloud projects list` shows it as PROJECT_ID"
    ))
}

fn validate_database(database: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_id = (4..=63).contains(&database.len()) && database.chars().all(plain);
    if is_id || database == DATABASE_DEFAULT {
        return Ok(());
    }
    wrong(&format!(
        "{database:?} is not a database's id, which has 4 to 63 lower-case letters, digits and hyphens; leave it out \
         for {DATABASE_DEFAULT}"
    ))
}

fn validate_prefix(prefix: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_long = prefix.is_empty() || prefix.len() > PREFIX_BYTES_MAX;
    if is_long || !prefix.chars().all(plain) || prefix.starts_with("__") {
        return wrong(&format!(
            "prefix {prefix:?} must have 1 to {PREFIX_BYTES_MAX} letters, digits, '_' or '-', and not begin with '__'"
        ));
    }
    Ok(())
}

/// A server with TLS, because every request has a token with it.
fn validate_endpoint(settings: &FirestoreSettings) -> Result<(), Error> {
    let named = settings.endpoint.is_some() || settings.ssl_ca_certs.is_some();
    if named && settings.emulator_host.is_some() {
        return wrong(
            "endpoint and ssl_ca_certs name a server, and FIRESTORE_EMULATOR_HOST an emulator: unset one of them",
        );
    }
    let Some(endpoint) = &settings.endpoint else {
        return Ok(());
    };
    if endpoint.contains('@') {
        return wrong(
            "endpoint has a user in it: write https://HOST[:PORT], credentials are a file",
        );
    }
    let uri = endpoint.parse::<http::Uri>().unwrap_or_default();
    let authority = uri.authority();
    let is_server = authority.is_some_and(|it| it.port_u16().is_some() || it.as_str() == it.host());
    let is_bare = matches!(uri.path(), "/" | "") && uri.query().is_none();
    match uri.scheme_str() {
        Some("https") if is_server && is_bare => Ok(()),
        Some("http") => wrong(&format!(
            "endpoint {endpoint:?} has no TLS, and who listens could use the token that each request has with it: write \
             https://, or name an emulator by FIRESTORE_EMULATOR_HOST"
        )),
        Some(_) | None => wrong(&format!(
            "endpoint {endpoint:?} is not https://HOST[:PORT], as in https://firestore-shop.p.googleapis.com"
        )),
    }
}

/// Whether it is `host:port`.
fn is_authority(text: &str) -> bool {
    let parsed = text.parse::<http::uri::Authority>();
    parsed.is_ok_and(|it| it.port_u16().is_some() && !text.contains('@'))
}

fn wrong<T>(what: &str) -> Result<T, Error> {
    Err(Error::invalid(format!(
        "Firestore store: {what}; nothing was dialled, fix the setting before you retry"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_names_project_database_and_prefix() {
        let settings = FirestoreSettings::from_url("firestore://shop-prod").unwrap();
        assert_eq!(settings.database, "(default)");
        assert_eq!(settings.prefix, "semel");
        let named =
            FirestoreSettings::from_url("firestore://example.com:shop-1/%28default%29").unwrap();
        assert_eq!(named.project, "example.com:shop-1");
        assert_eq!(named.database, "(default)");
        for url in [
            "firestore:shop",
            "firestore://shop-prod?x=1",
            "firestore://shop-prod?prefix",
        ] {
            let error = FirestoreSettings::from_url(url).unwrap_err().to_string();
            assert!(error.contains("firestore://PROJECT"), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_an_id_is_refused_before_anything_is_dialled() {
        let refused = |change: fn(&mut FirestoreSettings)| {
            let mut settings = FirestoreSettings::new("shop-prod");
            settings.emulator_host = Some("127.0.0.1:1".into());
            change(&mut settings);
            settings.validate().unwrap_err().to_string()
        };
        for project in ["prod", "Shop Production", "123456789", "shop-prod-", ""] {
            let error = FirestoreSettings::new(project).validate();
            let error = error.unwrap_err().to_string();
            assert!(error.contains("is not a project's id"), "{error}");
        }
        assert!(refused(|it| it.database = "d/x".into()).contains("database's id"));
        assert!(refused(|it| it.prefix = "__x".into()).contains("prefix"));
        assert!(refused(|it| it.timeout = Duration::ZERO).contains("timeout"));
        let host = refused(|it| it.emulator_host = Some("http://localhost".into()));
        assert!(host.contains("FIRESTORE_EMULATOR_HOST"), "{host}");
    }
}
