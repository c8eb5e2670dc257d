//! What an attack needs. Where it is missing, the attack is not run, and the report says why.

use super::session::Session;
use crate::scenario::{Deliver, SenderKind};

/// What an attack cannot be made without.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need {
    /// A process that may be killed and paused.
    Process,
    /// A dependency, behind a proxy.
    Dependency,
    /// A connection between sender and handler.
    Connection,
    /// A sender that can be told to which process it delivers.
    Addressing,
    /// A handler that was started here.
    OwnHandler,
    /// Two deliveries that have something to do with each other.
    Entity,
    /// Deliveries that the scenario writes.
    Written,
    /// Another payload under the same key.
    OtherBody,
    /// A payload whose key is missing or malformed.
    BadBody,
}

// === impl Need ===

impl Need {
    /// Why it is missing, if it is.
    pub(super) fn missing(self, session: &Session<'_>) -> Option<String> {
        let deliver = &session.scenario.deliver;
        let by_command = deliver.sender == SenderKind::Command;
        let (missing, why) = match self {
            Self::Process => (
                session.world.attackable().is_empty(),
                "no [[process]] may be attacked: say how the handler is started",
            ),
            Self::Dependency => (
                session.world.endpoints.is_empty(),
                "no [[dependency]]: nothing passes through a proxy, so no boundary is seen",
            ),
            Self::Connection => (by_command, "a command has no connection that could be cut"),
            Self::Addressing => (
                by_command,
                "a command delivers where it will: it cannot be told to deliver to a second process",
            ),
            Self::OwnHandler => (
                deliver.target.is_some(),
                "the handler runs elsewhere: a second process of it cannot be started",
            ),
            Self::Written => (
                deliver.recorded.is_some(),
                "what was recorded is delivered as it is",
            ),
            Self::Entity if deliver.recorded.is_some() => (
                true,
                "what was recorded does not say which deliveries are about the same {entity}",
            ),
            Self::Entity => (
                !deliver.names("{entity}"),
                "nothing that is delivered names an {entity} that two deliveries could be about",
            ),
            Self::OtherBody => return no_body(deliver, deliver.other_body.as_ref(), "other"),
            Self::BadBody => return no_body(deliver, deliver.bad_body.as_ref(), "bad"),
        };
        missing.then(|| why.to_owned())
    }
}

fn no_body(deliver: &Deliver, body: Option<&String>, kind: &str) -> Option<String> {
    if body.is_none() {
        return Some(format!(
            "deliver.{kind}_body does not say what {kind} payload to send"
        ));
    }
    let command = deliver.command.as_ref();
    let without = command.is_some_and(|command| !command.contains("{body}"));
    without.then(|| format!("deliver.command has no {{body}}: deliver.{kind}_body cannot be sent"))
}
