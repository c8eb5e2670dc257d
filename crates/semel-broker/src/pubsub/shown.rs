//! Topics and subscriptions as people are shown them.

use super::Registry;
use super::resources::{Subscription, Topic};
use std::sync::Arc;

/// A topic and who subscribes to it.
#[derive(Debug)]
pub(crate) struct ShownTopic {
    pub(crate) name: String,
    pub(crate) subscriptions: Vec<String>,
}

/// A subscription and what is left of its backlog.
#[derive(Debug)]
pub(crate) struct ShownSubscription {
    pub(crate) name: String,
    pub(crate) topic: String,
    /// Where it pushes to; it is pulled from if there is nothing.
    pub(crate) push_endpoint: String,
    pub(crate) waiting: usize,
    /// On their way, and not acknowledged.
    pub(crate) outstanding: usize,
}

// === impl Registry ===

impl Registry {
    /// Every topic, of all projects.
    pub(crate) fn shown_topics(&self) -> Vec<ShownTopic> {
        let topics: Vec<Arc<Topic>> = self.names().topics.values().cloned().collect();
        let shown = |topic: Arc<Topic>| {
            let state = topic.state();
            ShownTopic {
                name: state.settings.name.clone(),
                subscriptions: state
                    .subscriptions
                    .iter()
                    .map(|it| it.name.clone())
                    .collect(),
            }
        };
        topics.into_iter().map(shown).collect()
    }

    /// Every subscription, of all projects.
    pub(crate) fn shown_subscriptions(&self) -> Vec<ShownSubscription> {
        let all: Vec<Arc<Subscription>> = self.names().subscriptions.values().cloned().collect();
        let shown = |subscription: Arc<Subscription>| {
            let state = subscription.state();
            let (waiting, unfinished) = (state.backlog.waiting(), state.backlog.unfinished());
            let push = state.settings.push_config.as_ref();
            ShownSubscription {
                name: subscription.name.clone(),
                topic: state.settings.topic.clone(),
                push_endpoint: push.map_or_else(String::new, |it| it.push_endpoint.clone()),
                waiting,
                outstanding: unfinished.saturating_sub(waiting),
            }
        };
        all.into_iter().map(shown).collect()
    }
}
