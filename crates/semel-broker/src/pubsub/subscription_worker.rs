//! Each subscription has a worker: it sees to deadlines, dead letters and pushes, and wakes waiting pulls when a moment has
//! come. In between it sleeps.

use super::registry::Registry;
use super::resources::Subscription;
use crate::clock::Time;
use std::sync::Arc;

/// Messages forwarded to a dead-letter topic in one commit: each may have 10 MB.
const DEAD_LETTERS_AT_ONCE: usize = 64;

// === impl Registry ===

impl Registry {
    pub(super) fn start_workers(self: &Arc<Self>) {
        let all: Vec<_> = self.names().subscriptions.values().cloned().collect();
        for subscription in all {
            self.start_worker(subscription);
        }
    }

    /// Looks after a subscription until it is deleted.
    pub(super) fn start_worker(self: &Arc<Self>, subscription: Arc<Subscription>) {
        let registry = Arc::clone(self);
        tokio::spawn(async move {
            let mut wake = subscription.wake.subscribe();
            while !subscription.state().deleted {
                wake.borrow_and_update();
                let next = registry.run_due_work(&subscription).await;
                tokio::select! {
                    _ = wake.changed() => {}
                    () = registry.sleep_until(next) => registry.notify(&subscription),
                    () = registry.closed.cancelled() => return,
                }
            }
        });
    }

    /// Does what is due; answers when to look again.
    async fn run_due_work(self: &Arc<Self>, subscription: &Arc<Subscription>) -> Option<Time> {
        let now = self.context.clock.now();
        let (ended, dead_lettering) = {
            let mut state = subscription.state();
            let ended = state.backlog.expire(now);
            let dropped = state.backlog.sweep(now);
            self.delete_dropped(subscription, state.number, &dropped);
            (ended, state.backlog.dead_lettering())
        };
        if !ended.is_empty() {
            self.note(ended, now);
            self.notify(subscription);
        }
        for sequences in dead_lettering.chunks(DEAD_LETTERS_AT_ONCE) {
            self.dead_letter(subscription, sequences).await;
        }
        let pushing = self.push(subscription);
        let waiting = subscription.state().backlog.next_moment(now);
        pushing.into_iter().chain(waiting).min()
    }

    async fn sleep_until(&self, moment: Option<Time>) {
        match moment {
            Some(moment) => self.context.clock.sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }
}
