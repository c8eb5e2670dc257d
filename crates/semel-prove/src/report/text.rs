//! For a terminal.

use super::{Conclusion, wording};
use crate::judge::verdict::{Broken, Verdict};
use crate::printable::plain;
use crate::report::{AttackReport, Report};

/// The table of verdicts, then each broken one with its timeline.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut lines: Vec<String> = report.attacks.iter().map(row).collect();
    for one in &report.attacks {
        if let Verdict::Broken(broken) = &one.verdict {
            lines.push(format!("\n{}: {}", one.attack, one.attack.does()));
            lines.extend(timeline(broken));
        }
    }
    if !report.unprobed.is_empty() {
        let names = report.unprobed.join(", ");
        lines.push(format!(
            "\nNot probed: {names}: written, and looked at by no [[effect]]"
        ));
    }
    let unseen = report.unseen.iter();
    lines.extend(unseen.map(|unseen| format!("\nNot seen: {unseen}")));
    lines.extend(wording::only_full(report).map(|rest| format!("\nOnly --full tries: {rest}")));
    let early = report.ended_early.iter();
    lines.extend(early.map(|why| format!("\nEnded early: {why}")));
    lines.push(format!("\n{}\n", conclusion(report)));
    plain(&lines.join("\n"))
}

fn row(one: &AttackReport) -> String {
    let (attack, verdict) = (one.attack.name(), wording::verdict(&one.verdict));
    let remark = wording::remarks(one);
    let trials = match one.verdict {
        Verdict::Held | Verdict::Broken(_) => trials(one.trials, one.hits),
        Verdict::Vacuous { .. } | Verdict::NotRun { .. } => String::new(),
    };
    let covered = one.coverage.filter(|_| one.hits > 0).map(wording::coverage);
    let remark = match (&one.verdict, covered) {
        (Verdict::Held, Some(covered)) if remark.is_empty() => covered,
        (Verdict::Held, Some(covered)) => format!("{covered}; {remark}"),
        (_, _) => remark,
    };
    let row = format!("  {verdict:<8} {attack:<16} {trials:<11} {remark}");
    row.trim_end().to_owned()
}

fn timeline(broken: &Broken) -> Vec<String> {
    let lanes = broken.timeline.iter().map(|event| event.lane.len());
    let width = lanes.max().unwrap_or(0);
    let events = broken.timeline.iter().map(|event| {
        let (at, lane) = (wording::millis(event.at), &event.lane);
        format!("  {at:>9}  {lane:<width$}  {}", wording::event(event))
    });
    let mut lines: Vec<String> = events.collect();
    lines.push(format!("  So: {}.", broken.seen.trim_end_matches('.')));
    let cause = wording::cause(broken).into_iter();
    lines.extend(cause.map(|line| format!("  {line}")));
    lines
}

fn conclusion(report: &Report) -> String {
    let (name, seed) = (&report.scenario, report.seed);
    let count = report.count();
    let (held, broken, not_run) = (count.held, count.broken, count.not_run);
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
        Conclusion::CouldNotJudge if report.never_hit() || count.held == 0 => {
            "could not be judged: a fault never hit, or nothing was run".into()
        }
        Conclusion::CouldNotJudge => {
            "could not be judged: no process could be killed; say how the handler is started, or add \
             accept = [\"no-kill\"] to the scenario"
                .into()
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
