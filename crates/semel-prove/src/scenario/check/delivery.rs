//! What is sent, to whom, and how.

use super::{Mistakes, template};
use crate::scenario::{Deliver, Scenario, SenderKind};
use http::{HeaderName, HeaderValue, Method};
use serde_json::Value;
use url::Url;

pub(super) fn check(scenario: &Scenario, mistakes: &mut Mistakes) {
    let deliver = &scenario.deliver;
    receiver(scenario, mistakes);
    if deliver.sender == SenderKind::Command {
        by_command(deliver, mistakes);
    } else {
        by_request(deliver, mistakes);
    }
    if let Some(path) = &deliver.domain_id {
        domain_id(deliver, path, mistakes);
    }
    mistakes.add_if(
        deliver.attempts == 0 || deliver.deadline_ms == 0,
        "deliver.attempts and deliver.deadline_ms must be at least 1",
    );
}

fn receiver(scenario: &Scenario, mistakes: &mut Mistakes) {
    let deliver = &scenario.deliver;
    if let Some(to) = &deliver.to {
        let known = scenario.processes.iter().any(|process| process.name == *to);
        mistakes.add_if(
            !known,
            format!("deliver.to names `{to}`, which is not a process"),
        );
    }
    let nobody = scenario.processes.is_empty() && deliver.target.is_none();
    mistakes.add_if(
        nobody && deliver.sender != SenderKind::Command,
        "neither a [[process]] nor deliver.target says who receives",
    );
    mistakes.add_if(
        deliver.target.is_some() && deliver.to.is_some(),
        "deliver.to and deliver.target exclude each other",
    );
    if let Some(target) = &deliver.target {
        is_target(target, deliver, mistakes);
    }
}

fn is_target(target: &str, deliver: &Deliver, mistakes: &mut Mistakes) {
    let url = Url::parse(target).ok();
    let Some(url) = url.filter(|url| url.scheme() == "http" && url.host().is_some()) else {
        mistakes.add(format!(
            "deliver.target `{target}` is not an http:// address"
        ));
        return;
    };
    mistakes.add_if(
        !url.username().is_empty() || url.password().is_some(),
        "deliver.target: a user is not sent; write a header",
    );
    mistakes.add_if(
        deliver.path.is_some() && (url.path() != "/" || url.query().is_some()),
        format!("deliver.target `{target}` names a path, and so does deliver.path: say it once"),
    );
}

/// It says what is the same, so it must be what differs from delivery to delivery.
fn domain_id(deliver: &Deliver, path: &str, mistakes: &mut Mistakes) {
    let body: Value = serde_json::from_str(&deliver.sample_body()).unwrap_or_default();
    let mut members = path.split('.');
    let found = members.try_fold(&body, |value, member| value.get(member));
    let is_id = found.and_then(Value::as_str) == Some("{id}");
    mistakes.add_if(
        !is_id,
        format!(
            "deliver.domain_id `{path}` is not a member of deliver.body whose value is \"{{id}}\""
        ),
    );
}

fn by_command(deliver: &Deliver, mistakes: &mut Mistakes) {
    match &deliver.command {
        None => mistakes.add("deliver.command is missing: it delivers when `as = \"command\"`"),
        Some(line) => mistakes.add_if(
            !template::is_command(line),
            format!("deliver.command `{line}` is not a command"),
        ),
    }
    mistakes.add_if(
        deliver.recorded.is_some(),
        "deliver.recorded holds requests, and a command sends none",
    );
}

fn by_request(deliver: &Deliver, mistakes: &mut Mistakes) {
    mistakes.add_if(
        deliver.command.is_some(),
        "deliver.command is only for `as = \"command\"`",
    );
    if let Some(path) = &deliver.path {
        template::path("deliver.path", path, mistakes);
    }
    if let Some(method) = &deliver.method {
        let wrong = Method::from_bytes(method.as_bytes()).is_err();
        mistakes.add_if(wrong, format!("deliver.method {method:?} is not a method"));
    }
    for (name, value) in &deliver.headers {
        let wrong = HeaderName::from_bytes(name.as_bytes()).is_err();
        mistakes.add_if(
            wrong,
            format!("deliver.headers: {name:?} is not a header name"),
        );
        let wrong = HeaderValue::from_str(value).is_err();
        mistakes.add_if(wrong, format!("deliver.headers: {value:?} cannot be sent"));
    }
}
