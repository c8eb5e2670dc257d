//! JUnit XML, for CI jobs: an attack is a test case.

use super::words::{self, escape};
use crate::verdict::{Report, Verdict};
use std::fmt::Write as _;

/// One test suite. What broke is a failure, what was vacuous an error, what could not be run is skipped.
#[must_use]
pub fn junit(report: &Report) -> String {
    let count =
        |is: fn(&Verdict) -> bool| report.attacks.iter().filter(|it| is(&it.verdict)).count();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"semel prove {}\" tests=\"{}\" failures=\"{}\" \
         errors=\"{}\" skipped=\"{}\" time=\"{:.3}\">\n",
        escape(&report.scenario),
        report.attacks.len(),
        count(|verdict| matches!(verdict, Verdict::Broken(_))),
        count(|verdict| matches!(verdict, Verdict::Vacuous { .. })),
        count(|verdict| matches!(verdict, Verdict::NotRun { .. })),
        report.took.as_secs_f64(),
    );
    for attacked in &report.attacks {
        let inside = match &attacked.verdict {
            Verdict::Held => String::new(),
            Verdict::Broken(broken) => {
                let events = broken.timeline.iter().map(|event| {
                    let (at, lane) = (words::millis(event.at), &event.lane);
                    format!("{at} {lane} {}\n", words::event(event))
                });
                let body: String = events.collect();
                let message = words::remark(&attacked.verdict);
                format!(
                    "<failure message=\"{}\">{}</failure>",
                    escape(&message),
                    escape(&body)
                )
            }
            Verdict::Vacuous { why } => format!("<error message=\"{}\"/>", escape(why)),
            Verdict::NotRun { why } => format!("<skipped message=\"{}\"/>", escape(why)),
        };
        writeln!(
            xml,
            "  <testcase classname=\"semel.prove.{}\" name=\"{}\" time=\"{:.3}\">{inside}</testcase>",
            escape(&report.scenario),
            words::attack(attacked.attack),
            attacked.took.as_secs_f64(),
        )
        .expect("writing to a String cannot fail");
    }
    xml + "</testsuite>\n"
}
