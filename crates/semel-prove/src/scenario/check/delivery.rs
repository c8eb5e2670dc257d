//! What is sent, to whom, and how.

use super::{Mistakes, template};
use crate::scenario::{Deliver, Scenario, SenderKind};
use http::{HeaderName, HeaderValue, Method};
use url::Url;

pub(super) fn check(scenario: &Scenario, mistakes: &mut Mistakes) {
    let deliver = &scenario.deliver;
    receiver(scenario, mistakes);
    match deliver.sender {
        SenderKind::Command => by_command(deliver, mistakes),
        SenderKind::CloudTasks
        | SenderKind::Pubsub
        | SenderKind::Cloudevents
        | SenderKind::Http => {
            by_request(deliver, mistakes);
        }
    }
    if deliver.attempts == 0 || deliver.deadline_ms == 0 {
        mistakes.push("deliver.attempts and deliver.deadline_ms must be at least 1".to_owned());
    }
}

fn receiver(scenario: &Scenario, mistakes: &mut Mistakes) {
    let deliver = &scenario.deliver;
    if let Some(to) = &deliver.to
        && !scenario.processes.iter().any(|process| process.name == *to)
    {
        mistakes.push(format!("deliver.to names `{to}`, which is no process"));
    }
    let nobody = scenario.processes.is_empty() && deliver.target.is_none();
    if nobody && deliver.sender != SenderKind::Command {
        mistakes.push("neither a [[process]] nor deliver.target says who receives".to_owned());
    }
    if deliver.target.is_some() && deliver.to.is_some() {
        mistakes.push("deliver.to and deliver.target exclude each other".to_owned());
    }
    if let Some(target) = &deliver.target {
        is_target(target, deliver, mistakes);
    }
}

fn is_target(target: &str, deliver: &Deliver, mistakes: &mut Mistakes) {
    let url = Url::parse(target).ok();
    let Some(url) = url.filter(|url| url.scheme() == "http" && url.host().is_some()) else {
        mistakes.push(format!("deliver.target `{target}` is no http:// address"));
        return;
    };
    if !url.username().is_empty() || url.password().is_some() {
        mistakes.push("deliver.target: a user is not sent; write a header".to_owned());
    }
    if deliver.path.is_some() && (url.path() != "/" || url.query().is_some()) {
        mistakes.push(format!(
            "deliver.target `{target}` names a path, and so does deliver.path: say it once"
        ));
    }
}

fn by_command(deliver: &Deliver, mistakes: &mut Mistakes) {
    match &deliver.command {
        None => mistakes
            .push("deliver.command is missing: it delivers when `as = \"command\"`".to_owned()),
        Some(line) => {
            if shlex::split(line).is_none_or(|words| words.is_empty()) {
                mistakes.push(format!("deliver.command `{line}` is not a command"));
            }
        }
    }
    if deliver.recorded.is_some() {
        mistakes.push("deliver.recorded holds requests, and a command sends none".to_owned());
    }
}

fn by_request(deliver: &Deliver, mistakes: &mut Mistakes) {
    if deliver.command.is_some() {
        mistakes.push("deliver.command is only for `as = \"command\"`".to_owned());
    }
    if let Some(path) = &deliver.path {
        template::path("deliver.path", path, mistakes);
    }
    if let Some(method) = &deliver.method
        && Method::from_bytes(method.as_bytes()).is_err()
    {
        mistakes.push(format!("deliver.method {method:?} is no method"));
    }
    for (name, value) in &deliver.headers {
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            mistakes.push(format!("deliver.headers: {name:?} is no header's name"));
        }
        if HeaderValue::from_str(value).is_err() {
            mistakes.push(format!("deliver.headers: {value:?} cannot be sent"));
        }
    }
}
