//! JUnit XML, for CI jobs: an attack is a test case.

use super::wording::{self, escape};
use crate::judge::verdict::Verdict;
use crate::report::Report;
use std::fmt::Write as _;
use std::time::Duration;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// The case of what belongs to no attack.
const RUN: &str = "run";

/// One test suite. What broke is a failure, what was vacuous an error, what could not be run is skipped; a run that
/// ended early is one more error.
#[must_use]
pub fn junit(report: &Report) -> String {
    let count = report.count();
    let early = usize::from(report.ended_early.is_some());
    let mut xml = format!(
        "{HEAD}<testsuite name=\"semel prove {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" \
         time=\"{:.3}\">\n",
        escape(&report.scenario),
        report.attacks.len() + early,
        count.broken,
        count.vacuous + early,
        count.not_run,
        report.took.as_secs_f64(),
    );
    for attacked in &report.attacks {
        case(
            &mut xml,
            &report.scenario,
            attacked.attack.name(),
            attacked.took,
            &inside(&attacked.verdict),
        );
    }
    if let Some(why) = &report.ended_early {
        case(&mut xml, &report.scenario, RUN, Duration::ZERO, &error(why));
    }
    xml + "</testsuite>\n"
}

/// The suite of a run without a report: one error.
#[must_use]
pub fn junit_without(scenario: &str, why: &str) -> String {
    let name = escape(scenario);
    let mut xml = format!(
        "{HEAD}<testsuite name=\"semel prove {name}\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n"
    );
    case(&mut xml, scenario, RUN, Duration::ZERO, &error(why));
    xml + "</testsuite>\n"
}

fn case(xml: &mut String, scenario: &str, name: &str, took: Duration, inside: &str) {
    writeln!(
        xml,
        "  <testcase classname=\"semel.prove.{}\" name=\"{name}\" time=\"{:.3}\">{inside}</testcase>",
        escape(scenario),
        took.as_secs_f64(),
    )
    .expect("writing to a String cannot fail");
}

fn inside(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Held => String::new(),
        Verdict::Broken(broken) => {
            let events = broken.timeline.iter().map(|event| {
                let (at, lane) = (wording::millis(event.at), &event.lane);
                format!("{at} {lane} {}\n", wording::event(event))
            });
            let body: String = events.collect();
            let message = wording::remark(verdict);
            format!(
                "<failure message=\"{}\">{}</failure>",
                escape(&message),
                escape(&body)
            )
        }
        Verdict::Vacuous { why } => error(why),
        Verdict::NotRun { why } => format!("<skipped message=\"{}\"/>", escape(why)),
    }
}

fn error(why: &str) -> String {
    format!("<error message=\"{}\"/>", escape(why))
}
