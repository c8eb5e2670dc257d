//! How verdicts and events are said.

use crate::attacks::attack::Attack;
use crate::judge::timeline::{Event, What};
use crate::judge::verdict::{BreachKind, Broken, Verdict};
use crate::options::Profile;
use crate::printable::plain;
use crate::report::{AttackReport, Coverage, Report};
use std::time::Duration;

pub(super) fn how(how: BreachKind) -> &'static str {
    match how {
        BreachKind::EffectTwice => "effect twice",
        BreachKind::EffectLost => "effect lost",
        BreachKind::OldWins => "old state wins",
        BreachKind::AnswersDiffer => "answers differ",
        BreachKind::Stuck => "stuck",
        BreachKind::Poison => "poison retried",
        BreachKind::Died => "process ended by a delivery",
    }
}

/// What there is to say where no mistake is recognised.
pub(super) fn unrecognised(how: BreachKind) -> &'static str {
    match how {
        BreachKind::EffectTwice => "two effects; the cause was not recognised",
        BreachKind::EffectLost => "an effect is missing; the cause was not recognised",
        BreachKind::OldWins
        | BreachKind::AnswersDiffer
        | BreachKind::Stuck
        | BreachKind::Poison
        | BreachKind::Died => "the cause was not recognised",
    }
}

/// What the mistake is, line by line: what was seen, what it means, what to do.
pub(super) fn cause(broken: &Broken) -> Vec<String> {
    let Some(pattern) = &broken.pattern else {
        return vec![format!("Cause: {}.", unrecognised(broken.how))];
    };
    vec![
        format!("Cause: {}. Seen: {}.", pattern.name, pattern.evidence),
        format!("It means: {}", pattern.is),
        format!("Instead: {}", pattern.instead),
    ]
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

/// The same, and how far it reaches.
pub(super) fn remarks(one: &AttackReport) -> String {
    let said = std::iter::once(remark(&one.verdict)).filter(|it| !it.is_empty());
    let said: Vec<String> = said.chain(one.remarks.iter().cloned()).collect();
    said.join("; ")
}

/// As `4 of 13 boundaries`.
pub(super) fn coverage(Coverage { tried, of, what }: Coverage) -> String {
    format!("{tried} of {of} {what}")
}

/// What the quick profile leaves out.
pub(super) fn only_full(report: &Report) -> Option<String> {
    let held = |one: &&AttackReport| matches!(one.verdict, Verdict::Held);
    let covered = report.attacks.iter().filter(held).filter_map(|one| {
        let Coverage { tried, of, what } = one.coverage?;
        let left = of.saturating_sub(tried);
        (left > 0 && what == "boundaries").then(|| format!("{left} more {what} of {}", one.attack))
    });
    let mut rest: Vec<String> = covered.collect();
    let mut fails = report.attacks.iter();
    if fails.any(|one| one.attack == Attack::DependencyFails && one.trials > 0) {
        rest.push("dependencies that are slow".to_owned());
    }
    rest.push("more races and more kills at drawn times".to_owned());
    (report.profile == Profile::Quick).then(|| rest.join(", "))
}

/// What happened, in a line.
pub(super) fn event(event: &Event) -> String {
    match &event.what {
        What::Sent {
            id,
            attempt,
            to,
            variant,
        } => {
            let to = to.as_ref().map_or(String::new(), |to| format!(" to {to}"));
            let variant = variant.iter().map(|it| format!(", {it}"));
            let variant: String = variant.collect();
            format!("delivers {id}{to} (attempt {attempt}){variant}")
        }
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
        What::Wire {
            outward,
            process,
            says,
            values,
            ..
        } => {
            let way = if *outward { "is asked by" } else { "answers" };
            let values = if values.is_empty() {
                String::new()
            } else {
                format!("  [{}]", values.join(", "))
            };
            format!("{way} {process}: {says}{values}")
        }
        What::Fails { how } => how.clone(),
        What::Killed => "is killed".into(),
        What::Ended => "ended by itself".into(),
        What::Started => "starts".into(),
        What::Paused => "is paused".into(),
        What::Resumed => "goes on".into(),
        What::Effects { effect, id, count } => format!("{effect}: {count} × for {id}"),
        What::State {
            effect,
            entity,
            version,
        } => format!("{effect}: version {version} of {entity} stands"),
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
