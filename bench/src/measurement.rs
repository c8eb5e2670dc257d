//! What all measurements share: their flags, and the way from their parts to a report.

use std::num::NonZeroUsize;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;

use crate::machine::{Machine, now};
use crate::report::{Group, Report};
use crate::rounds::Pace;

/// The flags of every measurement; `P` names the parts of one.
#[derive(Debug, clap::Args)]
pub(crate) struct Flags<P: ValueEnum + PartialEq + Send + Sync + 'static> {
    /// How many rounds; each has every contender once.
    #[arg(long, default_value = "5")]
    rounds: NonZeroUsize,
    /// Only these groups; all unless given.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<P>,
    /// The report as JSON.
    #[arg(long)]
    json: bool,
}

// === impl Flags ===

impl<P: ValueEnum + PartialEq + Send + Sync + 'static> Flags<P> {
    pub(crate) fn pace(&self, warm_up: Duration, window: Duration) -> Pace {
        Pace {
            rounds: self.rounds.get(),
            warm_up,
            window,
        }
    }

    /// Measures part by part, and returns what there is to say.
    pub(crate) async fn report(
        &self,
        pace: Pace,
        measure: impl AsyncFn(&P) -> anyhow::Result<Group>,
    ) -> anyhow::Result<String> {
        let mut groups = Vec::new();
        for part in P::value_variants() {
            if self.only.is_empty() || self.only.contains(part) {
                let name = part.to_possible_value().expect("no part is skipped");
                eprintln!("{}", name.get_name());
                groups.push(measure(part).await?);
            }
        }
        let report = Report::new(Machine::this(now()), pace, groups);
        if self.json {
            return serde_json::to_string_pretty(&report)
                .context("cannot write the report as JSON");
        }
        Ok(report.table())
    }
}
