//! JSON, for programs: the report as it is, and what it comes to.

use super::Conclusion;
use crate::report::Report;
use serde::Serialize;

#[derive(Serialize)]
struct Concluded<'a> {
    conclusion: Conclusion,
    #[serde(flatten)]
    report: &'a Report,
}

/// One object. Times are in milliseconds, and their names say so.
#[must_use]
pub fn json(report: &Report) -> String {
    let concluded = Concluded {
        conclusion: report.conclusion(),
        report,
    };
    serde_json::to_string_pretty(&concluded).expect("a report has only texts and numbers") + "\n"
}
