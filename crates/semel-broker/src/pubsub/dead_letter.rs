//! Messages that were tried often enough go to the dead-letter topic.

use super::backlog::Place;
use super::errors::unwritten;
use super::house::House;
use super::names::{project, short};
use super::rows;
use super::things::Subscription;
use crate::clock::Time;
use crate::proto::pubsub as wire;
use crate::storage::Batch;
use tonic::Status;

const COUNT: &str = "CloudPubSubDeadLetterSourceDeliveryCount";
const SUBSCRIPTION: &str = "CloudPubSubDeadLetterSourceSubscription";
const PROJECT: &str = "CloudPubSubDeadLetterSourceSubscriptionProject";
const PUBLISH_TIME: &str = "CloudPubSubDeadLetterSourceTopicPublishTime";

// === impl House ===

impl House {
    /// Forwards messages that are dying; they stay if that cannot be done.
    pub(super) async fn bury(&self, subscription: &Subscription, places: &[Place]) {
        let _shared = self.floor.read().await;
        let forwarded = self.forward(subscription, places).await;
        let now = self.context.clock.now();
        {
            let mut inside = subscription.inside();
            let dying = places.iter().copied();
            let dying: Vec<Place> = dying.filter(|it| inside.backlog.is_dying(*it)).collect();
            for place in dying {
                match forwarded {
                    Ok(()) => inside.backlog.left(place),
                    Err(_) => self.note(inside.backlog.stays(place, now), now),
                }
            }
        }
        self.touch(subscription);
    }

    /// One commit: there they are, and here they are not.
    async fn forward(&self, subscription: &Subscription, places: &[Place]) -> Result<(), Status> {
        let (settings, number, dying) = {
            let inside = subscription.inside();
            // A seek may have come in between.
            let dying = places.iter().filter(|it| inside.backlog.is_dying(**it));
            let dying: Vec<_> = dying
                .map(|it| (*it, inside.backlog.attempts(*it)))
                .collect();
            (inside.settings.clone(), inside.number, dying)
        };
        let policy = settings.dead_letter_policy.unwrap_or_default();
        let topic = self.topic(&policy.dead_letter_topic)?;
        let mut batch = Batch::default();
        let mut letters = Vec::with_capacity(dying.len());
        for (place, attempts) in dying {
            let message = rows::message(&self.context.storage, number, place);
            let Some(mut message) = message.map_err(|error| unwritten(&error))? else {
                continue;
            };
            mark(&mut message, &subscription.name, attempts);
            letters.push(message);
            let standing = wire::KeptStanding {
                attempts,
                acknowledged: true,
            };
            match settings.retain_acked_messages {
                true => rows::put_standing(&mut batch, number, place, &standing),
                false => rows::delete_message(&mut batch, number, place),
            }
        }
        if !letters.is_empty() {
            self.publish_with(&topic, letters, batch).await?;
        }
        Ok(())
    }
}

/// Says where the message comes from.
fn mark(message: &mut wire::PubsubMessage, subscription: &str, attempts: u32) {
    let published = message.publish_time.as_ref().map(Time::of);
    let published = rfc3339(published.unwrap_or_default(), "+00:00");
    message.attributes.extend([
        (COUNT.to_owned(), attempts.to_string()),
        (SUBSCRIPTION.to_owned(), short(subscription).to_owned()),
        (PROJECT.to_owned(), project(subscription).to_owned()),
        (PUBLISH_TIME.to_owned(), published),
    ]);
}

/// A moment to the millisecond, without a fraction when there is none.
pub(super) fn rfc3339(moment: Time, zone: &str) -> String {
    let seconds = moment.0.div_euclid(1_000_000);
    let millis = moment.0.rem_euclid(1_000_000) / 1000;
    let whole = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    let whole = whole.strftime("%Y-%m-%dT%H:%M:%S");
    match millis {
        0 => format!("{whole}{zone}"),
        millis => format!("{whole}.{millis:03}{zone}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_production_does() {
        let moment = Time(1_614_366_835_740_000);
        assert_eq!(rfc3339(moment, "Z"), "2021-02-26T19:13:55.740Z");
        let whole = Time(1_614_366_835_000_000);
        assert_eq!(rfc3339(whole, "+00:00"), "2021-02-26T19:13:55+00:00");
    }
}
