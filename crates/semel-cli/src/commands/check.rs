//! `semel check`: whether a configuration is good, without starting anything.

use crate::args::CheckArgs;
use crate::config::{self, Broken, Finding, Mistakes};
use serde_json::{Value, json};

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let config = match config::load(&args.gate) {
        Ok(config) => config,
        Err(mistakes) => {
            if args.json {
                println!(
                    "{}",
                    json!({"good": false, "mistakes": told(&mistakes), "findings": []})
                );
            }
            return Err(mistakes.into());
        }
    };
    let findings = config::check(&config);
    let broken = Broken::among(&findings);
    if args.json {
        let found: Vec<_> = findings.iter().map(as_json).collect();
        println!(
            "{}",
            json!({"good": broken.is_none(), "mistakes": [], "findings": found})
        );
    } else {
        for finding in &findings {
            println!("{:8} {finding}", finding.verdict.word());
        }
    }
    broken.map_or(Ok(()), |broken| Err(broken.into()))
}

fn told(mistakes: &Mistakes) -> Vec<Value> {
    mistakes
        .iter()
        .map(|mistake| {
            let place = mistakes.place(mistake);
            json!({"place": place, "route": mistake.route, "says": mistake.says})
        })
        .collect()
}

fn as_json(finding: &Finding) -> Value {
    json!({
        "verdict": finding.verdict.word(),
        "route": finding.route,
        "source": finding.source.map(|source| source.word()),
        "says": finding.says,
    })
}
