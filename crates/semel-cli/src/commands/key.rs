//! `semel key`: what a rule makes of a payload.

use crate::args::KeyArgs;
use crate::out::to_stdout;
use semel::key::{Delivered, Field, Key, KeyRule, Scope};
use semel::{Fingerprint, Payload};
use std::io::Read;

pub(crate) fn run(args: &KeyArgs) -> anyhow::Result<()> {
    let mut payload = Vec::new();
    std::io::stdin().read_to_end(&mut payload)?;
    let rule: KeyRule = args.rule.parse()?;
    let payload = Payload::read(&payload, rule.pointers());
    let mut delivered = Delivered::read(&payload);
    for (name, value) in &args.with {
        delivered = delivered.with(name, value);
    }
    let fields = rule.fields(&delivered)?;
    rule.refuse_empty(&fields)?;
    let key = Key::of(&args.scope(), &fields)?;
    let fingerprint = Fingerprint::of_payload(&payload);
    let parts: Vec<_> = rule
        .parts()
        .iter()
        .map(ToString::to_string)
        .zip(&fields)
        .collect();
    if args.json {
        return to_stdout(&format!("{}\n", as_json(&key, &parts, &fingerprint)));
    }
    let parts = parts
        .iter()
        .map(|(name, field)| format!("part         {name}  {}  {}\n", kind(field), text(field)));
    to_stdout(&format!(
        "key          {key}\n{}fingerprint  {fingerprint}\n",
        parts.collect::<String>()
    ))
}

fn as_json(key: &Key, parts: &[(String, &Field)], fingerprint: &Fingerprint) -> serde_json::Value {
    let parts: Vec<_> = parts
        .iter()
        .map(|(name, field)| serde_json::json!({"part": name, "type": kind(field), "text": text(field)}))
        .collect();
    serde_json::json!({
        "key": key.to_string(), "parts": parts, "fingerprint": fingerprint.to_string(),
    })
}

fn kind(field: &Field) -> &'static str {
    match field.kind {
        's' => "string",
        'd' => "number",
        'b' => "boolean",
        'z' => "null",
        'a' => "array",
        'o' => "object",
        _ => "sha-256",
    }
}

fn text(field: &Field) -> String {
    match field.kind {
        'h' => hex::encode(&field.bytes),
        _ => String::from_utf8_lossy(&field.bytes).into_owned(),
    }
}

impl KeyArgs {
    fn scope(&self) -> Scope {
        let mut scope = Scope::new(&self.namespace, &self.route);
        scope.method.clone_from(&self.method);
        scope.caller.clone_from(&self.caller);
        scope
    }
}
