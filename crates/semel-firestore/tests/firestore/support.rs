//! What the tests of this crate share: a store in a project of its own, and time that passes.

use async_trait::async_trait;
use semel::Store;
use semel::conformance::Subject;
use semel::protocol::Owner;
use semel::store::Letters;
use semel_firestore::{FirestoreSettings, FirestoreStore};
use std::sync::Arc;
use std::time::Duration;
use testbed::{Certificates, Google, Validity};

/// A store whose time can be let pass.
pub(crate) struct Aged(pub(crate) Arc<FirestoreStore>);

impl Aged {
    pub(crate) async fn connect(settings: FirestoreSettings) -> Self {
        Self(Arc::new(FirestoreStore::connect(settings).await.unwrap()))
    }
}

#[async_trait]
impl Subject for Aged {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.0) as Arc<dyn Store>
    }

    fn letters(&self) -> Option<Arc<dyn Letters>> {
        Some(Arc::clone(&self.0) as _)
    }

    async fn advance(&self, by: Duration) {
        self.0.let_pass(by);
    }
}

/// Settings for a project that nobody else uses; none where there is no emulator, which is said at the end of the run.
pub(crate) fn settings() -> Option<FirestoreSettings> {
    let host = testbed::firestore_host().unwrap()?;
    let own = Owner::random().to_string();
    let mut settings = FirestoreSettings::new(format!("test-{}", own.get(..13).unwrap()));
    settings.emulator_host = Some(host);
    // Google's machines are faster than this one while it compiles.
    settings.timeout = Duration::from_secs(20);
    settings.sweep_every = Duration::ZERO;
    Some(settings)
}

/// Firestore behind TLS on this machine, and settings by which it is reached and believed.
pub(crate) fn google(emulator: Option<&str>) -> (Certificates, Google, FirestoreSettings) {
    let ca = Certificates::new().unwrap();
    let certificate = ca.issue("google", "DNS:localhost", Validity::Now).unwrap();
    let google = Google::start(&certificate, emulator).unwrap();
    let (endpoint, root) = (google.endpoint("localhost"), ca.root());
    let url = format!(
        "firestore://shop-prod?endpoint={endpoint}&ssl_ca_certs={}",
        root.display()
    );
    let mut settings = FirestoreSettings::from_url(&url).unwrap();
    settings.metadata_host = Some(google.metadata_host());
    settings.timeout = Duration::from_secs(20);
    (ca, google, settings)
}
