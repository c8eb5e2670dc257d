//! What is said of routes that ask their handler about runs in doubt.

use super::{Says, check, in_route};

const PROBES: &str = "in_doubt = \"probe\"\nprobe = \"GET /effects/{key}\"";

#[test]
fn check_says_what_a_probe_promises_and_what_the_handler_must_guarantee() {
    let said = check(&in_route(PROBES)).good();
    said.has("note     route orders: in_doubt = \"probe\": GET /effects/{key} must answer 200 only if the effect happened");
    said.has(
        "warning  route orders: without probe_fences = true the promise is at least one effect",
    );
    said.has("orders, cloud-tasks: a run in doubt is asked about 642s after it began");
    let fenced = format!("{PROBES}\nprobe_fences = true\nundone = [503]");
    let said = check(&in_route(&fenced)).good();
    said.has("note     route orders: probe_fences = true: exactly one effect");
    said.lacks("undone has no effect here");
}

#[test]
fn a_probe_that_could_not_work_is_refused() {
    for (lines, says) in [
        ("in_doubt = \"probe\"", "`probe` is missing"),
        (
            "probe = \"GET /effects/{key}\"",
            "`probe` is for in_doubt = \"probe\"",
        ),
        (
            "probe_fences = true",
            "`probe_fences` is for in_doubt = \"probe\"",
        ),
        (
            "in_doubt = \"probe\"\nprobe = \"/effects/{key}\"",
            "does not ask for a key",
        ),
        (
            "in_doubt = \"probe\"\nprobe = \"GET /effects\"",
            "does not ask for a key",
        ),
        (
            "in_doubt = \"probe\"\nprobe = \"GET /{a}/{key}\"",
            "does not ask for a key",
        ),
        (
            "source = \"cloud-tasks\"\nmax_backoff = \"1s\"\ndeadline = \"10s\"\nretention = \"60s\"\nin_doubt = \"probe\"\nprobe = \
             \"GET /e/{key}\"",
            "retention 1m forgets it before",
        ),
    ] {
        check(&in_route(lines)).ends(64, says);
    }
    let handler = format!("{PROBES}\ncompletes = \"handler\"");
    let file = format!("store = \"postgres://h/d\"\n{}", in_route(&handler));
    check(&file).ends(
        64,
        "has nothing to ask where the handler completes by itself",
    );
}
