//! `semel check`: whether a configuration is good, without starting anything.

use crate::args::CheckArgs;
use crate::config::{self, Broken, Finding, Mistakes};
use crate::deployment::Deployment;
use crate::out::to_stdout;
use serde_json::{Value, json};

/// A Celery app was asked about, and there is no Python here to import it. The command of the Python package answers
/// that question before it comes here.
#[derive(Debug, thiserror::Error)]
#[error(
    "--celery {app} is answered by the `semel` of the Python package, and this is the program without Python: \
     `pip install ./python` in the environment of the app's workers, and run that environment's \
     `semel check --celery {app}`"
)]
pub(crate) struct NeedsPython {
    app: String,
}

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    if let Some(app) = args.celery.clone() {
        return Err(NeedsPython { app }.into());
    }
    let deployment = args.deployment.as_deref().map(Deployment::read);
    let deployment = deployment.transpose()?;
    let loaded = match &deployment {
        Some(deployment) => config::load_on(&args.gate, deployment),
        None => config::load(&args.gate),
    };
    let config = match loaded {
        Ok(config) => config,
        Err(mistakes) => {
            if args.json {
                let answer = json!({"good": false, "mistakes": as_list(&mistakes), "findings": []});
                to_stdout(&format!("{answer}\n"))?;
            }
            return Err(mistakes.into());
        }
    };
    let findings = config::check_on(&config, deployment.as_ref());
    let broken = Broken::among(&findings);
    if args.json {
        let found: Vec<_> = findings.iter().map(as_json).collect();
        let answer = json!({"good": broken.is_none(), "mistakes": [], "findings": found});
        to_stdout(&format!("{answer}\n"))?;
    } else {
        let lines = findings
            .iter()
            .map(|finding| format!("{:8} {finding}\n", finding.verdict.word()));
        to_stdout(&lines.collect::<String>())?;
    }
    broken.map_or(Ok(()), |broken| Err(broken.into()))
}

fn as_list(mistakes: &Mistakes) -> Vec<Value> {
    mistakes
        .iter()
        .map(|mistake| {
            let place = mistakes.location(mistake);
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
