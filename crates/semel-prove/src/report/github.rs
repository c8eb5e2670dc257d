//! Annotations for GitHub Actions: workflow commands, one on each line.

use super::wording;
use crate::judge::verdict::Verdict;
use crate::report::{Conclusion, Report};

/// An error for what broke, a warning for what was vacuous, a notice for what was not run and for the whole.
#[must_use]
pub fn github(report: &Report, file: Option<&str>) -> String {
    let place = file.map_or(String::new(), |file| format!("file={},", property(file)));
    let line = |kind: &str, title: &str, said: &str| {
        let title = property(&format!("semel prove {}: {title}", report.scenario));
        format!("::{kind} {place}title={title}::{}\n", data(said))
    };
    let mut lines = String::new();
    for one in &report.attacks {
        let remark = wording::remark(&one.verdict);
        let title = format!("{} {}", one.attack, wording::verdict(&one.verdict));
        lines += &match &one.verdict {
            Verdict::Held => continue,
            Verdict::Broken(broken) => {
                let cause = wording::cause(broken).join("\n");
                line("error", &title, &format!("{remark}\n{cause}"))
            }
            Verdict::Vacuous { .. } => line("warning", &title, &remark),
            Verdict::NotRun { .. } => line("notice", &title, &remark),
        };
    }
    if let (Conclusion::CouldNotJudge, Some(why)) = (report.conclusion(), &report.ended_early) {
        lines += &line("error", "ended early", why);
    }
    let whole = super::text(report);
    let whole = whole.trim_end().lines().last().unwrap_or_default();
    lines + &line("notice", "conclusion", whole)
}

/// What stands behind `::`.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D");
    text.replace('\n', "%0A")
}

/// What stands between commas.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
