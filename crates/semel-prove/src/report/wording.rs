//! How verdicts and events are said.

use crate::attacks::attack::Attack;
use crate::judge::timeline::{Event, What};
use crate::judge::verdict::{BreachKind, Verdict};
use crate::printable::plain;
use std::time::Duration;

/// What an attack does, in one line.
pub(super) fn does(attack: Attack) -> &'static str {
    match attack {
        Attack::Repeat => "delivered once more after it succeeded",
        Attack::AtOnce => "delivered many times at once",
        Attack::WhileRunning => "delivered again while the first still runs",
        Attack::AnswerLost => "the answer is lost after the handler finished",
        Attack::AnswerCut => "the connection breaks in the middle of the answer",
        Attack::DeadlinePassed => "the sender's deadline passes while the handler still runs",
        Attack::KillRandom => "killed at a random moment",
        Attack::CrashSweep => "killed at every boundary seen on the wire",
        Attack::Pause => "paused past its lease while another one takes over",
        Attack::Reorder => "two deliveries in the wrong order",
        Attack::OtherPayload => "the same key with another payload",
        Attack::BadKey => "parts of the key missing or malformed",
        Attack::TwoProcesses => "two processes of the handler at once",
    }
}

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
    let mut escaped = String::with_capacity(text.len());
    for character in plain(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}
