//! Opening the store that a URL names.

use crate::config::StoreOptions;
use crate::store_url::StoreUrl;
use anyhow::Context;
use semel::Error;
use semel::memory::MemoryStore;
use semel::store::Letters;
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use semel_firestore::{FirestoreSettings, FirestoreStore};
use semel_postgres::{PostgresSettings, PostgresStore};
use semel_redis::{RedisSettings, RedisStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store, and what its user should know about it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Letters>,
    pub(crate) says: String,
    /// What its server says of what it can lose; none where there is no server.
    pub(crate) server: Option<ServerSettings>,
}

// === impl Opened ===

impl Opened {
    /// What a gate has in a store's place whose routes keep no records: nothing is ever put there.
    pub(crate) fn nothing() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            says: "none: no route keeps records".into(),
            server: None,
        }
    }
}

/// The settings of a store's server.
#[derive(Clone, Debug)]
pub(crate) enum ServerSettings {
    Postgres(semel_postgres::DurabilitySettings),
    Redis(semel_redis::DurabilitySettings),
}

/// What becomes of a database whose schema is missing or old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    /// It is migrated first.
    BroughtUpToDate,
    /// It is refused: whoever only looks, or acts on one record, changes no database.
    AsItIs,
}

/// Opens the store that a URL names, as `semel gate` does it with default options, for front ends that have no gate.
///
/// # Errors
/// Those of the store; `Invalid` for a URL that names none.
pub async fn open_store(url: &str) -> Result<Arc<dyn Letters>, Error> {
    let url = url.parse::<StoreUrl>().map_err(Error::invalid)?;
    let opened = open(&url, StoreOptions::default(), Schema::BroughtUpToDate).await;
    opened.map(|opened| opened.store).map_err(|error| {
        // Under the words that say which store it was.
        error
            .downcast()
            .unwrap_or_else(|other| Error::bug(format!("{other:#}")))
    })
}

/// Opens a store.
///
/// # Errors
/// Those of the store; the message names it without its password.
pub(crate) async fn open(
    url: &StoreUrl,
    options: StoreOptions,
    schema: Schema,
) -> anyhow::Result<Opened> {
    let (store, says, server): (Arc<dyn Letters>, _, _) = match url {
        StoreUrl::Embedded(path) => {
            let directory = path.display();
            let store = EmbeddedStore::open(path, EmbeddedSettings::default())
                .with_context(|| format!("the store dir:{directory}"))?;
            let says = format!("embedded in {directory}, for this process alone");
            (Arc::new(store), says, None)
        }
        StoreUrl::Postgres(url) => {
            let mut settings = postgres(url, options);
            settings.migrate = schema == Schema::BroughtUpToDate;
            let store = PostgresStore::connect(settings)
                .await
                .context("the PostgreSQL store")?;
            let says = format!("PostgreSQL; {}; {}", store.durability(), store.encryption());
            let server = ServerSettings::Postgres(store.durability_settings().clone());
            (Arc::new(store), says, Some(server))
        }
        StoreUrl::Redis(url) => {
            let store = RedisStore::connect(RedisSettings::new(url))
                .await
                .context("the Redis store")?;
            let says = format!("Redis; {}", store.durability());
            let server = ServerSettings::Redis(store.start_notes().settings.clone());
            (Arc::new(store), says, Some(server))
        }
        StoreUrl::Firestore(url) => {
            let store = FirestoreStore::connect(firestore(url)?)
                .await
                .context("the Firestore store")?;
            let says = format!("{}, in the handler's own database", store.place());
            (Arc::new(store), says, None)
        }
    };
    Ok(Opened {
        store,
        says,
        server,
    })
}

/// What opening a store would refuse before it dials anything: its URL, and the files that it names.
///
/// # Errors
/// Those of the store; the message names it without its password.
pub(crate) fn judge(url: &StoreUrl, options: StoreOptions) -> Result<(), semel::Error> {
    match url {
        StoreUrl::Embedded(path) if path.exists() && !path.is_dir() => {
            Err(Error::invalid(format!(
                "{} is not a directory: name one, or one that is not there yet",
                path.display()
            )))
        }
        StoreUrl::Embedded(_) => Ok(()),
        StoreUrl::Postgres(url) => postgres(url, options).validate(),
        StoreUrl::Redis(url) => RedisSettings::new(url).validate(),
        StoreUrl::Firestore(url) => firestore(url)?.validate(),
    }
}

/// Returns whether this Firestore is an emulator, which keeps everything in memory.
pub(crate) fn is_emulator(url: &str) -> bool {
    firestore(url).is_ok_and(|settings| settings.emulator_host.is_some())
}

/// The URL, and what Google's own clients read from the environment.
#[allow(
    clippy::disallowed_methods,
    reason = "the command alone reads the environment"
)]
fn firestore(url: &str) -> Result<FirestoreSettings, Error> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut settings = FirestoreSettings::from_url(url)?;
    settings.emulator_host = variable("FIRESTORE_EMULATOR_HOST");
    settings.metadata_host = variable("GCE_METADATA_HOST");
    let given = variable("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
    settings.credentials_file = given.or_else(|| {
        // Where `gcloud auth application-default login` leaves them.
        let gcloud = variable("CLOUDSDK_CONFIG").map(PathBuf::from);
        let home = || Some(Path::new(&variable("HOME")?).join(".config/gcloud"));
        let file = gcloud
            .or_else(home)?
            .join("application_default_credentials.json");
        file.exists().then_some(file)
    });
    Ok(settings)
}

pub(crate) fn postgres(url: &str, options: StoreOptions) -> PostgresSettings {
    let mut settings = PostgresSettings::new(url);
    settings.pooler = options.pooler;
    settings.relaxed_claims = options.relaxed_claims;
    settings
}
