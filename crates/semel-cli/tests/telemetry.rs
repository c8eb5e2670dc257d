//! Traces and logs of `semel gate`, as its environment asks for them.

use crate::receiver::Receiver;
use crate::support::counter::Counter;
use crate::support::fleet::work;
use crate::support::gate::{API_ROUTE, Gate, GateFile};
use crate::support::said::{Said, Says};
use std::time::Duration;

/// A gate that is started with these variables.
fn gate(counter: &Counter, variables: &[(&str, &str)]) -> Gate {
    let file = GateFile::write("dir:./store", counter.port, API_ROUTE);
    Gate::start_by(file.command().envs(variables.iter().copied()), file)
}

#[test]
fn spans_go_where_the_standard_variables_say_before_the_gate_ends() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let receiver = runtime.block_on(Receiver::start());
    let counter = Counter::start(Duration::ZERO);
    for protocol in ["grpc", "http/protobuf"] {
        let before = receiver.so_far().len();
        let mut gate = gate(
            &counter,
            &[
                (
                    "OTEL_EXPORTER_OTLP_ENDPOINT",
                    &format!("http://{}", receiver.address),
                ),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
                ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=mine"),
                (
                    "OTEL_RESOURCE_ATTRIBUTES",
                    "deployment.environment.name=test",
                ),
                ("OTEL_SERVICE_NAME", "orders-gate"),
                ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ],
        );
        assert_eq!(work("traced").send_blocking(gate.port).unwrap().status, 200);
        gate.log().has("gzip is not supported");
        assert!(gate.stop().success());
        let spans = receiver.so_far().split_off(before);
        assert_eq!(spans.len(), 4, "{protocol}: {spans:#?}");
        for it in spans {
            assert_eq!(it.resource["service.name"], "orders-gate");
            assert_eq!(it.resource["deployment.environment.name"], "test");
            assert_eq!(it.headers["api-key"], "mine");
        }
    }
}

#[test]
fn logs_have_the_form_that_is_asked_for() {
    let counter = Counter::start(Duration::ZERO);
    let google = [
        ("SEMEL_LOG_FORMAT", "cloud-logging"),
        ("RUST_LOG", "warn,delivery=info,semel_cli=info"),
    ];
    let mut gate = gate(&counter, &google);
    assert_eq!(work("logged").send_blocking(gate.port).unwrap().status, 200);
    assert!(gate.stop().success());
    let log = gate.log();
    log.has("\"severity\":\"INFO\"");
    log.has("\"httpRequest\":{\"requestMethod\":\"POST\",\"status\":200,");
    log.lacks("\"level\"");

    for (variable, value) in [("SEMEL_LOG", "delivery=loud"), ("SEMEL_LOG_FORMAT", "xml")] {
        let file = GateFile::write("dir:./store", counter.port, API_ROUTE);
        let said: Said = file.command().env(variable, value).output().unwrap().into();
        said.refused().has(&format!("{variable} = {value}: "));
    }
}
