//! For a terminal.

use super::{Conclusion, Count, wording};
use crate::judge::verdict::{Broken, Verdict};
use crate::printable::plain;
use crate::report::Report;
use std::fmt::Write as _;

/// The table of verdicts, then each broken one with its timeline.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for attacked in &report.attacks {
        let (attack, verdict) = (attacked.attack.name(), wording::verdict(&attacked.verdict));
        let remark = wording::remark(&attacked.verdict);
        let trials = match attacked.verdict {
            Verdict::Held | Verdict::Broken(_) => trials(attacked.trials, attacked.hits),
            Verdict::Vacuous { .. } | Verdict::NotRun { .. } => String::new(),
        };
        line(
            &mut text,
            format!("  {verdict:<8} {attack:<16} {trials:<11} {remark}").trim_end(),
        );
    }
    for attacked in &report.attacks {
        if let Verdict::Broken(broken) = &attacked.verdict {
            line(
                &mut text,
                &format!("\n{}: {}", attacked.attack, wording::does(attacked.attack)),
            );
            timeline(&mut text, broken);
        }
    }
    for unseen in &report.unseen {
        line(&mut text, &format!("\nNot seen: {unseen}"));
    }
    if let Some(why) = &report.ended_early {
        line(&mut text, &format!("\nEnded early: {why}"));
    }
    line(&mut text, &format!("\n{}", conclusion(report)));
    plain(&text)
}

fn timeline(text: &mut String, broken: &Broken) {
    let lanes = broken.timeline.iter().map(|event| event.lane.len());
    let width = lanes.max().unwrap_or(0);
    for event in &broken.timeline {
        let (at, lane) = (wording::millis(event.at), &event.lane);
        line(
            text,
            &format!("  {at:>9}  {lane:<width$}  {}", wording::event(event)),
        );
    }
    line(
        text,
        &format!("  So: {}.", broken.seen.trim_end_matches('.')),
    );
    if let Some(pattern) = &broken.pattern {
        line(
            text,
            &format!("  This looks like {}: {}", pattern.name, pattern.is),
        );
        line(text, &format!("  Instead: {}", pattern.instead));
    }
}

fn conclusion(report: &Report) -> String {
    let (name, seed) = (&report.scenario, report.seed);
    let Count {
        held,
        broken,
        not_run,
        ..
    } = report.count();
    let seconds = report.took.as_secs_f64();
    let said = match report.conclusion() {
        Conclusion::Held => format!("held: {held} attacks, {not_run} not run"),
        Conclusion::Broken => format!(
            "BROKEN: {broken} of {} attacks that were run",
            held + broken
        ),
        Conclusion::CouldNotJudge if report.ended_early.is_some() => {
            format!("could not be judged: the run ended early ({held} held so far)")
        }
        Conclusion::CouldNotJudge => {
            "could not be judged: a fault never hit, or nothing was run".into()
        }
    };
    format!("{name} {said} ({seconds:.1} s, --seed {seed})")
}

fn trials(count: u32, hits: u32) -> String {
    if hits < count {
        return format!("{hits} of {count} hit");
    }
    let word = if count == 1 { "trial" } else { "trials" };
    format!("{count} {word}")
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}
