//! Messages that were tried often enough go to the dead-letter topic.

use super::backlog::Sequence;
use super::names::{project, short};
use super::registry::Registry;
use super::resources::Subscription;
use super::rows;
use crate::clock::Time;
use crate::proto::pubsub as wire;
use crate::storage::Batch;
use tonic::Status;

const COUNT: &str = "CloudPubSubDeadLetterSourceDeliveryCount";
const SUBSCRIPTION: &str = "CloudPubSubDeadLetterSourceSubscription";
const PROJECT: &str = "CloudPubSubDeadLetterSourceSubscriptionProject";
const PUBLISH_TIME: &str = "CloudPubSubDeadLetterSourceTopicPublishTime";

// === impl Registry ===

impl Registry {
    /// Forwards messages that had enough attempts; they stay if that cannot be done.
    pub(super) async fn dead_letter(&self, subscription: &Subscription, sequences: &[Sequence]) {
        let _shared = self.topology.read().await;
        let forwarded = self.forward(subscription, sequences).await;
        let now = self.context.clock.now();
        {
            let mut state = subscription.state();
            let dead_lettering = sequences.iter().copied();
            let dead_lettering: Vec<Sequence> = dead_lettering
                .filter(|it| state.backlog.is_dead_lettering(*it))
                .collect();
            for sequence in dead_lettering {
                match forwarded {
                    Ok(()) => state.backlog.acknowledged(sequence),
                    Err(_) => self.note(state.backlog.keep(sequence, now), now),
                }
            }
        }
        self.notify(subscription);
    }

    /// One commit: there they are, and here they are not.
    async fn forward(
        &self,
        subscription: &Subscription,
        sequences: &[Sequence],
    ) -> Result<(), Status> {
        let (settings, number, dead_lettering) = {
            let state = subscription.state();
            // A seek may have come in between.
            let dead_lettering = sequences
                .iter()
                .filter(|it| state.backlog.is_dead_lettering(**it));
            let dead_lettering: Vec<_> = dead_lettering
                .map(|it| (*it, state.backlog.attempts(*it)))
                .collect();
            (state.settings.clone(), state.number, dead_lettering)
        };
        let policy = settings.dead_letter_policy.unwrap_or_default();
        let topic = self.topic(&policy.dead_letter_topic)?;
        let mut batch = Batch::default();
        let mut letters = Vec::with_capacity(dead_lettering.len());
        for (sequence, attempts) in dead_lettering {
            let message = rows::message(&self.context.storage, number, sequence)?;
            let Some(mut message) = message else {
                continue;
            };
            mark(&mut message, &subscription.name, attempts);
            letters.push(message);
            let retain = settings.retain_acked_messages;
            rows::end_message(&mut batch, number, sequence, attempts, retain);
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
