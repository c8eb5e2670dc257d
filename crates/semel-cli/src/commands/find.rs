//! `semel find`: what became of one piece of work, by whatever name somebody has for it.

mod merge;
mod sentence;

use super::operate::printed;
use crate::admin::{AdminTarget, get, is_unreachable};
use crate::args::GateArgs;
use crate::args::find::FindArgs;
use crate::args::operate::AdminArgs;
use crate::config;
use crate::out::{to_stderr, told};
use crate::table::harmless;
use anyhow::bail;
use semel_gate::find::Question;
use semel_gate::operate::{Operator, Refused};
use serde_json::Value;

pub(crate) async fn run(args: &FindArgs) -> anyhow::Result<()> {
    let question = question(args)?;
    let answers = match &args.store {
        Some(_) => vec![of_store(args, &question).await?],
        None => of_gates(args, &question).await?,
    };
    let found = merge::merged(answers);
    let nothing = merge::is_empty(&found);
    printed(args.gates.json, Ok(found), sentence::told)?;
    if nothing {
        bail!(
            "nothing is known of it: no record, no letter, and no gate that was asked remembers a delivery; names of \
             deliveries are remembered for a while only, unless the gate has `index = true`"
        );
    }
    Ok(())
}

fn question(args: &FindArgs) -> Result<Question, Refused> {
    let mut question = Question {
        route: args.route.clone(),
        idempotency_key: args.idempotency_key.clone(),
        caller: args.caller.clone(),
        method: args.method.clone(),
        ..Question::default()
    };
    match (args.what.as_slice(), &args.route) {
        ([], _) => {}
        ([text], None) => question.text = Some(text.clone()),
        (parts, _) => {
            for part in parts {
                let Some((name, value)) = part.split_once('=') else {
                    let wrong = format!("{part:?} is not of the form NAME=VALUE");
                    let what = "name the parts of the route's rule, as in `semel find --route charge order_id=A-1`";
                    return Err(Refused::mistaken(wrong, what));
                };
                question.parts.push((name.into(), value.into()));
            }
        }
    }
    question.judged()
}

/// What each gate says. One that is not there is told, and the others are still asked.
async fn of_gates(args: &FindArgs, question: &Question) -> anyhow::Result<Vec<Value>> {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(question.pairs());
    let path = format!("/find?{}", query.finish());
    let (mut answers, mut away) = (Vec::new(), None);
    for gate in args.gates.each() {
        let target = AdminTarget::open(&gate).await?;
        let nobody = async |_: &Operator| unreachable!("a gate was asked");
        match target.ask(get(path.clone()), nobody).await {
            Ok(answer) => answers.push(answer),
            Err(error) if is_unreachable(&error) => {
                to_stderr(&format!("semel: {}\n", harmless(&told(&error))));
                away = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match away {
        Some(error) if answers.is_empty() => Err(error),
        Some(_) | None => Ok(answers),
    }
}

/// What the store says. The parts lead to a key through the configuration's rule.
async fn of_store(args: &FindArgs, question: &Question) -> anyhow::Result<Value> {
    let keys = if question.text.is_some() {
        question.keys("", std::iter::empty())?
    } else if let Some(namespace) = &args.namespace {
        question.keys_unruled(namespace)?
    } else {
        let gate = GateArgs {
            config: args.gates.config.clone(),
            ..GateArgs::default()
        };
        let settings = config::load(&gate)?.settings;
        question.keys(&settings.namespace, settings.routes.iter())?
    };
    let store = AdminArgs {
        admin: None,
        config: None,
        token: None,
        store: args.store.clone(),
        json: args.gates.json,
    };
    let target = AdminTarget::open(&store).await?;
    let text = question.text.as_deref();
    let directly = async |operator: &Operator| operator.find_work(keys, text).await;
    target.ask(get("/find".into()), directly).await
}
