use super::*;
use crate::proto::tasks::http_target::{AuthorizationHeader, Header, HeaderOverride};
use crate::proto::tasks::{
    HttpTarget, OidcToken, PathOverride, StackdriverLoggingConfig, UriOverride, queue::State,
};
use crate::tasks::config;

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

#[test]
fn states_are_filtered_as_recorded() {
    let queues = [
        queue("paused", |it| it.state = State::Paused.into()),
        queue("running", |_| {}),
    ];
    for (text, expected) in [
        ("state: PAUSED", vec!["paused"]),
        ("state:PAUSED", vec!["paused"]),
        ("state = PAUSED", vec!["paused"]),
        ("state != PAUSED", vec!["running"]),
        ("State: Paused", vec!["paused"]),
        ("state: \"PAUSED\"", vec!["paused"]),
        ("state: DISABLED", vec![]),
        ("NOT state: PAUSED", vec!["running"]),
        ("-state: PAUSED", vec!["running"]),
        ("state: PAUSED OR state: RUNNING", vec!["paused", "running"]),
        ("state: PAUSED AND state: RUNNING", vec![]),
        ("state: PAUSED state: RUNNING", vec![]),
        ("(state: PAUSED)", vec!["paused"]),
        (
            "state: PAUSED OR (state: RUNNING AND NOT state: RUNNING)",
            vec!["paused"],
        ),
        ("state > RUNNING", vec!["paused"]),
        ("", vec!["paused", "running"]),
    ] {
        assert_eq!(passing(&queues, text), expected, "{text}");
    }
}

#[test]
fn fields_are_filtered_as_recorded() {
    let queues = [
        queue("field-configured", |it| {
            it.rate_limits
                .get_or_insert_default()
                .max_dispatches_per_second = 10.0;
            let retry = it.retry_config.get_or_insert_default();
            retry.max_attempts = 5;
            retry.min_backoff = Some(prost_types::Duration {
                seconds: 1,
                nanos: 0,
            });
            retry.max_retry_duration = Some(prost_types::Duration {
                seconds: 60,
                nanos: 0,
            });
        }),
        queue("field-purged", |it| {
            it.purge_time = Some(prost_types::Timestamp {
                seconds: 1_800_000_000,
                nanos: 0,
            });
        }),
    ];
    let (configured, purged) = (vec!["field-configured"], vec!["field-purged"]);
    let both = vec!["field-configured", "field-purged"];
    for (text, expected) in [
        ("name: field-purged", &purged),
        ("name: PURGED", &purged),
        ("name: *", &both),
        ("rate_limits.max_dispatches_per_second = 500", &purged),
        ("rate_limits.max_dispatches_per_second < 100", &configured),
        ("rateLimits.maxDispatchesPerSecond <= 10", &configured),
        ("rate_limits.max_concurrent_dispatches >= 1000", &both),
        ("rate_limits.max_burst_size != 100", &configured),
        ("retry_config.max_attempts = 5", &configured),
        ("retry_config.min_backoff = 1s", &configured),
        ("retry_config.min_backoff > 0.5s", &configured),
        ("retry_config.min_backoff: 0.1s", &purged),
        ("retry_config.max_retry_duration: *", &configured),
        ("retry_config.max_retry_duration < 1s", &purged),
        ("purge_time: *", &purged),
        ("purge_time > \"2020-01-01T00:00:00Z\"", &purged),
        ("purge_time < \"2020-01-01T00:00:00Z\"", &configured),
        ("rate_limits: *", &both),
        ("http_target: *", &vec![]),
    ] {
        assert_eq!(passing(&queues, text), *expected, "{text}");
    }
}

fn full_target() -> HttpTarget {
    let header = Header {
        key: "X-Custom".into(),
        value: "v".into(),
    };
    HttpTarget {
        uri_override: Some(UriOverride {
            host: Some("example.net".into()),
            port: Some(8080),
            path_override: Some(PathOverride {
                path: "/path".into(),
            }),
            ..UriOverride::default()
        }),
        http_method: 4,
        header_overrides: vec![HeaderOverride {
            header: Some(header),
        }],
        authorization_header: Some(AuthorizationHeader::OidcToken(OidcToken {
            service_account_email: "a@b".into(),
            audience: "https://example.com".into(),
        })),
    }
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
    for (text, expected) in [
        ("http_target: *", vec!["empty", "full"]),
        ("http_target.http_method = PUT", vec!["full"]),
        ("http_target.http_method: put", vec!["full"]),
        (
            "http_target.http_method = HTTP_METHOD_UNSPECIFIED",
            vec!["empty", "none"],
        ),
        ("http_target.http_method > POST", vec!["full"]),
        ("http_target.uri_override.host: example", vec!["full"]),
        ("http_target.uri_override.port = 8080", vec!["full"]),
        ("http_target.uri_override.scheme = HTTPS", vec![]),
        (
            "http_target.uri_override.scheme = SCHEME_UNSPECIFIED",
            vec!["empty", "full", "none"],
        ),
        (
            "http_target.uri_override.path_override.path: path",
            vec!["full"],
        ),
        ("http_target.header_overrides: *", vec!["full"]),
        (
            "http_target.header_overrides.header.key: X-Custom",
            vec!["full"],
        ),
        ("http_target.oidc_token.audience: example", vec!["full"]),
        ("http_target.oauth_token: *", vec![]),
        (
            "stackdriver_logging_config.sampling_ratio > 0.1",
            vec!["full"],
        ),
        (
            "stackdriver_logging_config.sampling_ratio = 0",
            vec!["empty", "none"],
        ),
        ("app_engine_routing_override.instance: *", vec![]),
    ] {
        assert_eq!(passing(&queues, text), expected, "{text}");
    }
}

#[test]
fn filters_are_refused_as_recorded() {
    for (text, expected) in [
        ("bogus_field: x", "Field not found: 'bogus_field'."),
        (
            "max_dispatches_per_second < 100",
            "Field not found: 'max_dispatches_per_second'.",
        ),
        ("state: BOGUS", "The value 'bogus' is of incorrect type."),
        ("state: 2", "The value '2' is of incorrect type."),
        (
            "retry_config.max_backoff = 3600",
            "The value '3600' is of incorrect type.",
        ),
        (
            "rate_limits.max_dispatches_per_second = fast",
            "The value 'fast' is of incorrect type.",
        ),
        (
            "rate_limits: 10",
            "Cannot match a nested type 'rate_limits'. A member field of scalar or enum type must be provided.",
        ),
        (
            "(state: PAUSED",
            "Failed to parse filter expression: syntax error at token '<EOF>'",
        ),
    ] {
        assert_eq!(
            QueueFilter::parse(text).unwrap_err().message(),
            expected,
            "{text}"
        );
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
