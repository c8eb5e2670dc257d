//! How verdicts and events are said.

use crate::judge::timeline::{Event, What};
use crate::judge::verdict::{BreachKind, Verdict};
use crate::printable::plain;
use std::time::Duration;

pub(super) fn how(how: BreachKind) -> &'static str {
    match how {
        BreachKind::EffectTwice => "effect twice",
        BreachKind::EffectLost => "effect lost",
        BreachKind::AnswersDiffer => "answers differ",
        BreachKind::Stuck => "stuck for ever",
        BreachKind::Poison => "poison retried for ever",
        BreachKind::Died => "process ended by a delivery",
    }
}

/// One word.
pub(super) fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Held => "held",
        Verdict::Broken(_) => "broken",
        Verdict::Vacuous { .. } => "vacuous",
        Verdict::NotRun { .. } => "not run",
    }
}

/// What more there is to say of it in a line.
pub(super) fn remark(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Held => String::new(),
        Verdict::Broken(broken) => format!("{}: {}", how(broken.how), broken.seen),
        Verdict::Vacuous { why } | Verdict::NotRun { why } => why.clone(),
    }
}

/// What happened, in a line.
pub(super) fn event(event: &Event) -> String {
    match &event.what {
        What::Sent { id, attempt } => format!("delivers {id} (attempt {attempt})"),
        What::Answered {
            id,
            attempt,
            status,
            accepted,
            known,
        } => {
            let meaning = if *accepted { "success" } else { "not yet" };
            let lost = if *known { "" } else { ", which is lost" };
            format!("hears {status} for {id} (attempt {attempt}): {meaning}{lost}")
        }
        What::Unanswered { id, attempt, why } => {
            format!("hears nothing for {id} (attempt {attempt}): {why}")
        }
        What::Wire { outward, says, .. } => {
            let way = if *outward { "is asked" } else { "answers" };
            format!("{way}: {says}")
        }
        What::Killed => "is killed".into(),
        What::Ended => "ended by itself".into(),
        What::Started => "starts".into(),
        What::Paused => "is paused".into(),
        What::Resumed => "goes on".into(),
        What::Effects { effect, id, count } => format!("{effect}: {count} × for {id}"),
    }
}

pub(super) fn millis(span: Duration) -> String {
    format!("{:.0} ms", span.as_secs_f64() * 1e3)
}

/// For XML and HTML.
pub(super) fn escape(text: &str) -> String {
    let text = plain(text).replace('&', "&amp;").replace('"', "&quot;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}
