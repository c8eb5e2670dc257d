use super::*;

fn read(variables: &[(&str, &str)]) -> Telemetry {
    Telemetry::read(&|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

/// What is read without a word of warning.
fn otlp(variables: &[(&str, &str)]) -> Otlp {
    let read = read(variables);
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    read.otlp.expect("somebody receives spans")
}

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

#[test]
fn nothing_is_sent_unless_an_endpoint_or_the_exporter_is_named() {
    for off in [
        &[][..],
        &[("OTEL_SERVICE_NAME", "orders")],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
        &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        &[ENDPOINT, ("OTEL_SDK_DISABLED", "True")],
    ] {
        let read = read(off);
        assert!(read.otlp.is_none() && read.warnings.is_empty(), "{off:?}");
    }
    let named = otlp(&[("OTEL_TRACES_EXPORTER", "otlp")]);
    assert_eq!(named.endpoint, "http://localhost:4318/v1/traces");
    let grpc = [
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ];
    assert_eq!(otlp(&grpc).endpoint, "http://localhost:4317/");
}

#[test]
fn the_endpoint_of_traces_is_taken_as_it_is() {
    let of_all = otlp(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/base/")]);
    assert_eq!(of_all.endpoint, "https://c/base/v1/traces");
    let of_traces = otlp(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/x"),
    ]);
    assert_eq!(of_traces.endpoint, "http://t/x");
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    for (insecure, endpoint) in [("true", "http://c:4317/"), ("false", "https://c:4317/")] {
        let bare = [
            grpc,
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317"),
            ("OTEL_EXPORTER_OTLP_INSECURE", insecure),
        ];
        assert_eq!(otlp(&bare).endpoint, endpoint);
    }
}

#[test]
fn what_is_said_of_traces_comes_before_what_is_said_of_all() {
    let read = otlp(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1000"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=all"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "Api-Key=a%20b, x=1"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "me.pem"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "me.key"),
    ]);
    assert_eq!(read.protocol, OtlpProtocol::HttpProtobuf);
    assert_eq!(read.timeout, Duration::from_millis(250));
    assert_eq!(read.headers["api-key"], "a b");
    assert_eq!(read.headers["x"], "1");
    assert!(
        !format!("{read:?}").contains("a b"),
        "a header may be a secret"
    );
    assert_eq!(read.ca, Some("ca.pem".into()));
    let identity = read.identity.expect("both files are named");
    assert_eq!(
        (identity.certificate, identity.key),
        ("me.pem".into(), "me.key".into())
    );
}

#[test]
fn samplers_are_those_of_the_specification() {
    for (name, argument, parent_based, ratio) in [
        ("always_on", "", false, 1.0),
        ("always_off", "", false, 0.0),
        ("traceidratio", "0.01", false, 0.01),
        ("parentbased_always_on", "", true, 1.0),
        ("parentbased_always_off", "", true, 0.0),
        ("parentbased_traceidratio", "0.5", true, 0.5),
        ("parentbased_traceidratio", "", true, 1.0),
    ] {
        let read = otlp(&[
            ENDPOINT,
            ("OTEL_TRACES_SAMPLER", name),
            ("OTEL_TRACES_SAMPLER_ARG", argument),
        ]);
        let expected = Sampler {
            parent_based,
            ratio,
        };
        assert_eq!(read.sampler, expected, "{name}");
    }
    assert_eq!(otlp(&[ENDPOINT]).sampler, Sampler::default());
}

#[test]
fn the_resource_says_what_the_variables_say() {
    let read = otlp(&[
        ENDPOINT,
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=lost,k8s.pod.name=a%2Cb",
        ),
        ("OTEL_SERVICE_NAME", "orders"),
    ]);
    let value = |name: &str| {
        let found: Vec<_> = read
            .resource
            .iter()
            .filter(|(known, _)| known == name)
            .collect();
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        found[0].1.as_str()
    };
    assert_eq!(value("service.name"), "orders");
    assert_eq!(value("k8s.pod.name"), "a,b");
    assert_eq!(value("service.version"), VERSION);
    assert_eq!(value("telemetry.sdk.language"), "rust");
}

#[test]
fn batches_have_the_limits_that_are_said() {
    let read = otlp(&[
        ENDPOINT,
        ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "200"),
        ("OTEL_BSP_SCHEDULE_DELAY", "10"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "20"),
    ]);
    let expected = SpanBatch {
        queue_max: 100,
        batch_max: 100,
        delay: Duration::from_millis(10),
        send_within: Duration::from_millis(20),
    };
    assert_eq!(read.batch, expected);
}

#[test]
fn what_cannot_be_used_is_said_and_left_out() {
    for (variable, value, receives) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://x", false),
        ("OTEL_TRACES_EXPORTER", "console", false),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", true),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", true),
        ("OTEL_EXPORTER_OTLP_HEADERS", "secret", true),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", true),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "me.key", true),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote", true),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=%zz", true),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1", true),
    ] {
        let read = read(&[(variable, value), ENDPOINT]);
        assert_eq!(read.otlp.is_some(), receives, "{variable}");
        assert_eq!(read.warnings.len(), 1, "{variable}: {:?}", read.warnings);
        let warning = &read.warnings[0];
        assert!(
            warning.starts_with(variable) || variable.contains("CLIENT"),
            "{warning}"
        );
        assert!(!warning.contains("secret"), "{warning}");
    }
    let ratio = [
        ENDPOINT,
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "7"),
    ];
    assert_eq!(read(&ratio).warnings.len(), 1);
}
