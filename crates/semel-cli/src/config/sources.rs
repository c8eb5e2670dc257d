//! The table of sources: how often each delivers, for how long, and when its unfinished work becomes a letter. `semel check` and
//! docs/promises.md show the same rows.

#[cfg(test)]
use super::terms::{RouteTerms, terms};
use super::values::written;
use semel_gate::settings::{Redelivery, Source, Terms, Webhook};
use std::time::Duration;

/// One row: a source under the terms of a route.
#[derive(Clone, Debug)]
pub(crate) struct SourceRow {
    pub(crate) kind: &'static str,
    pub(crate) attempts: String,
    /// Longest time from the first delivery to the last possible one.
    pub(crate) span: Option<Duration>,
    /// Longest pause between two deliveries.
    pub(crate) gap: Option<Duration>,
    /// The moment when unfinished work becomes a letter.
    pub(crate) letter: String,
}

/// The longest `deadline` that a sender has, and the words for it.
pub(crate) const fn deadline_max(source: Source) -> Option<(Duration, &'static str)> {
    match source {
        Source::PubSub => Some((
            Duration::from_secs(600),
            "an ack deadline of Pub/Sub is 10m at most",
        )),
        Source::CloudEvents => Some((
            Duration::from_secs(600),
            "Eventarc delivers through Pub/Sub, whose ack deadline is 10m at most",
        )),
        Source::CloudTasks => Some((
            Duration::from_secs(30 * 60),
            "Cloud Tasks waits 30m at most for an HTTP target (an App Engine target may take 24h, but the gate is none)",
        )),
        Source::Api | Source::Webhook(_) => None,
    }
}

/// The largest body that a sender may deliver, where that is documented, and the words for it.
pub(crate) const fn body_bytes_max_of(source: Source) -> Option<(usize, &'static str)> {
    const MIB: usize = 1 << 20;
    // A message of 10 MB in base64, and a MiB for its attributes, escaped, and the envelope.
    const MESSAGE: usize = 10 * MIB / 3 * 4 + MIB;
    match source {
        Source::CloudTasks => Some((MIB, "a task of 1 MiB")),
        Source::PubSub => Some((MESSAGE, "a message of 10 MB in its envelope")),
        Source::CloudEvents => Some((
            MESSAGE,
            "an event of Eventarc that carries a message of 10 MB in its envelope",
        )),
        Source::Webhook(Webhook::GitHub) => Some((25 * MIB, "a payload of 25 MB")),
        Source::Webhook(Webhook::Stripe | Webhook::Shopify | Webhook::Standard) | Source::Api => {
            None
        }
    }
}

/// The table in Markdown, with the settings that make a difference.
#[cfg(test)]
pub(crate) fn markdown() -> String {
    let attempts = |most| RouteTerms {
        sender_attempts: Some(most),
        ..RouteTerms::default()
    };
    let plain = RouteTerms::default;
    let webhooks = Webhook::ALL.into_iter().map(|it| {
        let source = Source::Webhook(it);
        (format!("`{source}`"), source, plain())
    });
    let rows = [
        ("`api`".to_owned(), Source::Api, plain()),
        ("`cloud-tasks`".into(), Source::CloudTasks, plain()),
        (
            "`cloud-tasks`, `sender_attempts = \"unlimited\"`".into(),
            Source::CloudTasks,
            attempts(None),
        ),
        ("`pubsub`".into(), Source::PubSub, plain()),
        (
            "`pubsub`, `sender_attempts = 5` (a dead-letter policy)".into(),
            Source::PubSub,
            attempts(Some(5)),
        ),
        ("`cloudevents`".into(), Source::CloudEvents, plain()),
        (
            "`cloudevents`, `sender_attempts = 5`".into(),
            Source::CloudEvents,
            attempts(Some(5)),
        ),
    ];
    let rows = rows.into_iter().chain(webhooks);
    rows.map(|(title, source, own)| SourceRow::of(source, &terms(source, &own)).markdown(&title))
        .collect()
}

// === impl SourceRow ===

impl SourceRow {
    pub(crate) fn of(source: Source, terms: &Terms) -> Self {
        let redelivery = terms.redelivery(source);
        let (kind, attempts) = match redelivery {
            Redelivery::Unlimited => ("unlimited", "no limit".to_owned()),
            Redelivery::Counted(most) => ("counted", most.to_string()),
            Redelivery::Uncounted => {
                let most = terms.sender_attempts.most;
                let attempts = most.map_or("a schedule that ends".into(), |most| most.to_string());
                ("uncounted", attempts)
            }
            Redelivery::Once => ("once", "1".into()),
        };
        Self {
            kind,
            attempts,
            span: terms.horizon,
            gap: terms.gap,
            letter: letter(source, terms, redelivery),
        }
    }

    #[cfg(test)]
    fn markdown(&self, title: &str) -> String {
        let some = |time: Option<Duration>| time.map_or_else(|| "–".into(), written);
        format!(
            "| {title} | {} | {} | {} | {} | {} |\n",
            self.kind,
            self.attempts,
            some(self.span),
            some(self.gap),
            self.letter
        )
    }
}

/// The moment when unfinished work of this sender becomes a letter.
fn letter(source: Source, terms: &Terms, redelivery: Redelivery) -> String {
    if !source.is_broker() {
        return "never: the client has its answer".into();
    }
    match (redelivery, terms.deadline) {
        (Redelivery::Once | Redelivery::Uncounted, _) => "before the run".into(),
        (Redelivery::Counted(most), deadline) => {
            let half = deadline.map_or_else(String::new, |it| format!(" ({})", written(it / 2)));
            format!(
                "after the first run without success, or at half of the deadline{half}; refused before a run: from attempt {} on; \
                 the last attempt: before the run",
                most.div_ceil(2)
            )
        }
        (Redelivery::Unlimited, _) => {
            let long = if terms.outlasts_sender() {
                "at half of the deadline while it runs, else "
            } else {
                ""
            };
            let time = terms.delivers_for.map_or_else(String::new, |time| {
                format!(" ({} after the first delivery)", written(time / 2))
            });
            format!("{long}at half of the time that it delivers{time}")
        }
    }
}
