//! Each mistake is named, with its line and what to write instead.

use super::{GOOD, Says, check, in_route, on_top};

/// A line of `mistakes.txt`: what is wrong, and what is said of it.
fn mistakes(section: &str) -> impl Iterator<Item = (String, &'static str)> {
    let all = include_str!("mistakes.txt");
    let lines = all
        .lines()
        .skip_while(move |line| !line.starts_with(section));
    let lines = lines.skip(1).take_while(|line| !line.is_empty());
    lines.map(|line| {
        let (mistake, said) = line.split_once("  ->  ").unwrap();
        (mistake.replace("\\n", "\n"), said)
    })
}

#[test]
fn each_mistake_of_a_route_is_named_with_its_line() {
    let mut count = 0;
    for (lines, expected) in mistakes("# In a route") {
        let said = check(&in_route(&lines)).refused();
        said.has("semel.toml:5: route orders: ");
        said.has(expected);
        count += 1;
    }
    assert_eq!(count, 93);
}

#[test]
fn what_is_missing_is_named_with_the_line_of_its_route() {
    for line in ["source = \"api\"", "key = \"idempotency-key\""] {
        let said = check(&in_route(line)).refused();
        let expected = "semel.toml:2: route orders: `caller` is missing: clients choose their own keys, \
                        and one caller must never receive another's stored answer";
        said.has(expected);
    }
    let said = check("[[route]]\nname = \"a\"\n").refused();
    said.has("semel.toml:1: route a: `path` is missing: write path = \"/orders\"");
    said.has("semel.toml:1: route a: `upstream` is missing");
}

#[test]
fn each_mistake_of_the_top_level_is_named_with_its_line() {
    let mut count = 0;
    for (line, expected) in mistakes("# On the top level") {
        let said = check(&on_top(&line)).refused();
        said.has("semel.toml:1: ");
        said.has(expected);
        said.lacks("secret");
        count += 1;
    }
    assert_eq!(count, 24);
}

#[test]
fn all_mistakes_are_told_together_in_the_order_of_the_file() {
    let toml = "storr = \"x\"\n\n[[route]]\npath = \"a\"\nlease = 1\n\n[[route]]\nname = \"b\"\npath = \"/b\"\nqueue = \"x\"\n";
    let said = check(toml).refused();
    let lines: Vec<_> = said
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        lines,
        [
            "semel",
            "  semel.toml:1",
            "  semel.toml:3",
            "  semel.toml:3",
            "  semel.toml:4",
            "  semel.toml:5",
            "  semel.toml:7",
            "  semel.toml:10",
        ],
        "{said}"
    );
    said.has("the configuration has 7 mistakes");
    said.has("semel.toml:3: route number 1: `name` is missing");
    said.has("semel.toml:7: route b: `upstream` is missing");
}

#[test]
fn routes_must_be_apart() {
    let twice =
        format!("{GOOD}methods = [\"POST\"]\n[[route]]\nname = \"orders\"\npath = \"/orders\"\n");
    let said = check(&twice).refused();
    said.has("semel.toml:6: route orders: another route has this name");
    said.has("route orders has the path /orders and the same methods already");

    let apart = format!(
        "{GOOD}methods = [\"POST\"]\n[[route]]\nname = \"other\"\npath = \"/orders\"\nmethods = [\"PUT\"]\n"
    );
    check(&apart).good();

    check("upstream = \"http://h\"\n").ends(64, "there is no [[route]]");
    check("[route]\nname = \"a\"\n").ends(64, "write [[route]] with two brackets");
    let long = GOOD.replace("\"orders\"", &format!("\"{}\"", "x".repeat(256)));
    check(&long).ends(64, "`name` has 256 bytes: write 1 to 255");
}

#[test]
fn what_no_request_could_reach_is_refused() {
    let wide = GOOD.replace("/orders", "/*");
    let said = check(&format!("{wide}[[route]]\nname = \"b\"\npath = \"/b/*\"\n")).refused();
    let expected = "semel.toml:5: route b: route orders stands before and takes all of /*: put this route first";
    said.has(expected);
    let first = "[[route]]\nname = \"b\"\npath = \"/b/*\"\n";
    let wide_last = wide.replace("[[route]]", &format!("{first}[[route]]"));
    check(&wide_last).good();

    check(&format!("pass = [\"/healthz\"]\n{wide}"))
        .ends(64, "semel.toml:3: route orders: /healthz is never passed");
    let posts = format!("pass = [\"/healthz\", \"/orders\"]\n{wide}methods = [\"POST\"]\n");
    check(&posts).good();
}
