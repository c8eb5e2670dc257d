//! What a first configuration must know, and the file that says it.

use crate::args::InitArgs;
use std::io::{self, BufRead};

const UPSTREAM: &str = "http://127.0.0.1:3000";
const STORE: &str = "dir:./semel-data";
const PATH: &str = "/orders";
const NAME: &str = "orders";

/// The answers to `semel init`; what is not given has a default, or is left to the gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    upstream: Option<String>,
    store: Option<String>,
    name: Option<String>,
    path: Option<String>,
    source: Option<String>,
    key: Option<String>,
    caller: Option<String>,
}

// === impl Answers ===

impl Answers {
    pub(super) fn of(args: &InitArgs) -> Self {
        Self {
            upstream: args.upstream.clone(),
            store: args.store.clone(),
            name: args.name.clone(),
            path: args.path.clone(),
            source: args.source.clone(),
            key: args.key.clone(),
            caller: args.caller.clone(),
        }
    }

    pub(super) fn is_some_given(&self) -> bool {
        *self != Self::default()
    }

    /// Asks a person, who may leave each answer empty.
    pub(super) fn asked(reader: &mut impl BufRead, say: impl Fn(&str)) -> io::Result<Self> {
        let mut ask = |question: &str, default: &str| {
            say(&format!("{question} [{default}]: "));
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let answer = line.trim();
            io::Result::Ok((!answer.is_empty()).then(|| answer.to_owned()))
        };
        let upstream = ask("Where is your handler?", UPSTREAM)?;
        let path = ask("Which path of it is to take effect once?", PATH)?;
        let source = ask(
            "Who delivers there: cloud-tasks, pubsub, cloudevents or api?",
            "every broker",
        )?;
        let is_api = source.as_deref() == Some("api");
        let caller = if is_api {
            let caller = ask(
                "What tells callers apart: header:NAME, set by something trusted, or shared?",
                "shared",
            )?;
            Some(caller.unwrap_or_else(|| "shared".into()))
        } else {
            None
        };
        let preset = if is_api {
            "its Idempotency-Key"
        } else {
            "the sender's own id"
        };
        let key = ask(
            "Which part of a payload names the work, as in /order_id?",
            preset,
        )?;
        let store = ask(
            "Where are records kept: dir:PATH, postgres://… or redis://…?",
            STORE,
        )?;
        Ok(Self {
            upstream,
            store,
            name: None,
            path,
            source,
            key,
            caller,
        })
    }

    /// The short file.
    pub(super) fn file(&self) -> String {
        let path = self.path.as_deref().unwrap_or(PATH);
        let name = self.name.clone().unwrap_or_else(|| name_of(path));
        let upstream = self.upstream.as_deref().unwrap_or(UPSTREAM);
        let store = self.store.as_deref().unwrap_or(STORE);
        let route = [
            (
                "source",
                &self.source,
                "\"cloud-tasks\"",
                "who delivers; every broker, unless given",
            ),
            (
                "key",
                &self.key,
                "\"/order_id\"",
                "which deliveries are the same work; the sender's own id, unless given",
            ),
            (
                "caller",
                &self.caller,
                "\"header:x-client-id\"",
                "how API clients are told apart",
            ),
        ];
        let mut file = String::from(
            "# For `semel gate`; `semel check` judges it, docs/config.md has every setting.\n",
        );
        file.push_str(&setting("upstream", upstream, "your handler"));
        file.push_str(&setting(
            "store",
            store,
            "dir: is for one process; postgres:// and redis:// for many",
        ));
        file.push_str("\n[[route]]\n");
        file.push_str(&setting(
            "name",
            &name,
            "enters every key: renaming it forgets them",
        ));
        file.push_str(&setting("path", path, "what takes effect once"));
        for (name, given, example, comment) in route {
            file.push_str(&match given {
                Some(value) => setting(name, value, comment),
                None => commented(&format!("# {name} = {example}"), comment),
            });
        }
        file
    }
}

fn setting(name: &str, value: &str, comment: &str) -> String {
    commented(&format!("{name} = {}", toml::Value::from(value)), comment)
}

fn commented(line: &str, comment: &str) -> String {
    format!("{line:<40} # {comment}\n")
}

/// The first name of a path, to begin with.
fn name_of(path: &str) -> String {
    let mut names = path.split('/').filter(|name| !name.is_empty());
    let name = names.next().filter(|name| !name.contains(['*', '{', '%']));
    name.unwrap_or(NAME).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(typed: &str) -> String {
        let answers = Answers::asked(&mut typed.as_bytes(), |_| {}).unwrap();
        answers.file()
    }

    fn settings(file: &str) -> toml::Table {
        file.parse().unwrap()
    }

    #[test]
    fn every_answer_may_be_left_empty() {
        assert_eq!(asked("\n\n\n\n\n"), Answers::default().file());
        let file = settings(&Answers::default().file());
        assert_eq!(file["upstream"].as_str(), Some(UPSTREAM));
        assert_eq!(file["route"][0]["name"].as_str(), Some("orders"));
    }

    #[test]
    fn answers_are_in_the_file_and_an_api_is_asked_for_its_callers() {
        let file = settings(&asked(
            "http://127.0.0.1:9\n/users/{id}/pay\napi\n\n/o\"d\nredis://h\n",
        ));
        let route = &file["route"][0];
        assert_eq!(file["upstream"].as_str(), Some("http://127.0.0.1:9"));
        assert_eq!(file["store"].as_str(), Some("redis://h"));
        assert_eq!(route["name"].as_str(), Some("users"));
        assert_eq!(route["path"].as_str(), Some("/users/{id}/pay"));
        assert_eq!(route["caller"].as_str(), Some("shared"));
        assert_eq!(route["key"].as_str(), Some("/o\"d"));
    }

    #[test]
    fn the_end_of_the_input_is_not_an_answer() {
        let ended = Answers::asked(&mut &b"http://h\n"[..], |_| {});
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
