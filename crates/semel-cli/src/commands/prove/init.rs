//! `semel prove init`: a first scenario, from an OpenAPI document or from what was recorded, with what a person must
//! confirm marked as such.

mod openapi;
mod yaml;

use super::{options_for, stopped};
use crate::args::prove::ProveInitArgs;
use crate::out::to_stdout;
use anyhow::{Context, anyhow, bail};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use openapi::Operation;
use semel_prove::Proposal;
use semel_prove::scenario::Scenario;
use std::io::Write;
use std::time::Duration;

/// How long a handler may take to tell its document.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// What marks a line that was guessed.
const CONFIRM: &str = "CONFIRM";

pub(super) async fn run(args: &ProveInitArgs) -> anyhow::Result<()> {
    let head = head(args).await?;
    let proposals = tokio::select! {
        proposals = proposals(args, &head) => proposals?,
        why = stopped() => return Err(why),
    };
    let text = format!("{head}{}", effects(&proposals));
    let read: Result<Scenario, _> = toml::from_str(&text);
    read.context("what would be written is not a scenario")?;
    let path = args.file.display();
    let mut file = std::fs::File::create_new(&args.file)
        .with_context(|| format!("{path} was not written; what was there is as it was"))?;
    file.write_all(text.as_bytes())?;
    let marked = text.matches(CONFIRM).count();
    to_stdout(&format!(
        "{path} written: look at the {marked} lines marked {CONFIRM}, then `semel prove {path}`\n"
    ))
}

/// Everything but the effects.
async fn head(args: &ProveInitArgs) -> anyhow::Result<String> {
    let mut text = String::from("promise = \"exactly once\"\n");
    if let Some(spawn) = &args.spawn {
        text += &format!(
            "\n[[process]]\nname = \"handler\"\nspawn = {} # it listens on $PORT\n",
            quoted(spawn)
        );
    }
    for variable in &args.dependency {
        text += &format!("\n[[dependency]]\nenv = {}\n", quoted(variable));
    }
    text += "\n[deliver]\n";
    if let Some(target) = &args.target {
        text += &format!("target = {}\n", quoted(target));
    }
    text += &match (&args.openapi, &args.recorded) {
        (Some(from), _) => {
            let document = document(from).await?;
            let operation = openapi::operation(&document, args.operation.as_deref());
            deliver(&operation.map_err(|why| anyhow!("{from}: {why}"))?, args)
        }
        (None, Some(file)) => {
            let recorded = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let sender = args.sender.as_deref().unwrap_or(sender_of(&recorded));
            let file = file.display().to_string();
            format!("as = {}\nrecorded = {}\n", quoted(sender), quoted(&file))
        }
        (None, None) => bail!("give --openapi or --recorded"),
    };
    Ok(text)
}

fn deliver(operation: &Operation, args: &ProveInitArgs) -> String {
    // Who reads the key of a client has API clients.
    let guessed = if operation.keyed {
        "http"
    } else {
        "cloud-tasks"
    };
    let mut text = match &args.sender {
        Some(sender) => format!("as = {}\n", quoted(sender)),
        None => format!("as = {} # {CONFIRM}: who delivers\n", quoted(guessed)),
    };
    text += &format!(
        "path = {}\nmethod = {}\n",
        quoted(&operation.path),
        quoted(&operation.method)
    );
    let names = if operation.body.contains("{id}") {
        "{id} must be what names the work"
    } else {
        "nothing in it names the work: put {id} there"
    };
    text + &format!("body = {} # {CONFIRM}: {names}\n", quoted(&operation.body))
}

/// By what was recorded, who recorded it.
fn sender_of(recorded: &str) -> &'static str {
    let lower = recorded.to_lowercase();
    if lower.contains("x-cloudtasks-taskname") {
        "cloud-tasks"
    } else if lower.contains("ce-id") {
        "cloudevents"
    } else if lower.contains("messageid") {
        "pubsub"
    } else {
        "http"
    }
}

/// What one delivery writes, where the handler can be started.
async fn proposals(args: &ProveInitArgs, head: &str) -> anyhow::Result<Vec<Proposal>> {
    if args.spawn.is_none() || args.dependency.is_empty() {
        return Ok(Vec::new());
    }
    // It looks at nothing: what is seen on the wire counts.
    let blind = format!("{head}[[effect]]\nname = \"none\"\ncommand = \"true\"\n");
    let scenario: Scenario = toml::from_str(&blind).context("in the flags")?;
    let here = std::env::current_dir().context("cannot tell the current directory")?;
    let options = options_for(here);
    Ok(semel_prove::propose(&scenario, &options).await?)
}

fn effects(proposals: &[Proposal]) -> String {
    let mut text = String::new();
    for Proposal {
        name,
        field,
        text: probe,
        seen,
    } in proposals
    {
        text += &format!(
            "\n# {CONFIRM}: seen while one delivery was handled: {seen}\n[[effect]]\nname = {}\n{field} = {}\n",
            quoted(name),
            quoted(probe)
        );
    }
    if proposals.is_empty() {
        text += &format!(
            "\n# {CONFIRM}: how to see what the handler did: sql, http, command, redis or calls (docs/prove.md)\n\
             [[effect]]\nname = \"rows\"\nsql = \"SELECT id, count(*) FROM things GROUP BY id\"\n"
        );
    }
    text
}

/// From a file, or from a handler that runs.
async fn document(from: &str) -> anyhow::Result<serde_json::Value> {
    let text = if from.starts_with("http://") {
        let fetched = tokio::time::timeout(DOCUMENT_TIMEOUT, fetch(from)).await;
        fetched.with_context(|| format!("{from} did not answer"))??
    } else {
        std::fs::read(from).with_context(|| format!("cannot read {from}"))?
    };
    if let Ok(json) = serde_json::from_slice(&text) {
        return Ok(json);
    }
    let text = std::str::from_utf8(&text).with_context(|| format!("{from} is not a text"))?;
    yaml::value(text).map_err(|why| anyhow!("{from} is neither JSON nor YAML: {why}"))
}

async fn fetch(from: &str) -> anyhow::Result<Vec<u8>> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let request = http::Request::get(from).body(http_body_util::Empty::<bytes::Bytes>::new())?;
    let answer = client
        .request(request)
        .await
        .with_context(|| format!("{from} cannot be reached"))?;
    if !answer.status().is_success() {
        bail!("{from} answered {}", answer.status());
    }
    Ok(answer.into_body().collect().await?.to_bytes().to_vec())
}

/// As TOML writes a text, on one line.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
