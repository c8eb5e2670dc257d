//! `semel certify`: what a service honours of the `Idempotency-Key` contract, as a table.

mod transport;

use crate::args::certify::CertifyArgs;
use crate::commands::prove::CouldNotJudge;
use crate::out::to_stdout;
use anyhow::{Context, anyhow};
use semel_prove::certify::{Certificate, Honours, Rule, Settings, certify};

pub(crate) async fn run(args: &CertifyArgs) -> anyhow::Result<u8> {
    let certificate = certificate(args).await.map_err(CouldNotJudge)?;
    to_stdout(&if args.json {
        let json = serde_json::to_string_pretty(&certificate);
        json.context("a certificate has only texts")? + "\n"
    } else {
        table(&certificate)
    })?;
    Ok(certificate.exit_code())
}

async fn certificate(args: &CertifyArgs) -> anyhow::Result<Certificate> {
    let settings = settings(args);
    let send = transport::open(args).await?;
    let certified = certify(&settings, &send).await;
    certified.map_err(|why| anyhow!("{}: {why}", args.url))
}

#[expect(clippy::disallowed_methods, reason = "marks what this run creates")]
fn settings(args: &CertifyArgs) -> Settings {
    Settings {
        body: args.body.clone(),
        other_body: args.other_body.clone(),
        other_caller: !args.other_header.is_empty(),
        at_once: args.at_once.into(),
        id_prefix: format!("c{:08x}x", rand::random::<u32>()),
    }
}

fn table(certificate: &Certificate) -> String {
    let rows = certificate.rules.iter().map(row);
    let rows: String = rows.collect();
    format!("{rows}\nNot tried: how long keys are kept, and what a crash of the service does.\n")
}

fn row(rule: &Rule) -> String {
    let honours = match rule.honours {
        Honours::Yes => "honoured",
        Honours::Partly => "partly",
        Honours::No => "NOT HONOURED",
        Honours::CannotTell => "cannot tell",
        Honours::NotRun => "not run",
    };
    let Rule {
        name,
        demands,
        seen,
        ..
    } = rule;
    format!(
        "  {honours:<13} {name:<15} {demands}\n  {:<29} {seen}\n",
        ""
    )
}
