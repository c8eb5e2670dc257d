//! Redelivery: how often a sender delivers a piece of work before it gives up, and whether a delivery says which attempt it is.
//! Letters, `semel check` and the proof of a promise follow from it.

use super::{SenderAttempts, Source, Terms, Webhook};
use crate::delivery::Transport;
use semel::letter::Attempt;
use semel::store::RETENTION_MAX;
use std::time::Duration;

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

/// Fewest deliveries that a dead-letter policy of Pub/Sub can ask for. Where deliveries are counted and the route does not say
/// how many there are, each from this one on may be the last.
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
        match (Self::of(source, attempts), source, transport.attempt()) {
            (Self::Counted(_), _, None) => Self::Uncounted,
            // The subscription has a dead-letter policy that the route does not mention.
            (Self::Unlimited, Source::PubSub, Some(number)) if !attempts.declared => {
                if number < u64::from(PUBSUB_ATTEMPTS_MIN) {
                    Self::Counted(PUBSUB_ATTEMPTS_MIN)
                } else {
                    Self::Uncounted
                }
            }
            (Self::Unlimited, Source::PubSub, None)
                if transport.is_unwrapped && !attempts.declared =>
            {
                Self::Uncounted
            }
            (known, _, _) => known,
        }
    }

    /// The expectation that the sender of this attempt delivers again.
    pub(crate) fn attempt(self, number: Option<u64>) -> Attempt {
        match self {
            Self::Unlimited => Attempt::OneOfMany,
            Self::Counted(_) if !self.is_last(number) => Attempt::OneOfMany,
            Self::Counted(_) | Self::Uncounted | Self::Once => Attempt::MayBeLast,
        }
    }

    /// Returns whether this attempt is known to be the last.
    pub(crate) fn is_last(self, number: Option<u64>) -> bool {
        match self {
            Self::Once => true,
            Self::Counted(most) => number.is_some_and(|number| number >= u64::from(most)),
            Self::Uncounted | Self::Unlimited => false,
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

    /// Shortest time for which the record of unfinished work is remembered: a sender without a limit gives up by its age, and
    /// the record may be all that tells it.
    #[must_use]
    pub fn unfinished_retention(&self, source: Source) -> Duration {
        match self.redelivery(source) {
            Redelivery::Unlimited => self.delivers_for.unwrap_or_default().min(RETENTION_MAX),
            Redelivery::Counted(_) | Redelivery::Uncounted | Redelivery::Once => Duration::ZERO,
        }
    }
}
