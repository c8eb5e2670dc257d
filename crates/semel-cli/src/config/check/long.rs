//! Work that takes longer than its sender waits: what makes it safe, and what it costs.

use super::{Finding, Judgement, Verdict};
use crate::config::Config;
use crate::config::sources::SourceRow;
use crate::config::terms::{Bound, TIMEOUT_BROKER, bound, changed_by_copy, is_renamed};
use crate::config::values::written;
use semel_gate::settings::{OnExhausted, Redelivery, Route, Source, Terms};
use std::time::Duration;

/// All findings about how long a route's work may take, source by source.
pub(super) fn check(config: &Config, route: &Route) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in route.sources.iter().copied() {
        let terms = route.terms(source);
        let judged = match terms.deadline {
            // The times of a route without records are judged by themselves.
            _ if !route.keeps_records() => Vec::new(),
            None => Vec::new(),
            Some(deadline) if terms.outlasts_sender() => {
                let long = LongWork {
                    config,
                    source,
                    terms,
                    deadline,
                };
                long.judge()
            }
            Some(deadline) => vec![
                cut_off(terms, deadline),
                shortened(config, source, terms, deadline),
            ],
        };
        let judged = judged
            .into_iter()
            .chain([attempts(route, source, terms)])
            .flatten();
        found.extend(
            judged.map(|(verdict, says)| Finding::route(route, Some(source), verdict, says)),
        );
    }
    found
}

fn cut_off(terms: &Terms, deadline: Duration) -> Judgement {
    let (timeout, given_up) = (written(terms.timeout), written(deadline));
    let says = format!(
        "timeout {timeout} + 1s ≤ deadline {given_up}: the handler is cut off before its sender gives up"
    );
    Some((Verdict::Proved, says))
}

/// Why a default timeout is shorter than it could be.
fn shortened(config: &Config, source: Source, terms: &Terms, deadline: Duration) -> Judgement {
    let bound = bound(source, terms, config.freezes).filter(|_| source.is_broker())?;
    let why = match bound {
        Bound::Frozen => {
            "Cloud Run may stop this process between requests; with instance-based billing, write cpu = \"always\""
                .to_owned()
        }
        Bound::Renamed => {
            let part = changed_by_copy(source, terms).map(ToString::to_string);
            format!(
                "a message that is given up has another {} in its dead-letter topic, and would be other work; key it by what \
                 it is about (key = \"/order_id\")",
                part.unwrap_or_default()
            )
        }
        Bound::Attempts(most) => {
            let covered = written(deadline.saturating_mul(most));
            format!("this sender gives up after sender_attempts {most}, within {covered}")
        }
    };
    let says = format!("a timeout longer than the deadline is not the default here: {why}");
    Verdict::Note.when(terms.timeout < TIMEOUT_BROKER, says)
}

/// The row of the table of sources for this route: how its sender delivers, and when unfinished work becomes a letter.
fn attempts(route: &Route, source: Source, terms: &Terms) -> Judgement {
    let row = SourceRow::of(source, terms, route.record);
    let assumed = if terms.sender_attempts.declared || !source.is_broker() {
        String::new()
    } else {
        format!(" (assumed: {})", assumed(source))
    };
    let some = |time: Option<Duration>| time.map_or_else(|| "unknown".into(), written);
    if !route.keeps_records() {
        let kind = if route.dead_letter_topic {
            "counted"
        } else {
            row.kind
        };
        let says = format!(
            "{kind}: span {}, gap {}; unfinished work becomes a letter: {}",
            some(row.span),
            some(row.gap),
            row.letter
        );
        return Some((Verdict::Note, says));
    }
    let mut says = format!(
        "{}: sender_attempts {}{assumed}, span {}, gap {}; unfinished work becomes a letter: {}",
        row.kind,
        row.attempts,
        some(row.span),
        some(row.gap),
        row.letter,
    );
    says.push_str(match (terms.redelivery(source), route.on_exhausted) {
        (Redelivery::Counted(_) | Redelivery::Once, OnExhausted::Letter) => {
            ", and the sender receives 200"
        }
        (Redelivery::Counted(_) | Redelivery::Once, OnExhausted::Nack) => {
            ", and the sender receives the truth (on_exhausted = \"nack\")"
        }
        (Redelivery::Unlimited | Redelivery::Uncounted, _) => "",
    });
    if source == Source::PubSub && !terms.sender_attempts.declared {
        says.push_str(
            "; a push without its envelope does not say which attempt it is: before the run, unless you write \
             sender_attempts = \"unlimited\"",
        );
    }
    if let Source::Webhook(_) = source {
        says.push_str("; the span does not cover deliveries that a person asks for later");
    }
    Some((Verdict::Note, says))
}

const fn assumed(source: Source) -> &'static str {
    match source {
        Source::CloudTasks => "a queue's default; write the queue's own maxAttempts",
        Source::PubSub => {
            "no dead-letter policy; if the subscription has one, write its max_delivery_attempts"
        }
        Source::CloudEvents => "Eventarc delivers for 24h",
        Source::Webhook(_) | Source::Api => "what such senders do by default",
    }
}

/// Work whose timeout is longer than its sender's deadline.
struct LongWork<'a> {
    config: &'a Config,
    source: Source,
    terms: &'a Terms,
    deadline: Duration,
}

// === impl LongWork ===

impl LongWork<'_> {
    fn judge(&self) -> Vec<Judgement> {
        let broken = [self.frozen(), self.given_up(), self.renamed()];
        if broken.iter().any(Option::is_some) {
            return broken.into();
        }
        vec![
            Some(self.explained()),
            self.killed(),
            self.slowed(),
            self.reordered(),
        ]
    }

    /// Whoever declares the sender's attempts has thought about long work; for others it is the default.
    const fn caution(&self) -> Verdict {
        if self.terms.sender_attempts.declared {
            Verdict::Warning
        } else {
            Verdict::Note
        }
    }

    fn exceeds(&self) -> String {
        let (timeout, deadline) = (written(self.terms.timeout), written(self.deadline));
        if self.terms.timeout > self.deadline {
            format!("timeout {timeout} > deadline {deadline}")
        } else {
            format!("timeout {timeout} + 1s > deadline {deadline}")
        }
    }

    fn frozen(&self) -> Judgement {
        let says = format!(
            "{}, and Cloud Run may stop this process between two requests, in the middle of a run: let it run always \
             (instance-based billing, run.googleapis.com/cpu-throttling: \"false\") and write cpu = \"always\", or shorten \
             timeout",
            self.exceeds()
        );
        Verdict::Broken.when(self.config.freezes, says)
    }

    fn given_up(&self) -> Judgement {
        let most = self.terms.sender_attempts.most?;
        let covered = self.deadline.saturating_mul(most);
        let says = format!(
            "timeout {} > sender_attempts {most} × deadline {} = {}: the sender would give up for good while the handler \
             may still run; shorten timeout, or let the sender try more often",
            written(self.terms.timeout),
            written(self.deadline),
            written(covered)
        );
        let short = self.source.is_broker() && covered < self.terms.timeout;
        Verdict::Broken.when(short, says)
    }

    fn renamed(&self) -> Judgement {
        let part = changed_by_copy(self.source, self.terms)?;
        let says = format!(
            "{}, and the key has {part}: when the subscription gives up in the middle of a run, the copy in its \
             dead-letter topic has another one and would run again; key it by what it is about (key = \"/order_id\" or \
             \"attribute:NAME\")",
            self.exceeds()
        );
        Verdict::Broken.when(is_renamed(self.source, self.terms), says)
    }

    fn explained(&self) -> (Verdict, String) {
        let told = written(self.terms.replies_within().unwrap_or_default());
        let kept = match self.terms.redelivery(self.source) {
            Redelivery::Counted(_) | Redelivery::Unlimited if self.source.is_broker() => {
                let half = written(self.deadline / 2);
                format!("; what still runs after {half} is kept as a letter until it has succeeded")
            }
            Redelivery::Counted(_)
            | Redelivery::Unlimited
            | Redelivery::Uncounted
            | Redelivery::Once => String::new(),
        };
        let says = format!(
            "{}: a run may continue without its sender, which receives 409 after {told}, and the recorded answer when it \
             delivers again after the end{kept}",
            self.exceeds()
        );
        (Verdict::Note, says)
    }

    fn killed(&self) -> Judgement {
        let (grace, timeout) = (self.config.settings.grace, self.terms.timeout);
        let says = format!(
            "grace {} < timeout {}: a gate that is told to stop leaves what runs longer than its grace in doubt",
            written(grace),
            written(timeout)
        );
        self.caution().when(grace < timeout, says)
    }

    fn slowed(&self) -> Judgement {
        let says = "each 409 slows the whole subscription down (push backoff): give long work a subscription of its own, \
                    or raise its ack deadline";
        self.caution().when(self.source == Source::PubSub, says)
    }

    fn reordered(&self) -> Judgement {
        let says = "where messages are ordered, one that is kept as a letter and acknowledged lets its successors pass";
        self.caution().when(self.source == Source::PubSub, says)
    }
}
