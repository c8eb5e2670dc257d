//! `semel records` and `semel letters`, run as an operator would: against a gate, and against a store.

use crate::bed::{Bed, Down, Sender};
use crate::support::said::{Said, Says, command};
use semel::protocol::{Claim, Claimed};
use semel::store::StoreExt;
use semel::{Ended, Fingerprint, Key, Outcome, Semel};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use semel_gate::settings::Secret;
use semel_postgres::{PostgresSettings, PostgresStore};
use serde_json::Value;
use std::time::Duration;
use tokio::process::Command;

/// Runs a line beside this process, which may be the gate that is asked.
async fn semel(line: &str, variables: &[(&str, &str)]) -> Said {
    let mut command = Command::from(command(line));
    let output = command.envs(variables.iter().copied()).output().await;
    output.unwrap().into()
}

/// Asks this gate.
async fn at(bed: &Bed, line: &str) -> Said {
    semel(line, &[("SEMEL_ADMIN", &format!("http://{}", bed.admin))]).await
}

/// The same; it must be done.
async fn done(bed: &Bed, line: &str) -> Said {
    let said = at(bed, line).await;
    said.is_done();
    said
}

/// Done without a gate: the audit line is this process's.
fn is_done_and_audited(said: &Said, act: &str) {
    assert_eq!(said.code, Some(0), "{said:?}");
    let line: Value = serde_json::from_str(&said.stderr).unwrap_or_else(|_| panic!("{said:?}"));
    let audited = (&line["target"], &line["act"]);
    assert_eq!(audited, (&"audit".into(), &act.into()), "{said:?}");
}

/// A gate whose route parks after one failure.
async fn strict() -> Bed {
    Bed::route(|route| route.max_attempts = 1).await
}

/// One record that succeeded and one that is parked, with its letter; gives their keys and its id.
async fn two(bed: &Bed) -> [String; 3] {
    bed.ask(Sender::Task.sends("good", "payload")).await;
    let good = bed.records().await[0].0;
    bed.handler.says(500);
    bed.ask(Sender::Task.sends("bad", r#"{"order": 7}"#)).await;
    let records = bed.records().await;
    let bad = records.iter().find(|(key, _)| *key != good).unwrap().0;
    let letter = bed.letters().await[0].id;
    [good.to_string(), bad.to_string(), letter.to_string()]
}

#[tokio::test]
async fn records_are_listed_as_a_table_and_as_json() {
    let bed = strict().await;
    let [good, bad, _] = two(&bed).await;
    let said = done(&bed, "records list").await;
    let lines: Vec<_> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{said:?}");
    let words: Vec<_> = lines[0]
        .split("  ")
        .filter(|word| !word.is_empty())
        .map(str::trim)
        .collect();
    assert_eq!(
        words,
        [
            "KEY",
            "STATE",
            "ATTEMPTS",
            "DOUBTS",
            "FENCE",
            "BORN",
            "LEASE UNTIL",
            "EXPIRES AT"
        ]
    );
    let state = lines[0].find("STATE").unwrap();
    let row = |key: &str| *lines.iter().find(|line| line.starts_with(key)).unwrap();
    assert!(row(&good)[state..].starts_with("succeeded  1"), "{said:?}");
    assert!(row(&bad)[state..].starts_with("parked     1"), "{said:?}");
    // Parked records never expire.
    assert!(row(&bad).ends_with("  -"), "{said:?}");

    let said = done(&bed, "records list --state parked --json").await;
    let json = said.json();
    assert_eq!(json["records"].as_array().unwrap().len(), 1);
    assert_eq!(json["records"][0]["key"], bad.as_str());
    assert!(json["next"].is_null());

    let said = at(&bed, "records list --state waiting").await;
    said.ends(0, "no records");
    assert_eq!(said.stdout, "");
    let said = at(&bed, "records list --limit 1").await;
    said.ends(0, "there are more records");
    assert_eq!(said.stdout.lines().count(), 2);
}

#[tokio::test]
async fn a_list_goes_on_over_many_pages() {
    let bed = strict().await;
    for number in 0..1100_u32 {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        let claim = Claim {
            lease: Duration::from_secs(60),
            retention: Duration::from_secs(60),
            ..Claim::new(Key::from_bytes(key), Fingerprint::off())
        };
        let claimed = bed.store.kept().claim(&claim).await.unwrap();
        assert!(matches!(claimed, Claimed::Granted(_)), "{claimed:?}");
    }
    let count = |said: &Said| said.json()["records"].as_array().unwrap().len();
    let all = at(&bed, "records list --json --limit 5000").await;
    assert_eq!(count(&all), 1100);
    let some = at(&bed, "records list --json --limit 1050").await;
    assert_eq!(count(&some), 1050);
    assert!(some.json()["next"].is_string());
}

#[tokio::test]
async fn a_record_is_shown_resolved_and_forgotten() {
    let bed = strict().await;
    let [good, bad, _] = two(&bed).await;
    let said = done(&bed, &format!("records show {good} --body")).await;
    assert!(
        said.stdout
            .starts_with(&format!("key          {good}\nstate        succeeded\n")),
        "{said:?}"
    );
    said.stdout.has("status       200\n");
    assert!(said.stdout.ends_with("\n\nrun 1\n"), "{said:?}");
    let said = at(&bed, &format!("records show {good}")).await;
    said.stdout.lacks("run 1");
    let said = at(&bed, &format!("records show {bad} --json")).await;
    assert_eq!(said.json()["outcome"]["status"], 500);

    let said = at(&bed, &format!("records release {bad}")).await;
    said.ends(
        1,
        "the record is parked, and release is for records that are running or waiting",
    );
    assert_eq!(said.stdout, "");
    let said = at(&bed, &format!("records release {bad} --json")).await;
    said.ends(1, "the record is parked");
    assert_eq!(said.json()["state"], "parked");
    let said = done(&bed, &format!("records resolve {bad} --as retry")).await;
    let first = format!("resolve  record {bad}  parked -> waiting\n");
    assert!(said.stdout.starts_with(&first), "{said:?}");
    done(&bed, &format!("records release {bad}")).await;
    let said = done(&bed, &format!("records forget {bad}")).await;
    said.stdout.has("waiting -> absent");
    let said = at(&bed, &format!("records show {bad}")).await;
    said.ends(1, "no record of this key: it is absent or expired");
}

#[tokio::test]
async fn a_letter_is_shown_redriven_and_discarded() {
    let bed = strict().await;
    let [_, bad, letter] = two(&bed).await;
    let said = done(&bed, "letters list").await;
    assert_eq!(said.stdout.lines().count(), 2, "{said:?}");
    said.stdout.has(&format!("{letter}  parked  "));
    assert!(said.stdout.ends_with(&format!("  {bad}\n")), "{said:?}");
    let said = done(&bed, &format!("letters show {}", &letter[..8])).await;
    said.stdout.has("needs operator  true\n");
    said.stdout.has("route           work\n");
    assert!(said.stdout.ends_with("\n\n{\"order\": 7}\n"), "{said:?}");

    bed.handler.says(503);
    let said = at(&bed, &format!("letters redrive {letter} --json")).await;
    said.ends(
        1,
        "it failed again and is parked (status 503); the letter stays",
    );
    assert_eq!(said.json()["status"], 503);
    let said = done(&bed, &format!("letters redrive {letter}")).await;
    assert_eq!(
        said.stdout,
        format!(
            "redrive  letter {letter}  ran\nit succeeded; the letter is closed\npromise void: what this route promises of \
             its effects does not hold for this key any more\n"
        )
    );
    let said = at(&bed, &format!("letters redrive {letter}")).await;
    said.ends(1, "no letter of this id");

    bed.handler.says(500);
    bed.ask(Sender::Task.sends("worse", "payload")).await;
    let letter = bed.letters().await[0].id.to_string();
    done(&bed, &format!("letters discard {letter}")).await;
    assert!(bed.letters().await.is_empty());
    let said = done(&bed, "letters list --json").await;
    assert_eq!(said.stdout, "{\"letters\":[],\"next\":null}\n");
}

#[tokio::test]
async fn a_letter_whose_record_is_gone_runs_on_request_only() {
    let bed = strict().await;
    bed.handler.says(500);
    assert_eq!(bed.ask(Sender::Task.sends("t1", "{}")).await.status, 200);
    let letter = bed.letters().await[0].id.to_string();
    let key = bed.records().await[0].0.to_string();
    done(&bed, &format!("records forget {key}")).await;
    let said = at(&bed, "letters list").await;
    said.stdout.has("unknown");
    let said = at(&bed, &format!("letters redrive {letter}")).await;
    said.ends(1, "whether this work took effect is unknown");
    said.stderr.has("--run-again");
    assert_eq!(bed.runs(), 1);
    done(&bed, &format!("letters redrive {letter} --run-again")).await;
    assert_eq!((bed.runs(), bed.letters().await.len()), (2, 0));
}

#[tokio::test]
async fn a_key_is_forgotten_with_its_letters() {
    let bed = strict().await;
    bed.handler.says(500);
    assert_eq!(bed.ask(Sender::Task.sends("t1", "{}")).await.status, 200);
    let key = bed.records().await[0].0.to_string();
    done(
        &bed,
        &format!("records forget {key} --letters --why erasure"),
    )
    .await;
    assert_eq!(
        (bed.records().await.len(), bed.letters().await.len()),
        (0, 0)
    );
}

#[tokio::test]
async fn a_gate_that_asks_for_its_token_gets_it() {
    let token = Some(Secret("correct-horse".into()));
    let bed = Bed::with(|settings| settings.admin_token = token).await;
    // A gate's own variable has no scheme.
    let admin = bed.admin.to_string();
    let list = "letters list --json";
    let said = semel(list, &[("SEMEL_ADMIN", &admin)]).await;
    said.ends(1, "this admin address asks for its token");
    let variables = [
        ("SEMEL_ADMIN", admin.as_str()),
        ("SEMEL_ADMIN_TOKEN", "correct-horse"),
    ];
    semel(list, &variables).await.is_done();
    let flags = format!("letters --admin {admin} list --token correct-horse --json");
    semel(&flags, &[]).await.is_done();
    let flags = format!("letters list --admin {admin} --token wrong");
    let said = semel(&flags, &[]).await;
    said.ends(1, "asks for its token");
    said.stderr.lacks("wrong");
}

/// Runs a line in a directory with this configuration.
async fn semel_beside(toml: &str, line: &str, variables: &[(&str, &str)]) -> Said {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("semel.toml"), toml).unwrap();
    let mut command = Command::from(command(line));
    command.current_dir(directory.path());
    let output = command.envs(variables.iter().copied()).output().await;
    output.unwrap().into()
}

#[tokio::test]
async fn the_file_of_the_gate_says_where_it_is_asked() {
    let token = Some(Secret("correct-horse".into()));
    let bed = Bed::with(|settings| settings.admin_token = token).await;
    let (admin, port) = (bed.admin.to_string(), bed.admin.port());
    let list = "letters list --json";
    // What else is wrong with the file does not matter here.
    for address in [admin.clone(), format!("0.0.0.0:{port}")] {
        let toml = format!("admin = \"{address}\"\nadmin_token = \"correct-horse\"\nroute = 1\n");
        semel_beside(&toml, list, &[]).await.is_done();
    }
    let file = format!("admin = \"{admin}\"\nadmin_token = \"wrong\"\n");
    let said = semel_beside(&file, list, &[]).await;
    said.ends(1, "asks for its token");
    let token = [("SEMEL_ADMIN_TOKEN", "correct-horse")];
    semel_beside(&file, list, &token).await.is_done();
    let elsewhere = "admin = \"127.0.0.1:1\"\nadmin_token = \"correct-horse\"\n";
    semel_beside(elsewhere, list, &[])
        .await
        .ends(69, "there is no gate at http://127.0.0.1:1");
    // The variable and the flag come first, and the token of a file is for its own gate alone.
    let variable = [("SEMEL_ADMIN", admin.as_str())];
    let said = semel_beside(elsewhere, list, &variable).await;
    said.ends(1, "asks for its token");
    let flags = format!("{list} --admin {admin} --token correct-horse");
    semel_beside(elsewhere, &flags, &[]).await.is_done();
    let said = semel_beside("admin = 1\n", list, &[]).await;
    said.ends(64, "semel.toml:1: `admin` must be an address");
    let said = semel_beside("", "letters list --config none.toml", &[]).await;
    said.ends(64, "none.toml: cannot be read");
}

#[tokio::test]
async fn nobody_there_is_69_and_says_what_to_do() {
    let admin = format!("http://127.0.0.1:{}", testbed::free_port().unwrap());
    let said = semel(&format!("records list --admin {admin}"), &[]).await;
    said.ends(69, "start one (`semel gate`)");
    said.stderr.has("--store");
    let bed = strict().await;
    // A handler is not a gate.
    let said = semel(
        &format!("records list --admin {}", bed.handler.address),
        &[],
    )
    .await;
    said.ends(69, "not as a gate's admin address does");
    bed.store.is(Down::Everything);
    let said = at(&bed, "records list").await;
    said.ends(69, "store unavailable");
}

#[tokio::test]
async fn mistakes_of_usage_are_64() {
    for line in [
        "records show v1_12",
        "records list --state done",
        "records list --limit 0",
        "records list --admin https://127.0.0.1:8081",
        "records list --admin http://127.0.0.1:8081/records",
        "records list --store mysql://h/d",
        "records resolve --as retry",
        "letters show 12",
        "letters redrive not-hex-at-all",
        "letters",
    ] {
        let said = semel(line, &[]).await;
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(64), ""),
            "{line} {said:?}"
        );
    }
    let key = Key::from_bytes([1; 32]).to_string();
    let said = semel(&format!("records resolve {key} --as done"), &[]).await;
    said.ends(64, "\"done\" is not a verdict");
}

async fn ran(semel: &Semel, key: Key) {
    let work = semel::work::Work::new(key, Fingerprint::of(b"payload"));
    let ended = semel
        .run(work, |_| async { Ok(Outcome::ok("done")) })
        .await
        .unwrap();
    assert!(matches!(ended, Ended::Ran(_)), "{ended:?}");
}

#[tokio::test]
async fn an_embedded_store_is_asked_directly_while_no_gate_holds_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("dir:{}", directory.path().display());
    let key = Key::from_bytes([1; 32]);
    let held =
        Semel::new(EmbeddedStore::open(directory.path(), EmbeddedSettings::default()).unwrap());
    ran(&held, key).await;
    let list = format!("records list --store {store}");
    let said = semel(&list, &[]).await;
    said.ends(69, "is open in another process");

    drop(held);
    // A gate in the environment does not matter then.
    let said = semel(&list, &[("SEMEL_ADMIN", "127.0.0.1:1")]).await;
    said.is_done();
    said.stdout.has(&format!("{key}  succeeded  1"));
    let key = key.to_string();
    let forget = format!("records forget {key} --store {store}");
    is_done_and_audited(&semel(&forget, &[]).await, "forget");
    let said = semel(&forget, &[]).await;
    said.ends(1, "no record of this key");
    let said = semel(&format!("letters redrive 01234567 --store {store}"), &[]).await;
    said.ends(1, "only a gate does that");

    let elsewhere = format!("{store}/elsewhere");
    let said = semel(&format!("records list --store {elsewhere}"), &[]).await;
    said.ends(1, "there is no store in");
    assert!(!directory.path().join("elsewhere").exists());
}

#[tokio::test]
async fn looking_into_a_store_never_changes_its_schema() {
    let url = testbed::fresh_database("cli_looks").unwrap();
    for what in ["records", "letters"] {
        let said = semel(&format!("{what} list --store {url}"), &[]).await;
        said.ends(64, "run `semel migrate`");
    }
    let key = Key::from_bytes([3; 32]).to_string();
    let said = semel(&format!("records show {key} --store {url}"), &[]).await;
    said.ends(64, "run `semel migrate`");
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'semel'";
    assert_eq!(testbed::query(&url, schemas).unwrap().trim(), "0");

    let empty = tempfile::tempdir().unwrap();
    let store = format!("dir:{}", empty.path().display());
    let said = semel(&format!("records list --store {store}"), &[]).await;
    said.ends(1, "there is no store in");
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_mistake_in_the_name_of_a_store_is_no_outage() {
    let here = testbed::fresh_database("cli_named").unwrap();
    let (server, _) = here.rsplit_once('/').unwrap();
    let redis = testbed::redis_url().unwrap();
    let cache = redis.trim_end_matches('/');
    for (url, says) in [
        (format!("{here}?sslmode=on"), "sslmode=on is not one of"),
        (
            format!("{here}?sslmode=verify-full&sslrootcert=/no/ca.pem"),
            "/no/ca.pem cannot be read",
        ),
        (
            "postgres://u@h:port/d".into(),
            "a port of the URL is not a number",
        ),
        (
            format!("{server}/nobody_made_this"),
            "create the database, or fix the URL",
        ),
        (
            format!("{cache}/99"),
            "has no database of the number that the URL ends with",
        ),
    ] {
        let said = semel(&format!("records list --store {url}"), &[]).await;
        said.ends(64, says);
    }
    let said = semel("records list --store postgres://u@127.0.0.1:1/d", &[]).await;
    said.ends(69, "a retry is safe");
    for once in ["a retry is safe", "Connection refused"] {
        assert_eq!(said.stderr.matches(once).count(), 1, "{said:?}");
    }
}

#[tokio::test]
async fn a_shared_store_says_who_may_still_replay() {
    let url = testbed::fresh_database("cli_operate").unwrap();
    let settings = PostgresSettings::new(&url);
    semel_postgres::migrate(&settings).await.unwrap();
    let key = Key::from_bytes([2; 32]);
    ran(
        &Semel::new(PostgresStore::connect(settings).await.unwrap()),
        key,
    )
    .await;
    let said = semel(&format!("records forget {key} --store {url}"), &[]).await;
    is_done_and_audited(&said, "forget");
    said.stdout.has("succeeded -> absent");
    let says = "another gate may replay the forgotten answer for up to 5000 ms (its `cache_ms`)";
    said.stdout.has(says);
}

#[tokio::test]
async fn a_reason_that_nobody_sees_is_refused_before_anything_is_asked() {
    let key = format!("v1_{}", "0".repeat(64));
    let mut command = Command::from(command(&format!("records forget {key} --why")));
    let output = command.arg("\u{200b}\u{202e} ").output().await;
    let said = Said::from(output.unwrap());
    assert_eq!(said.code, Some(64), "{said:?}");
    said.stderr.has("nothing of this reason can be seen");
}
