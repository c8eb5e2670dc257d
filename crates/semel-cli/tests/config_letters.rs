//! What `semel check` says of sources, of answers in doubt, and of letters.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::process::{Command, Output};

/// A file with one route that also says these lines.
fn check(lines: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let toml = format!(
        "upstream = \"http://127.0.0.1:3000\"\n[[route]]\nname = \"orders\"\npath = \"/orders\"\n{lines}\n"
    );
    std::fs::write(directory.path().join("semel.toml"), toml).unwrap();
    Command::new(env!("CARGO_BIN_EXE_semel"))
        .arg("check")
        .current_dir(directory.path())
        .env_clear()
        .output()
        .unwrap()
}

fn good(lines: &str) -> String {
    let output = check(lines);
    assert_eq!(output.status.code(), Some(0), "{lines}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Which sources a route takes deliveries of.
fn taken(said: &str) -> Vec<&'static str> {
    let is_taken = |source: &&str| said.contains(&format!("route orders, {source}: "));
    let all = ["api", "cloud-tasks", "pubsub", "cloudevents"];
    all.into_iter().filter(is_taken).collect()
}

#[test]
fn auto_takes_brokers_or_where_a_caller_is_named_api_clients() {
    let brokers = ["cloud-tasks", "pubsub", "cloudevents"];
    assert_eq!(taken(&good("")), brokers);
    assert_eq!(taken(&good("source = \"auto\"")), brokers);
    let said = good("caller = \"shared\"");
    assert_eq!(taken(&said), ["api"]);
    assert!(
        said.contains("only requests of API clients are taken"),
        "{said}"
    );
}

#[test]
fn a_list_takes_those_that_it_names() {
    let said = good("source = [\"api\", \"pubsub\"]\ncaller = \"header:x-client\"");
    assert_eq!(taken(&said), ["api", "pubsub"]);
    let said = good("source = [\"pubsub\", \"cloudevents\"]\ncaller = \"shared\"");
    assert_eq!(taken(&said), ["pubsub", "cloudevents"]);
    assert!(
        said.contains("warning  route orders: caller tells API clients apart"),
        "{said}"
    );
}

#[test]
fn a_list_with_api_clients_needs_their_caller() {
    let output = check("source = [\"api\", \"pubsub\"]");
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("route orders: `caller` is missing"), "{said}");
}

#[test]
fn parking_says_what_an_answer_means() {
    let said = good("in_doubt = \"park\"");
    assert!(
        said.contains(
            "may have taken effect and parks the work, and `undone` and `final` list none"
        ),
        "{said}"
    );
    let said = good("in_doubt = \"park\"\nundone = [503]\nfinal = [422]");
    assert!(
        said.contains("except those in `undone`, which may run again"),
        "{said}"
    );
    let said = good("undone = [503]");
    assert!(
        said.contains("warning  route orders: undone has no effect here"),
        "{said}"
    );
    assert!(!good("").contains("undone"));
}

#[test]
fn a_body_that_could_never_be_kept_is_told() {
    let said = good("letters_bytes_max = \"20MiB\"");
    assert!(
        said.contains("warning  route orders: body_bytes_max 16777216 > half of letters_bytes_max"),
        "{said}"
    );
}
