//! `semel init`: a first configuration, short and good as it is, by questions or by flags.

mod answers;
mod questions;

use crate::args::InitArgs;
use crate::config::{self, Broken, Config, Mistakes};
use crate::out::{to_stderr, to_stdout};
use crate::promise::crash_line;
use answers::Answers;
use anyhow::Context;
use questions::Questions;
use std::fs::OpenOptions;
use std::io::{IsTerminal, Write, stdin};

/// Why a gate would not start with it.
enum Refused {
    Mistakes(Mistakes),
    Broken(Broken),
}

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<()> {
    if args.docs {
        return to_stdout(&config::page());
    }
    let path = args.file.display();
    let written = || format!("{path} was not written; what was there is as it was");
    let (text, verifies) = if args.all {
        (config::commented_file(), false)
    } else {
        let answers = answers(args).with_context(written)?;
        (answers.file(), answers.verifies())
    };
    let text = with_crash_line(&text)?;
    let mut file = new_file(&text).open(&args.file).with_context(written)?;
    file.write_all(text.as_bytes())
        .with_context(|| format!("{path} is incomplete: remove it before you try again"))?;
    let senders = if verifies {
        "What it verifies senders with must be there where the gate runs: `semel check` there says so"
    } else {
        "It verifies no sender: `verify` and `secrets` do (docs/verify.md)"
    };
    to_stdout(&format!(
        "{path} written: `semel check` judges it, `semel gate` runs it; `semel init --all` shows every setting. {senders}\n"
    ))
}

/// A new file; one with a password in it is for this user alone.
fn new_file(text: &str) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let lines = text.lines().filter(|line| line.starts_with("store = "));
    let has_password = |line: &str| {
        let credentials = line
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once('@'));
        credentials.is_some_and(|(user, _)| user.contains(':')) || line.contains("password=")
    };
    if lines.into_iter().any(has_password) {
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    options
}

/// What the flags say; without any, what a person answers, if there is one.
fn answers(args: &InitArgs) -> anyhow::Result<Answers> {
    let given = Answers::of(args);
    if given.is_some_given() || !stdin().is_terminal() || args.file.exists() {
        return Ok(given);
    }
    let questions = Questions {
        reader: stdin().lock(),
        say: to_stderr,
        judge,
    };
    questions.answers().context("no answer")
}

/// What is wrong with the answers, if anything.
fn judge(answers: &Answers) -> Result<(), String> {
    let found = accepted(&answers.file());
    found.map(drop).map_err(|error| match error {
        Refused::Mistakes(mistakes) => {
            let says: Vec<_> = mistakes.iter().map(|it| it.says.as_str()).collect();
            says.join("; ")
        }
        Refused::Broken(broken) => broken.to_string(),
    })
}

/// The file with a line above its route that says what a crash does to effects. One that the gate would refuse is not
/// written.
fn with_crash_line(text: &str) -> anyhow::Result<String> {
    let config = accepted(text).map_err(|refused| match refused {
        Refused::Mistakes(mistakes) => anyhow::Error::from(mistakes),
        Refused::Broken(broken) => broken.into(),
    })?;
    let lines = config.settings.routes.iter().map(crash_line);
    let comment: String = lines.map(|line| format!("# {line}.\n")).collect();
    Ok(text.replacen("[[route]]\n", &format!("{comment}[[route]]\n"), 1))
}

/// What a gate would start with.
fn accepted(text: &str) -> Result<Config, Refused> {
    let config = config::from_new_text(text).map_err(Refused::Mistakes)?;
    match Broken::among(&config::check(&config)) {
        Some(broken) => Err(Refused::Broken(broken)),
        None => Ok(config),
    }
}
