use super::*;
use crate::clock::{Time, proto_span};
use crate::proto::HTTP_TARGET;
use crate::proto::tasks::{HttpTarget, StackdriverLoggingConfig, queue::State};
use crate::table::rows;
use crate::tasks::config;
use serde_json::json;
use std::time::Duration;

fn queue(name: &str, change: impl FnOnce(&mut Queue)) -> Queue {
    let mut queue = Queue {
        name: format!("projects/p/locations/l/queues/{name}"),
        state: State::Running.into(),
        ..Queue::default()
    };
    change(&mut queue);
    config::with_defaults(queue).unwrap()
}

fn passing(queues: &[Queue], text: &str) -> Vec<String> {
    let filter = QueueFilter::parse(text).unwrap();
    let passing = queues.iter().filter(|queue| filter.matches(queue));
    let short = |queue: &Queue| queue.name.rsplit('/').next().unwrap().to_owned();
    passing.map(short).collect()
}

/// Each line is a filter and the queues that pass it.
fn passes(queues: &[Queue], table: &str) {
    for [text, expected] in rows(table) {
        let expected: Vec<_> = expected.split_whitespace().collect();
        assert_eq!(passing(queues, text), expected, "{text}");
    }
}

#[test]
fn states_are_filtered_as_recorded() {
    let queues = [
        queue("paused", |it| it.state = State::Paused.into()),
        queue("running", |_| {}),
    ];
    passes(
        &queues,
        r#"
        state: PAUSED | paused
        state:PAUSED | paused
        state = PAUSED | paused
        state != PAUSED | running
        State: Paused | paused
        state: "PAUSED" | paused
        state: DISABLED |
        NOT state: PAUSED | running
        -state: PAUSED | running
        state: PAUSED OR state: RUNNING | paused running
        state: PAUSED AND state: RUNNING |
        state: PAUSED state: RUNNING |
        (state: PAUSED) | paused
        state: PAUSED OR (state: RUNNING AND NOT state: RUNNING) | paused
        state > RUNNING | paused
         | paused running
    "#,
    );
}

#[test]
fn fields_are_filtered_as_recorded() {
    let queues = [
        queue("field-configured", |it| {
            let rates = it.rate_limits.get_or_insert_default();
            rates.max_dispatches_per_second = 10.0;
            let retry = it.retry_config.get_or_insert_default();
            retry.max_attempts = 5;
            retry.min_backoff = Some(proto_span(Duration::from_secs(1)));
            retry.max_retry_duration = Some(proto_span(Duration::from_secs(60)));
        }),
        queue("field-purged", |it| {
            it.purge_time = Some(Time(1_800_000_000_000_000).timestamp());
        }),
    ];
    passes(
        &queues,
        r#"
        name: field-purged | field-purged
        name: PURGED | field-purged
        name: * | field-configured field-purged
        rate_limits.max_dispatches_per_second = 500 | field-purged
        rate_limits.max_dispatches_per_second < 100 | field-configured
        rateLimits.maxDispatchesPerSecond <= 10 | field-configured
        rate_limits.max_concurrent_dispatches >= 1000 | field-configured field-purged
        rate_limits.max_burst_size != 100 | field-configured
        retry_config.max_attempts = 5 | field-configured
        retry_config.min_backoff = 1s | field-configured
        retry_config.min_backoff > 0.5s | field-configured
        retry_config.min_backoff: 0.1s | field-purged
        retry_config.max_retry_duration: * | field-configured
        retry_config.max_retry_duration < 1s | field-purged
        purge_time: * | field-purged
        purge_time > "2020-01-01T00:00:00Z" | field-purged
        purge_time < "2020-01-01T00:00:00Z" | field-configured
        rate_limits: * | field-configured field-purged
        http_target: * |
    "#,
    );
}

fn full_target() -> HttpTarget {
    let target = json!({
        "uriOverride": { "host": "example.net", "port": 8080, "pathOverride": { "path": "/path" } },
        "httpMethod": "PUT",
        "headerOverrides": [{ "header": { "key": "X-Custom", "value": "v" } }],
        "oidcToken": { "serviceAccountEmail": "a@b", "audience": "https://example.com" },
    });
    proto::from_json(HTTP_TARGET, target)
}

#[test]
fn targets_are_filtered_as_recorded() {
    let queues = [
        queue("empty", |it| it.http_target = Some(HttpTarget::default())),
        queue("full", |it| {
            it.http_target = Some(full_target());
            it.stackdriver_logging_config = Some(StackdriverLoggingConfig {
                sampling_ratio: 0.5,
            });
        }),
        queue("none", |_| {}),
    ];
    passes(
        &queues,
        r#"
        http_target: * | empty full
        http_target.http_method = PUT | full
        http_target.http_method: put | full
        http_target.http_method = HTTP_METHOD_UNSPECIFIED | empty none
        http_target.http_method > POST | full
        http_target.uri_override.host: example | full
        http_target.uri_override.port = 8080 | full
        http_target.uri_override.scheme = HTTPS |
        http_target.uri_override.scheme = SCHEME_UNSPECIFIED | empty full none
        http_target.uri_override.path_override.path: path | full
        http_target.header_overrides: * | full
        http_target.header_overrides.header.key: X-Custom | full
        http_target.oidc_token.audience: example | full
        http_target.oauth_token: * |
        stackdriver_logging_config.sampling_ratio > 0.1 | full
        stackdriver_logging_config.sampling_ratio = 0 | empty none
        app_engine_routing_override.instance: * |
    "#,
    );
}

#[test]
fn filters_are_refused_as_recorded() {
    for [text, expected] in rows(
        r#"
        bogus_field: x | Field not found: 'bogus_field'.
        max_dispatches_per_second < 100 | Field not found: 'max_dispatches_per_second'.
        state: BOGUS | The value 'bogus' is of incorrect type.
        state: 2 | The value '2' is of incorrect type.
        retry_config.max_backoff = 3600 | The value '3600' is of incorrect type.
        rate_limits.max_dispatches_per_second = fast | The value 'fast' is of incorrect type.
        rate_limits: 10 | Cannot match a nested type 'rate_limits'. A member field of scalar or enum type must be provided.
        (state: PAUSED | Failed to parse filter expression: syntax error at token '<EOF>'
        "#,
    ) {
        let refusal = QueueFilter::parse(text).unwrap_err();
        assert_eq!(refusal.message(), expected, "{text}");
    }
}

#[test]
fn no_text_makes_it_fail_badly() {
    for text in [
        "(((((",
        ")",
        "NOT",
        "é: ü",
        "\"",
        "!",
        "state:\"é",
        &"(".repeat(10_000),
    ] {
        assert!(QueueFilter::parse(text).is_err(), "{text}");
    }
}
