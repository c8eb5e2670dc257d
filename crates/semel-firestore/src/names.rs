//! Where each thing is kept: collections by prefix, documents by key.

use crate::settings::FirestoreSettings;
use semel::letter::LetterId;
use semel::protocol::Fence;
use semel::{Error, Key};
use sha2::{Digest, Sha256};

/// The five collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collection {
    Records,
    Steps,
    Parts,
    Letters,
    Index,
}

/// The document of the index that says whose turn it is to sweep. No name that is looked for begins like it.
pub(crate) const SWEEP: &str = "sweep";

/// Firestore's limit.
const ID_BYTES_MAX: usize = 1_500;

/// The names in one database under one prefix.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// `projects/P/databases/D`
    pub(crate) database: String,
    prefix: String,
}

// === impl Names ===

impl Names {
    pub(crate) fn new(settings: &FirestoreSettings) -> Self {
        Self {
            database: format!(
                "projects/{}/databases/{}",
                settings.project, settings.database
            ),
            prefix: settings.prefix.clone(),
        }
    }

    /// What every document is below.
    pub(crate) fn root(&self) -> String {
        format!("{}/documents", self.database)
    }

    pub(crate) fn collection(&self, collection: Collection) -> String {
        format!("{}_{}", self.prefix, collection.word())
    }

    pub(crate) fn document(&self, collection: Collection, id: &str) -> String {
        format!("{}/{}/{id}", self.root(), self.collection(collection))
    }

    pub(crate) fn record(&self, key: &Key) -> String {
        self.document(Collection::Records, &key.to_string())
    }

    pub(crate) fn step(&self, key: &Key, born: Fence, name: &str) -> String {
        let id = format!(
            "{}{}",
            steps_of(key, born),
            hex::encode(Sha256::digest(name))
        );
        self.document(Collection::Steps, &id)
    }

    pub(crate) fn letter(&self, id: &LetterId) -> String {
        self.document(Collection::Letters, &id.to_string())
    }

    /// A document that is never there: deleting it shows that this database takes writes.
    pub(crate) fn nothing(&self) -> String {
        self.document(Collection::Records, "none")
    }

    /// The document that is said to be `collection/id`, if it can be one of ours that has parts.
    pub(crate) fn owner_of_part(&self, of: &str) -> Option<String> {
        let (collection, id) = of.split_once('/')?;
        let owners = [Collection::Records, Collection::Steps, Collection::Letters];
        let is_ours = owners.iter().any(|it| self.collection(*it) == collection);
        (is_ours && is_id(id)).then(|| format!("{}/{of}", self.root()))
    }

    /// `collection/id` of a document.
    pub(crate) fn below_root<'a>(&self, document: &'a str) -> &'a str {
        let below = document.strip_prefix(&self.root());
        below.map_or(document, |it| it.trim_start_matches('/'))
    }
}

// === impl Collection ===

impl Collection {
    const fn word(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Steps => "steps",
            Self::Parts => "parts",
            Self::Letters => "letters",
            Self::Index => "index",
        }
    }
}

/// How the ids of all steps of an incarnation begin.
pub(crate) fn steps_of(key: &Key, born: Fence) -> String {
    format!("{key}_{born}_")
}

/// The key and the incarnation that a step's id begins with.
pub(crate) fn owner_of_step(document: &str) -> Option<(Key, Fence)> {
    let (rest, _) = id(document).rsplit_once('_')?;
    let (key, born) = rest.rsplit_once('_')?;
    Some((key.parse().ok()?, Fence(born.parse().ok()?)))
}

/// The key whose record a document is.
pub(crate) fn key_of(document: &str) -> Result<Key, Error> {
    id(document).parse().map_err(|_| {
        Error::corrupt(format!(
            "the Firestore document {document} is among the records, and its id is no key; look who else writes in this \
             collection"
        ))
    })
}

/// Whether a document may be called so.
pub(crate) fn is_id(id: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&id.len()) && !id.contains('/') && id != "." && id != ".."
}

/// The last part of a document's name.
pub(crate) fn id(document: &str) -> &str {
    document.rsplit('/').next().unwrap_or(document)
}
