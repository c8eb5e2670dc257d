//! Asking a person for a first configuration. A mistake is said at the question where it is made, which is asked again.

use super::answers::{Answers, PATH, STORE, UPSTREAM};
use std::io::{self, BufRead};

/// In place of a default, where there is none.
const MUST: &str = "an answer is needed";

/// What is asked, of whom, and what is wrong with an answer.
pub(super) struct Questions<R, S, J> {
    pub(super) reader: R,
    pub(super) say: S,
    /// What is wrong with a configuration, if anything.
    pub(super) judge: J,
}

// === impl Questions ===

impl<R, S, J> Questions<R, S, J>
where
    R: BufRead,
    S: Fn(&str),
    J: Fn(&Answers) -> Result<(), String>,
{
    /// Asks all of them; each answer may be left empty.
    pub(super) fn answers(mut self) -> io::Result<Answers> {
        let mut all = Answers::default();
        self.ask(&mut all, "Where is your handler?", UPSTREAM, |it, said| {
            it.upstream = Some(said);
        })?;
        let which = "Which path of it is to take effect once?";
        self.ask(&mut all, which, PATH, |it, said| it.path = Some(said))?;
        let who = "Who delivers there: cloud-tasks, pubsub, cloudevents, api, stripe, github, shopify or \
                   standard-webhooks?";
        self.ask(&mut all, who, "every broker", |it, said| {
            it.source = Some(said);
        })?;
        match all.webhook() {
            Some(_) => self.ask_for_secret(&mut all)?,
            None => self.ask_for_senders(&mut all)?,
        }
        let preset = if all.is_api() {
            "its Idempotency-Key"
        } else {
            "the sender's own id"
        };
        let which = "Which parts of a payload name the work, as in /order_id or /order_id,/line?";
        self.ask(&mut all, which, preset, |it, said| it.key = vec![said])?;
        let place =
            "Where are records kept: dir:PATH, postgres://…, redis://… or firestore://PROJECT?";
        self.ask(&mut all, place, STORE, |it, said| it.store = Some(said))?;
        Ok(all)
    }

    fn ask_for_secret(&mut self, all: &mut Answers) -> io::Result<()> {
        all.secrets = filled(all).secrets;
        let default = all.secrets.concat();
        let place = "Where is the secret that it signs with: env:NAME or file:PATH?";
        self.ask(all, place, &default, |it, said| it.secrets = vec![said])
    }

    fn ask_for_senders(&mut self, all: &mut Answers) -> io::Result<()> {
        if all.is_api() {
            all.caller = Some("shared".into());
            let what =
                "What tells callers apart: header:NAME, set by something trusted, or shared?";
            self.ask(all, what, "shared", |it, said| it.caller = Some(said))?;
        }
        let who = "Who signs its senders' tokens: google, or an issuer's URL?";
        self.ask(all, who, "nobody", |it, said| it.verify = Some(said))?;
        match all.verify.as_ref().map(|issuer| issuer.contains("://")) {
            None => Ok(()),
            Some(is_own) => self.ask_for_tokens(all, is_own),
        }
    }

    /// Google signs for everybody, so its accounts must be named; what an issuer of one's own signs may be enough.
    fn ask_for_tokens(&mut self, all: &mut Answers, is_own: bool) -> io::Result<()> {
        if is_own {
            let place = "Where are its keys, the `jwks_uri`?";
            while all.keys_url.is_none() {
                self.ask(all, place, MUST, |it, said| it.keys_url = Some(said))?;
            }
        }
        let whom =
            "For whom are the tokens signed: the audience of the task, subscription or client?";
        while all.audience.is_none() {
            self.ask(all, whom, MUST, |it, said| it.audience = Some(said))?;
        }
        let account = "Which account delivers, by its e-mail address?";
        let default = if is_own { "any" } else { MUST };
        self.ask(all, account, default, |it, said| it.emails = vec![said])?;
        while !is_own && all.emails.is_empty() {
            self.ask(all, account, MUST, |it, said| it.emails = vec![said])?;
        }
        Ok(())
    }

    /// Asks until the answer is good, or left empty.
    fn ask(
        &mut self,
        all: &mut Answers,
        question: &str,
        default: &str,
        set: impl Fn(&mut Answers, String),
    ) -> io::Result<()> {
        loop {
            (self.say)(&format!("{question} [{default}]: "));
            let mut line = String::new();
            if self.reader.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let said = line.trim();
            if said.is_empty() {
                return Ok(());
            }
            let mut next = all.clone();
            set(&mut next, said.to_owned());
            match (self.judge)(&filled(&next)) {
                Ok(()) => {
                    *all = next;
                    return Ok(());
                }
                Err(why) => (self.say)(&format!("  {why}\n")),
            }
        }
    }
}

/// The same with what later questions ask for, so that nothing but the answers so far can be wrong.
fn filled(answers: &Answers) -> Answers {
    let mut all = answers.clone();
    if let (Some(sender), true) = (all.webhook(), all.secrets.is_empty()) {
        let name = sender.word().to_uppercase().replace('-', "_");
        all.secrets = vec![format!("env:{name}_SECRET")];
    }
    if all.is_api() {
        all.caller.get_or_insert_with(|| "shared".into());
    }
    if let Some(issuer) = all.verify.clone() {
        all.audience.get_or_insert_with(|| "somebody".into());
        if issuer.contains("://") {
            all.keys_url.get_or_insert(issuer);
        } else if all.emails.is_empty() {
            all.emails = vec!["some@body".into()];
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::*;
    use std::cell::RefCell;

    /// What a person sees who types these lines, and the file, as TOML.
    fn asked(typed: &str) -> (String, toml::Table) {
        let seen = RefCell::new(String::new());
        let questions = Questions {
            reader: typed.as_bytes(),
            say: |text: &str| seen.borrow_mut().push_str(text),
            judge,
        };
        let answers = questions.answers().unwrap();
        (seen.into_inner(), answers.file().parse().unwrap())
    }

    #[test]
    fn every_answer_may_be_left_empty() {
        let (seen, file) = asked("\n\n\n\n\n\n");
        assert_eq!(seen.matches("]: ").count(), 6, "{seen}");
        let default: toml::Table = Answers::default().file().parse().unwrap();
        assert_eq!(file, default);
        assert_eq!(file["upstream"].as_str(), Some(UPSTREAM));
        assert_eq!(file["route"][0]["name"].as_str(), Some("orders"));
    }

    #[test]
    fn answers_are_in_the_file_and_an_api_is_asked_for_its_callers() {
        let (_, file) = asked("http://127.0.0.1:9\n/users/{id}/pay\napi\n\n\n/o\"d\nredis://h\n");
        let route = &file["route"][0];
        assert_eq!(file["upstream"].as_str(), Some("http://127.0.0.1:9"));
        assert_eq!(file["store"].as_str(), Some("redis://h"));
        assert_eq!(route["name"].as_str(), Some("users"));
        assert_eq!(route["path"].as_str(), Some("/users/{id}/pay"));
        assert_eq!(route["caller"].as_str(), Some("shared"));
        assert_eq!(route["key"].as_str(), Some("/o\"d"));
    }

    #[test]
    fn a_mistake_is_said_at_its_question_and_asked_again() {
        let typed = "ftp://h\nhttp://h\norders\n/orders\ncloudtasks\ncloud-tasks\n\n/id\nmysql://h\nredis://h\n";
        let (seen, file) = asked(typed);
        assert_eq!(file["upstream"].as_str(), Some("http://h"));
        assert_eq!(file["route"][0]["source"].as_str(), Some("cloud-tasks"));
        assert_eq!(file["store"].as_str(), Some("redis://h"));
        let questions: Vec<_> = seen.split("]: ").collect();
        for (nth, says) in [
            (1, "`upstream`: write http:// or https://"),
            (3, "`path`"),
            (5, "`source`"),
            (9, "there is no store for mysql:"),
        ] {
            let before = questions[nth - 1].lines().last();
            let after = questions[nth].lines().last();
            assert!(questions[nth].contains(says), "{says}: {seen}");
            assert_eq!(before, after, "asked again: {seen}");
        }
    }

    #[test]
    fn who_signs_is_asked_for_a_secret_and_not_for_tokens() {
        let (seen, file) = asked("\n/hooks\nstandard-webhooks\nwhsec_canary\n\n\n\n");
        let route = &file["route"][0];
        let secrets = route["secrets"].as_array().unwrap();
        assert_eq!(secrets[0].as_str(), Some("env:STANDARD_WEBHOOKS_SECRET"));
        assert!(
            seen.contains("a secret does not stand in the file"),
            "{seen}"
        );
        assert!(!seen.contains("canary"), "{seen}");
        assert!(!seen.contains("tokens"), "{seen}");
    }

    #[test]
    fn who_verifies_tokens_is_asked_for_audience_and_account() {
        let typed = "\n/pay\ncloud-tasks\ngogle\ngoogle\n\nhttps://gate.example/pay\nshop\n\ntasks@shop.example\n\n\n";
        let (seen, file) = asked(typed);
        let route = &file["route"][0];
        assert_eq!(route["verify"].as_str(), Some("google"));
        let audience = route["audience"].as_str();
        assert_eq!(audience, Some("https://gate.example/pay"));
        let emails = route["emails"].as_array().unwrap();
        assert_eq!(emails[0].as_str(), Some("tasks@shop.example"));
        for says in [
            "\"gogle\" is not an issuer",
            "\"shop\" is not an e-mail address",
        ] {
            assert!(seen.contains(says), "{says}: {seen}");
        }
        let typed = "\n/pay\n\nhttps://issuer.example\nhttps://issuer.example/keys\norders\n\n\n\n";
        let (_, file) = asked(typed);
        let route = &file["route"][0];
        let keys = route["keys_url"].as_str();
        assert_eq!(keys, Some("https://issuer.example/keys"));
        assert!(route.get("emails").is_none(), "{route}");
    }

    #[test]
    fn the_end_of_the_input_is_not_an_answer() {
        let questions = Questions {
            reader: &b"http://h\n"[..],
            say: |_: &str| {},
            judge,
        };
        let ended = questions.answers().unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }
}
