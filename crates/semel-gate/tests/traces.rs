//! Traces, as a receiver sees them.

mod tree;
mod links;
mod losses;
mod tls;

use crate::receiver::{Received, Receiver};
use crate::support::prelude::*;
use semel_gate::settings::{Otlp, OtlpProtocol, SpanBatch};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

const PROTOCOLS: [OtlpProtocol; 2] = [OtlpProtocol::Grpc, OtlpProtocol::HttpProtobuf];

/// A receiver at this address, which gets each span at once.
fn otlp(receiver: &Receiver, protocol: OtlpProtocol) -> Otlp {
    let path = match protocol {
        OtlpProtocol::Grpc => "",
        OtlpProtocol::HttpProtobuf => "/v1/traces",
    };
    let endpoint = format!("http://{}{path}", receiver.address);
    let otlp = Otlp::new(endpoint.parse().unwrap(), protocol);
    Otlp {
        batch: SpanBatch {
            delay: Duration::from_millis(1),
            ..otlp.batch
        },
        ..otlp
    }
}

/// A gate that sends its spans there.
async fn traced(change: impl FnOnce(&mut Settings)) -> (Bed, Receiver) {
    let receiver = Receiver::start().await;
    let to = otlp(&receiver, OtlpProtocol::HttpProtobuf);
    let bed = Bed::with(|settings| {
        settings.otlp = Some(to);
        change(settings);
    });
    (bed.await, receiver)
}

/// The one span of this name.
fn named<'a>(spans: &'a [Received], name: &str) -> &'a Received {
    let found: Vec<_> = spans.iter().filter(|it| it.span.name == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

/// The spans of deliveries with this outcome.
fn ended<'a>(spans: &'a [Received], outcome: &str) -> Vec<&'a Received> {
    let is = |it: &&Received| {
        it.attributes()
            .get("semel.outcome")
            .is_some_and(|is| is == outcome)
    };
    spans.iter().filter(is).collect()
}
