//! JSON, for programs: the report as it is, and what it comes to.

use super::Conclusion;
use crate::report::Report;
use serde::Serialize;

/// The name of what is printed: another one when a member is removed, renamed or means something else.
const SCHEMA: &str = "semel-prove-report-1";

#[derive(Serialize)]
struct Concluded<'a> {
    schema: &'static str,
    conclusion: Conclusion,
    #[serde(flatten)]
    report: &'a Report,
}

/// One object. Times are in milliseconds, and their names say so.
#[must_use]
pub fn json(report: &Report) -> String {
    let concluded = Concluded {
        schema: SCHEMA,
        conclusion: report.conclusion(),
        report,
    };
    serde_json::to_string_pretty(&concluded).expect("a report has only texts and numbers") + "\n"
}
