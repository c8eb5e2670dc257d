//! Each subscription has a keeper: it sees to deadlines, dead letters and pushes, and wakes who waits when a moment has
//! come. In between it sleeps.

use super::house::House;
use super::things::Subscription;
use crate::clock::Time;
use std::sync::Arc;

/// Messages forwarded to a dead-letter topic in one commit: each may have 10 MB.
const BURIED_AT_ONCE: usize = 64;

// === impl House ===

impl House {
    pub(super) fn keep_all(self: &Arc<Self>) {
        let all: Vec<_> = self.names().subscriptions.values().cloned().collect();
        for subscription in all {
            self.keep(subscription);
        }
    }

    /// Looks after a subscription until it is deleted.
    pub(super) fn keep(self: &Arc<Self>, subscription: Arc<Subscription>) {
        let house = Arc::clone(self);
        tokio::spawn(async move {
            let mut wake = subscription.wake.subscribe();
            while !subscription.inside().deleted {
                wake.borrow_and_update();
                let next = house.look_after(&subscription).await;
                tokio::select! {
                    _ = wake.changed() => {}
                    () = house.moment(next) => house.touch(&subscription),
                    () = house.closed.cancelled() => return,
                }
            }
        });
    }

    /// Does what is due; answers when to look again.
    async fn look_after(self: &Arc<Self>, subscription: &Arc<Subscription>) -> Option<Time> {
        let now = self.context.clock.now();
        let (ended, dying) = {
            let mut inside = subscription.inside();
            let ended = inside.backlog.expire(now);
            let dropped = inside.backlog.sweep(now);
            self.throw_away(subscription, inside.number, &dropped);
            (ended, inside.backlog.dying())
        };
        if !ended.is_empty() {
            self.note(ended, now);
            self.touch(subscription);
        }
        for places in dying.chunks(BURIED_AT_ONCE) {
            self.bury(subscription, places).await;
        }
        let pushing = self.push(subscription);
        let waiting = subscription.inside().backlog.next_moment(now);
        pushing.into_iter().chain(waiting).min()
    }

    async fn moment(&self, moment: Option<Time>) {
        match moment {
            Some(moment) => self.context.clock.sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }
}
