//! The table of sources: how often each delivers, for how long, and when its unfinished work becomes a letter. `semel check` and
//! docs/promises.md show the same rows.

#[cfg(test)]
use super::terms::{RouteTerms, terms};
use super::values::written;
use semel_gate::settings::{RecordKeeping, Redelivery, Route, Source, Terms, Webhook};
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

/// A limit of a sender, documented or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderLimit<T> {
    pub(crate) most: T,
    /// True where the sender documents it; otherwise it is an assumption.
    pub(crate) is_documented: bool,
    pub(crate) why: &'static str,
}

/// The longest `deadline` that a sender has.
pub(crate) fn deadline_max(source: Source, route: &Route) -> Option<SenderLimit<Duration>> {
    let (most, is_documented, why) = match source {
        Source::Api => return None,
        Source::PubSub => (600, true, "an ack deadline of Pub/Sub is 10m at most"),
        // Eventarc asks for no handshake.
        Source::CloudEvents if !route.webhook_origins.is_empty() => (
            600,
            false,
            "no sender of CloudEvents is known to wait longer than Eventarc, which waits 10m",
        ),
        Source::CloudEvents => (
            600,
            true,
            "Eventarc delivers through Pub/Sub, whose ack deadline is 10m at most",
        ),
        Source::CloudTasks => (
            30 * 60,
            true,
            "Cloud Tasks waits 30m at most for an HTTP target (an App Engine target may take 24h, but the gate is none)",
        ),
        Source::Webhook(Webhook::GitHub) => (10, true, "GitHub waits 10s for an answer"),
        Source::Webhook(Webhook::Shopify) => (5, true, "Shopify waits 5s for an answer"),
        Source::Webhook(Webhook::Standard) => (
            30,
            true,
            "Standard Webhooks has its senders wait for 15s to 30s",
        ),
        Source::Webhook(Webhook::Stripe) => (
            10,
            false,
            "Stripe does not document how long it waits for an answer; 10s is assumed",
        ),
    };
    Some(SenderLimit {
        most: Duration::from_secs(most),
        is_documented,
        why,
    })
}

/// The largest body that a sender may deliver. Where none is documented, it is the default of `body_bytes_max`.
pub(crate) fn body_bytes_max_of(source: Source) -> Option<SenderLimit<usize>> {
    const MIB: usize = 1 << 20;
    // A message of 10 MB in base64, and a MiB for its attributes, escaped, and the envelope.
    const MESSAGE: usize = 10 * MIB / 3 * 4 + MIB;
    let (most, is_documented, why) = match source {
        Source::Api => return None,
        Source::CloudTasks => (MIB, true, "a task of 1 MiB"),
        Source::PubSub => (MESSAGE, true, "a message of 10 MB in its envelope"),
        Source::CloudEvents => (
            MESSAGE,
            true,
            "an event of Eventarc that carries a message of 10 MB in its envelope",
        ),
        Source::Webhook(Webhook::GitHub) => (25 * MIB, true, "a payload of 25 MB"),
        Source::Webhook(Webhook::Stripe | Webhook::Shopify | Webhook::Standard) => (
            16 * MIB,
            false,
            "larger payloads (no limit is documented; a promise needs the default of body_bytes_max)",
        ),
    };
    Some(SenderLimit {
        most,
        is_documented,
        why,
    })
}

/// The largest head of a request, with what a letter adds to it.
const LETTER_HEAD_BYTES: u64 = 128 * 1024;

/// The quota of letters that holds one of the largest body. Letters that a sender can cause at will have half of it.
pub(crate) const fn letters_bytes_min(route: &Route) -> u64 {
    (route.body_bytes_max as u64)
        .saturating_add(LETTER_HEAD_BYTES)
        .saturating_mul(2)
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
    let stateless = SourceRow::of(
        Source::PubSub,
        &terms(Source::PubSub, &plain()),
        RecordKeeping::None,
    );
    let stateless =
        stateless.markdown("any of them but `api`, `record = \"none\"` (here `pubsub`)");
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
    let rows = rows.map(|(title, source, own)| {
        SourceRow::of(source, &terms(source, &own), RecordKeeping::Store).markdown(&title)
    });
    rows.chain([stateless]).collect()
}

// === impl SourceRow ===

impl SourceRow {
    pub(crate) fn of(source: Source, terms: &Terms, record: RecordKeeping) -> Self {
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
            letter: match record {
                RecordKeeping::Store => letter(source, terms, redelivery),
                RecordKeeping::None => "never: without a record nothing is kept".into(),
            },
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
