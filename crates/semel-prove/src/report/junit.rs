//! JUnit XML, for CI jobs: an attack is a test case.

use super::wording::{self, escape};
use crate::judge::verdict::Verdict;
use crate::report::Report;
use std::time::Duration;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// The case of what belongs to no attack.
const RUN: &str = "run";

/// One test suite. What broke is a failure, what was vacuous an error, what could not be run is skipped; a run that
/// ended early is one more error.
#[must_use]
pub fn junit(report: &Report) -> String {
    let count = report.count();
    let attacks = report.attacks.iter();
    let attacks = attacks.map(|one| (one.attack.name(), one.took, inside(&one.verdict)));
    let early = report.ended_early.iter();
    let early = early.map(|why| (RUN, Duration::ZERO, error(why)));
    let cases = attacks.chain(early);
    let cases = cases.map(|(name, took, inside)| case(&report.scenario, name, took, &inside));
    let cases: Vec<String> = cases.collect();
    format!(
        "{HEAD}<testsuite name=\"semel prove {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" \
         time=\"{:.3}\">\n{}</testsuite>\n",
        escape(&report.scenario),
        cases.len(),
        count.broken,
        count.vacuous + usize::from(report.ended_early.is_some()),
        count.not_run,
        report.took.as_secs_f64(),
        cases.concat(),
    )
}

/// The suite of a run without a report: one error.
#[must_use]
pub fn junit_without(scenario: &str, why: &str) -> String {
    let case = case(scenario, RUN, Duration::ZERO, &error(why));
    let name = escape(scenario);
    format!(
        "{HEAD}<testsuite name=\"semel prove {name}\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n\
         {case}</testsuite>\n"
    )
}

fn case(scenario: &str, name: &str, took: Duration, inside: &str) -> String {
    let (class, seconds) = (escape(scenario), took.as_secs_f64());
    format!(
        "  <testcase classname=\"semel.prove.{class}\" name=\"{name}\" time=\"{seconds:.3}\">{inside}</testcase>\n"
    )
}

fn inside(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Held => String::new(),
        Verdict::Broken(broken) => {
            let events = broken.timeline.iter().map(|event| {
                let (at, lane) = (wording::millis(event.at), &event.lane);
                format!("{at} {lane} {}\n", wording::event(event))
            });
            let body = events.collect::<String>() + &wording::cause(broken).join("\n");
            let body = escape(&body);
            let message = escape(&wording::remark(verdict));
            format!("<failure message=\"{message}\">{body}</failure>")
        }
        Verdict::Vacuous { why } => error(why),
        Verdict::NotRun { why } => format!("<skipped message=\"{}\"/>", escape(why)),
    }
}

fn error(why: &str) -> String {
    format!("<error message=\"{}\"/>", escape(why))
}
