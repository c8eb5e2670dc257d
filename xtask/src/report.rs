//! What `cargo xtask test` prints at its end.

use crate::step::{Kind, Step};
use crate::watch::Count;

/// A step that ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    pub(crate) step: Step,
    pub(crate) seconds: f64,
}

/// One line per step, its time in the column of what it was spent on, and the sums.
pub(crate) fn table(steps: &[Took]) -> String {
    let mut text = line(
        "step",
        ["prepare s", "compile s", "test s"].map(str::to_owned),
    );
    for took in steps {
        let seconds = Kind::ALL.map(|kind| {
            if kind == took.step.kind() {
                format!("{:.1}", took.seconds)
            } else {
                String::new()
            }
        });
        text += &line(&took.step.to_string(), seconds);
    }
    text + &line(
        "sum",
        Kind::ALL.map(|kind| format!("{:.1}", sum(steps, kind))),
    )
}

/// How much passed, and what could not be run.
pub(crate) fn counts(passed: Count, not_run: &[String]) -> String {
    let Count {
        programs,
        tests,
        ignored,
    } = passed;
    let mut text = format!("{tests} tests passed in {programs} programs, {ignored} ignored\n");
    for it in not_run {
        text += &format!("NOT RUN: {it}\n");
    }
    text
}

fn sum(steps: &[Took], kind: Kind) -> f64 {
    steps
        .iter()
        .filter(|took| took.step.kind() == kind)
        .fold(0.0, |sum, took| sum + took.seconds)
}

fn line(name: &str, [prepare, compile, test]: [String; 3]) -> String {
    let line = format!("{name:<12} {prepare:>10} {compile:>10} {test:>10}");
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compile_and_test_time_are_summed_apart() {
        let took = |step, seconds| Took { step, seconds };
        let table = table(&[
            took(Step::Lint, 10.0),
            took(Step::Compile, 20.5),
            took(Step::Heart, 3.5),
        ]);
        let expected = "\
step          prepare s  compile s     test s
lint                          10.0
compile                       20.5
heart                                     3.5
sum                 0.0       30.5        3.5
";
        assert_eq!(table, expected);
    }

    #[test]
    fn what_was_not_run_is_said_last() {
        let not_run = [testbed::FIRESTORE_NOT_RUN.to_owned()];
        let text = counts(Count::default(), &not_run);
        let last = text.lines().last().unwrap();
        assert!(
            last.starts_with("NOT RUN: firestore store: no emulator ("),
            "{last}"
        );
    }
}
