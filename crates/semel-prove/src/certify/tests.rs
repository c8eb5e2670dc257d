use super::*;
use Honours::{CannotTell, No, NotRun, Partly, Yes};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// How a service keeps its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Nothing,
    /// By caller and key, with the payload.
    Whole,
    /// By key alone.
    KeyOnly,
}

/// A service whose answers say how often it has run, unless it is terse.
fn service(keeps: Keeps, terse: bool) -> Transport {
    let known: Mutex<BTreeMap<String, (String, Answer)>> = Mutex::default();
    let runs = Mutex::new(0);
    let serve = move |ask: Ask| -> Answer {
        let answer = |status, body: String| Answer {
            status,
            replay_header: None,
            body: body.into(),
        };
        let Some(key) = &ask.key else {
            return answer(
                if keeps == Keeps::Nothing { 200 } else { 400 },
                String::new(),
            );
        };
        let name = match keeps {
            Keeps::Whole => format!("{:?} {key}", ask.caller),
            Keeps::KeyOnly | Keeps::Nothing => key.clone(),
        };
        let mut known = known.lock().unwrap();
        match known.get(&name).filter(|_| keeps != Keeps::Nothing) {
            Some((body, _)) if *body != ask.body && keeps == Keeps::Whole => {
                answer(422, String::new())
            }
            Some((_, first)) => Answer {
                replay_header: (!terse).then(|| "idempotent-replayed: true".to_owned()),
                ..first.clone()
            },
            None => {
                let mut runs = runs.lock().unwrap();
                *runs += 1;
                let said = answer(
                    201,
                    if terse {
                        "done".to_owned()
                    } else {
                        format!("run {runs}")
                    },
                );
                known.insert(name, (ask.body, said.clone()));
                said
            }
        }
    };
    Arc::new(move |ask| {
        let answer = serve(ask);
        Box::pin(async move { Ok(answer) })
    })
}

async fn honours(keeps: Keeps, terse: bool, settings: &Settings) -> (Vec<Honours>, u8) {
    let certificate = certify(settings, &service(keeps, terse)).await.unwrap();
    let honours = certificate.rules.iter().map(|rule| rule.honours);
    (honours.collect(), certificate.exit_code())
}

fn settings() -> Settings {
    Settings {
        body: r#"{"id": "{id}"}"#.to_owned(),
        other_body: None,
        other_caller: true,
        at_once: 4,
        id_prefix: "t".to_owned(),
    }
}

#[tokio::test]
async fn service_that_keeps_its_keys_honours_every_rule() {
    let (rules, code) = honours(Keeps::Whole, false, &settings()).await;
    assert_eq!((rules, code), (vec![Yes; 6], 0));
}

#[tokio::test]
async fn service_that_keeps_nothing_honours_none() {
    let (rules, code) = honours(Keeps::Nothing, false, &settings()).await;
    assert_eq!((rules, code), (vec![No, Partly, No, No, Yes, Partly], 1));
}

#[tokio::test]
async fn keys_of_all_callers_together_are_told() {
    let (rules, code) = honours(Keeps::KeyOnly, false, &settings()).await;
    assert_eq!((rules, code), (vec![Yes, Yes, No, Yes, No, Yes], 1));
}

#[tokio::test]
async fn answers_that_are_all_alike_show_nothing() {
    let mut settings = settings();
    settings.body = "{}".to_owned();
    settings.other_caller = false;
    let (rules, code) = honours(Keeps::Nothing, true, &settings).await;
    let seen = vec![CannotTell, Partly, NotRun, CannotTell, NotRun, Partly];
    assert_eq!((rules, code), (seen, 2));
}

#[tokio::test]
async fn service_that_refuses_the_first_request_cannot_be_judged() {
    let refuses: Transport = Arc::new(|_| {
        Box::pin(async {
            Ok(Answer {
                status: 401,
                replay_header: None,
                body: Bytes::new(),
            })
        })
    });
    let why = certify(&settings(), &refuses).await.unwrap_err();
    assert!(why.contains("401"), "{why}");
}
