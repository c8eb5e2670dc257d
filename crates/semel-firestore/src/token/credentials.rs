//! Credentials: a service account's file, an authorized user's file, or the metadata server. Other kinds are refused by
//! name.

use super::TokenSource;
use super::jwt::SigningKey;
use semel::Error;
use serde::Deserialize;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;

const METADATA_HOST: &str = "metadata.google.internal";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// Who we are, and who can tell.
#[derive(Debug)]
pub(crate) enum Account {
    Service {
        email: String,
        key: SigningKey,
        key_id: Option<String>,
        token_uri: String,
    },
    User {
        secrets: UserSecrets,
        quota_project: Option<String>,
        token_uri: String,
    },
    /// The account of the machine we run on.
    Machine { token_uri: String },
}

/// What an authorized user's token is asked for with. Never shown.
#[derive(Deserialize)]
pub(crate) struct UserSecrets {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    pub(crate) refresh_token: String,
}

#[derive(Deserialize)]
struct Kind {
    r#type: Option<String>,
}

#[derive(Deserialize)]
struct ServiceFile {
    client_email: String,
    private_key: String,
    private_key_id: Option<String>,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct UserFile {
    #[serde(flatten)]
    secrets: UserSecrets,
    quota_project_id: Option<String>,
    token_uri: Option<String>,
}

/// The account that a file names.
pub(crate) fn from_file(path: &Path) -> Result<TokenSource, Error> {
    let text = std::fs::read(path)
        .map_err(|error| wrong(path, &format!("cannot be read ({error})")).caused_by(error))?;
    // What the parser says could repeat a secret.
    let unreadable = |what: &str| wrong(path, &format!("is no credentials file: {what}"));
    let kind: Kind = serde_json::from_slice(&text).map_err(|_| unreadable("not JSON"))?;
    let account = match kind.r#type.as_deref() {
        Some("service_account") => {
            let needs = "a service account has client_email and private_key";
            let file: ServiceFile = serde_json::from_slice(&text).map_err(|_| unreadable(needs))?;
            Account::Service {
                email: file.client_email,
                key: SigningKey::parse(&file.private_key)
                    .map_err(|what| wrong(path, &format!("has a private_key that {what}")))?,
                key_id: file.private_key_id,
                token_uri: token_uri(path, file.token_uri)?,
            }
        }
        Some("authorized_user") => {
            let needs = "an authorized user has client_id, client_secret and refresh_token";
            let file: UserFile = serde_json::from_slice(&text).map_err(|_| unreadable(needs))?;
            Account::User {
                secrets: file.secrets,
                quota_project: file.quota_project_id,
                token_uri: token_uri(path, file.token_uri)?,
            }
        }
        Some(other) => {
            return Err(wrong(
                path,
                &format!(
                    "is of type {other:?}, which is not supported: use a service_account, an authorized_user (`gcloud auth \
                     application-default login`), or no file where the metadata server is"
                ),
            ));
        }
        None => return Err(unreadable("it has no type")),
    };
    Ok(TokenSource::Account(account))
}

/// Where the token is asked for.
fn token_uri(path: &Path, named: Option<String>) -> Result<String, Error> {
    match named {
        None => Ok(TOKEN_URI.into()),
        Some(uri) if is_safe(&uri) => Ok(uri),
        Some(uri) => Err(wrong(
            path,
            &format!(
                "has the token_uri {uri:?}, which is not https://: who listens could use what it is shown"
            ),
        )),
    }
}

/// Whether nobody on the way sees what is sent there: TLS, or this machine.
fn is_safe(uri: &str) -> bool {
    let uri = uri.parse::<http::Uri>().unwrap_or_default();
    let host = uri.host().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_here = host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback());
    match uri.scheme_str() {
        Some("https") => true,
        Some("http") => is_here,
        Some(_) | None => false,
    }
}

/// The account of the machine we run on.
pub(crate) fn from_metadata(host: Option<&str>) -> Result<TokenSource, Error> {
    let host = host.unwrap_or(METADATA_HOST);
    if host.parse::<http::uri::Authority>().is_err() {
        return Err(Error::invalid(format!(
            "Firestore store: GCE_METADATA_HOST {host:?} is not host[:port]; fix it before you retry"
        )));
    }
    let token_uri =
        format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
    Ok(TokenSource::Account(Account::Machine { token_uri }))
}

fn wrong(path: &Path, what: &str) -> Error {
    Error::invalid(format!(
        "Firestore store: the credentials file {} {what}; nothing was dialled, fix it before you retry",
        path.display()
    ))
}

// === impl Account ===

impl Account {
    /// Whose quota is used, where the token does not say.
    pub(crate) fn quota_project(&self) -> Option<&str> {
        match self {
            Self::User { quota_project, .. } => quota_project.as_deref(),
            Self::Service { .. } | Self::Machine { .. } => None,
        }
    }

    pub(crate) fn token_uri(&self) -> &str {
        match self {
            Self::Service { token_uri, .. }
            | Self::User { token_uri, .. }
            | Self::Machine { token_uri } => token_uri,
        }
    }
}

// === impl UserSecrets ===

impl fmt::Debug for UserSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserSecrets(..)")
    }
}
