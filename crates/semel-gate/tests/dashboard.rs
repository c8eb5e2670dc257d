//! The dashboard asks for nothing that the gate does not show, and for everything that it shows.

use crate::landing::LandingBed;
use crate::long_work::{long, outlasts};
use crate::probe::Probing;
use crate::support::prelude::*;
use crate::verify::issuer::TestIssuer;
use semel_gate::settings::{KeyMissing, Lands, Otlp, OtlpProtocol};
use std::collections::{BTreeMap, BTreeSet};

type Labels = BTreeMap<String, BTreeSet<String>>;

/// The metrics of a text that Prometheus reads, and the labels of each.
fn shown(text: &str) -> Labels {
    let mut shown = Labels::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
        let labels = shown.entry(name.into()).or_default();
        if let Some((pairs, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            labels.extend(
                pairs
                    .split(',')
                    .map(|pair| pair.split('=').next().unwrap().to_owned()),
            );
        }
    }
    shown
}

/// The metrics of such a text, each by one name that a query has for it.
fn declared(text: &str) -> BTreeSet<String> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    lines
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            "histogram" => format!("{name}_bucket"),
            _ => name.to_owned(),
        })
        .collect()
}

/// The metrics of a query, and the labels that it names of each: those it selects by, groups by and shows.
fn asked(query: &str, legend: &str) -> Labels {
    let mut named: BTreeSet<_> = between(legend, "{{", "}}").map(str::to_owned).collect();
    for list in between(query, "by (", ")").chain(between(query, "{", "}")) {
        let labels = list
            .split(',')
            .map(|label| label.split(['=', '!']).next().unwrap().trim());
        named.extend(labels.map(str::to_owned));
    }
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let words = query.split(|c: char| !is_part(c));
    let metrics = words.filter(|word| word.starts_with("semel_"));
    metrics
        .map(|metric| (metric.to_owned(), named.clone()))
        .collect()
}

fn between<'a>(text: &'a str, before: &'a str, after: &'a str) -> impl Iterator<Item = &'a str> {
    let rests = text.split(before).skip(1);
    rests.map(move |rest| rest.split(after).next().unwrap())
}

/// What gates show that everything happened to that they count, and the metrics that this is of.
async fn metrics() -> (Labels, BTreeSet<String>) {
    let (mut all, mut names) = (Labels::new(), BTreeSet::new());
    let silent = Bed::limits(|limits| limits.head_within = Duration::from_millis(50)).await;
    closed(connect(silent.gate, "").await).await;
    let verified = TestIssuer::start().await.bed().await;
    verified.task("of nobody").await.is(401);
    let outlasted = long().await;
    outlasts(&outlasted, Say::new(200, "done"), Sender::Task).await;
    outlasted.handler.go();
    outlasted.until_counted("semel_runs_outlasted_total{").await;
    let probing = Probing::in_doubt().await;
    probing.task("n").await;
    let landing = LandingBed::stateless(Lands::Delivery, |_| {}).await;
    landing.lose_directory();
    landing.bed.task("not landed").await.is(503);
    landing.restore_directory();
    landing.bed.task("landed").await.is(204);
    let beds = [
        busy().await,
        silent,
        verified,
        outlasted,
        probing.bed,
        landing.bed,
    ];
    for bed in beds {
        let metrics = bed.admin("/metrics").await;
        names.extend(declared(metrics.text()));
        for (metric, labels) in shown(metrics.text()) {
            all.entry(metric).or_default().extend(labels);
        }
    }
    (all, names)
}

/// A gate with a slot and room for a letter, and more deliveries than that; nobody receives its spans.
async fn busy() -> Bed {
    let bed = Bed::with(|settings| {
        let route = &mut settings.routes[0];
        route.final_statuses = vec![422..=422];
        route.letters.count_max = 1;
        route.concurrency = 1;
        route.key_missing = KeyMissing::Pass;
        terms_of(route, |terms| terms.timeout = Duration::from_millis(500));
        let nobody = "http://127.0.0.1:1/v1/traces".parse().unwrap();
        let mut otlp = Otlp::new(nobody, OtlpProtocol::HttpProtobuf);
        otlp.batch.send_within = Duration::from_millis(1);
        otlp.batch.delay = Duration::ZERO;
        settings.otlp = Some(otlp);
    })
    .await;
    let held = bed.hold(Sender::Task.sends("held", "{}")).await;
    let waits = bed.begin(Sender::Task.sends("waits", "{}"));
    bed.until_counted("semel_queued{route=\"work\"} 1").await;
    bed.go(held).await.is(200);
    waits.await.unwrap().is(200);
    for name in ["kept", "refused"] {
        bed.handler.says(422);
        bed.task(name).await;
    }
    bed.handler.will(Act::Hang);
    bed.task("late").await;
    bed.ask(Ask::post("/work").header("X-Caller", "alice"))
        .await
        .is(200);
    let large = vec![b'x'; 1024 * 1024 + 1];
    bed.ask(Sender::Task.sends("large", "").body(large))
        .await
        .is(413);
    bed.until_counted("semel_letters_open{").await;
    bed.until_counted("semel_spans_dropped_total{").await;
    bed
}

#[tokio::test]
async fn the_dashboard_asks_for_what_the_gate_shows_and_for_all_of_it() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../deploy/grafana/semel-gate.json"
    );
    let page: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (shown, mut names) = metrics().await;
    let panels = page["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let text = |target: &Value, name: &str| target[name].as_str().unwrap().to_owned();
    let mut queries: Vec<_> = targets
        .map(|it| (text(it, "expr"), text(it, "legendFormat")))
        .collect();
    let variables = page["templating"]["list"].as_array().unwrap().iter();
    let asking = variables.filter(|variable| variable["type"] == "query");
    queries.extend(asking.map(|variable| {
        let query = text(variable, "query");
        let label = query.split([',', ')']).nth(1).unwrap().trim().to_owned();
        (query, format!("{{{{{label}}}}}"))
    }));
    assert!(queries.len() > 20, "{queries:?}");
    for (query, legend) in queries {
        let asked = asked(&query, &legend);
        assert!(!asked.is_empty(), "{query}");
        for (metric, labels) in asked {
            names.remove(&metric);
            let has = shown.get(&metric);
            let has = has.unwrap_or_else(|| panic!("{metric} is not among {:#?}", shown.keys()));
            let unknown: Vec<_> = labels.difference(has).collect();
            assert!(
                unknown.is_empty(),
                "{metric} has {has:?}, and not {unknown:?}: {query}"
            );
        }
    }
    assert!(names.is_empty(), "{names:?} have no panel");
}

#[test]
fn names_are_found_in_queries() {
    let query = "sum by (le, route) (rate(semel_x_bucket{route=~\"$route\"}[5m]))";
    let asked = asked(query, "{{route}} {{verb}}");
    let labels = ["le", "route", "verb"].map(str::to_owned);
    assert_eq!(
        asked,
        Labels::from([("semel_x_bucket".into(), labels.into())])
    );
    let text = "# TYPE a counter\nsemel_a_total{route=\"x\",le=\"1\"} 5\nsemel_b 7\n";
    let expected = [("semel_a_total", &["route", "le"][..]), ("semel_b", &[])];
    let expected = expected.map(|(name, labels)| {
        (
            name.to_owned(),
            labels.iter().map(|&label| label.to_owned()).collect(),
        )
    });
    assert_eq!(shown(text), Labels::from(expected));
    let text = "# TYPE a counter\n# HELP a x\n# TYPE b gauge\n# TYPE c histogram\na_total 5\n";
    let expected = ["a_total", "b", "c_bucket"].map(str::to_owned);
    assert_eq!(declared(text), expected.into());
}
