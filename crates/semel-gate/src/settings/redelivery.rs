//! Redelivery: how often a sender delivers a piece of work before it gives up, and whether a delivery says which attempt it is.
//! Letters, `semel check` and the proof of a promise follow from it.

use super::{SenderAttempts, Source, Terms, Webhook};
use crate::delivery::Transport;

/// A sender's attempts at one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redelivery {
    /// Unlimited in number: it delivers until it is acknowledged, or a time is over.
    Unlimited,
    /// At most this many, and each delivery says which attempt it is.
    Counted(u32),
    /// A limited number, and no delivery says which attempt it is.
    Uncounted,
    /// One.
    Once,
}

/// Fewest deliveries that a dead-letter policy of Pub/Sub can ask for. Assumed where deliveries are counted and the route does
/// not say how many there are.
const PUBSUB_ATTEMPTS_MIN: u32 = 5;

// === impl Redelivery ===

impl Redelivery {
    /// The attempts of a sender, by the settings of its route.
    #[must_use]
    pub const fn of(source: Source, attempts: SenderAttempts) -> Self {
        match (source, attempts.most) {
            (Source::Api, _) => Self::Unlimited,
            (_, Some(1)) => Self::Once,
            (Source::CloudTasks | Source::PubSub, Some(most)) => Self::Counted(most),
            (Source::CloudEvents | Source::Webhook(_), Some(_)) => Self::Uncounted,
            // These senders follow a schedule that ends, whatever its number of attempts.
            (Source::Webhook(Webhook::Stripe | Webhook::Shopify | Webhook::Standard), None)
                if !attempts.declared =>
            {
                Self::Uncounted
            }
            (_, None) => Self::Unlimited,
        }
    }

    /// The same for one delivery, which may show more than the settings say.
    #[must_use]
    pub fn of_delivery(source: Source, attempts: SenderAttempts, transport: &Transport) -> Self {
        let counted = transport.attempt().is_some();
        match (Self::of(source, attempts), source) {
            (Self::Counted(_), _) if !counted => Self::Uncounted,
            // The subscription has a dead-letter policy that the route does not mention.
            (Self::Unlimited, Source::PubSub) if counted && !attempts.declared => {
                Self::Counted(PUBSUB_ATTEMPTS_MIN)
            }
            (Self::Unlimited, Source::PubSub) if transport.is_unwrapped && !attempts.declared => {
                Self::Uncounted
            }
            (known, _) => known,
        }
    }
}

// === impl Terms ===

impl Terms {
    /// The attempts of this source's sender.
    #[must_use]
    pub const fn redelivery(&self, source: Source) -> Redelivery {
        Redelivery::of(source, self.sender_attempts)
    }
}
