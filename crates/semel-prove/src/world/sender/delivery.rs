//! What is delivered: an identity that stays the same, and what is in it.

use crate::scenario::template::Variables;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Something that is delivered, perhaps many times: its identity stays the same.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) id: String,
    /// What it is about: shared by two deliveries that come in the wrong order, otherwise its own.
    pub(crate) entity: String,
    /// Which state of the entity it brings: the highest is the newest.
    pub(crate) version: u64,
    /// On whose behalf: the same id of two tenants names two things.
    pub(crate) tenant: &'static str,
    /// What carries it: its own id unless it was published anew.
    pub(crate) message: String,
    pub(crate) n: u64,
    pub(crate) payload: Payload,
    attempts: Arc<AtomicU32>,
}

/// The tenant of every delivery that no attack gives another one.
const TENANT: &str = "tenant-a";
/// Whose deliveries must be kept apart from those.
pub(crate) const OTHER_TENANT: &str = "tenant-b";

/// What is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// What the scenario calls `body`.
    Default,
    Other,
    Bad,
    /// The default one, with the members of its JSON in another order and other spaces between them.
    Rewritten,
    /// The same with `1.0` for `1`.
    Decimals,
    /// The default one, but the request does not say its key.
    Keyless,
}

// === impl Payload ===

impl Payload {
    /// Whether it is owed its effect. What else came under its key may be refused for ever; the rest must only end.
    pub(crate) fn can_succeed(self) -> bool {
        match self {
            Self::Default | Self::Other | Self::Rewritten | Self::Decimals => true,
            Self::Bad | Self::Keyless => false,
        }
    }
}

// === impl Delivery ===

impl Delivery {
    pub(crate) fn new(id: String, n: u64) -> Self {
        Self {
            entity: id.clone(),
            version: 1,
            tenant: TENANT,
            message: id.clone(),
            id,
            n,
            payload: Payload::Default,
            attempts: Arc::default(),
        }
    }

    /// Another one about the same entity.
    pub(crate) fn about(mut self, entity: Option<&str>) -> Self {
        if let Some(entity) = entity {
            entity.clone_into(&mut self.entity);
        }
        self
    }

    /// What has the same id for another tenant: another message, whose attempts are counted on.
    pub(crate) fn of_tenant(&self, tenant: &'static str) -> Self {
        Self {
            tenant,
            message: format!("{}-{tenant}", self.id),
            ..self.clone()
        }
    }

    /// What differs from the first time it was sent, if anything does.
    pub(crate) fn variant(&self) -> Option<String> {
        let payload = match self.payload {
            Payload::Default => None,
            Payload::Other => Some("with another payload".to_owned()),
            Payload::Bad => Some("with a bad payload".to_owned()),
            Payload::Keyless => Some("without its key".to_owned()),
            Payload::Rewritten => Some("with its JSON written in another order".to_owned()),
            Payload::Decimals => Some("with 1.0 for 1".to_owned()),
        };
        let message = (self.message != self.id).then(|| format!("as message {}", self.message));
        let tenant = (self.tenant != TENANT).then(|| format!("for {}", self.tenant));
        let version = (self.version > 1).then(|| format!("version {}", self.version));
        let said: Vec<String> = [payload, message, tenant, version]
            .into_iter()
            .flatten()
            .collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// These variables, and its own.
    pub(crate) fn variables(&self, others: &Variables) -> Variables {
        others
            .clone()
            .with("id", &self.id)
            .with("entity", &self.entity)
            .with("version", self.version)
            .with("tenant", self.tenant)
            .with("message", &self.message)
            .with("n", self.n)
    }

    /// How often it was sent.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts.load(Ordering::Relaxed)
    }

    pub(super) fn next_attempt(&self) -> u32 {
        self.attempts.fetch_add(1, Ordering::Relaxed) + 1
    }
}
