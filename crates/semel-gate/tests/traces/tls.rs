//! A receiver behind TLS: one whose certificate is believed gets the spans, any other gets none of them.

use super::*;
use crate::log_lines;
use crate::tls::{TlsFront, identity};
use semel_tls::{Alpn, ServerIdentity};
use std::path::PathBuf;
use testbed::{Certificate, Certificates, Validity};

/// A gate that sends its spans to a receiver behind this certificate, and believes this root.
async fn traced_by_tls(
    protocol: OtlpProtocol,
    certificate: &Certificate,
    root: PathBuf,
) -> (Bed, Receiver) {
    let receiver = Receiver::start().await;
    let shown = Arc::new(ServerIdentity::read(identity(certificate)).unwrap());
    let alpn = match protocol {
        OtlpProtocol::Grpc => Alpn::Http2,
        OtlpProtocol::HttpProtobuf => Alpn::Http1,
    };
    let front = TlsFront::with(receiver.address, shown.server_config(alpn)).await;
    let mut to = otlp(&receiver, protocol);
    let path = to.endpoint.path().to_owned();
    let url = format!("https://localhost:{}{path}", front.port());
    (to.endpoint, to.ca) = (url.parse().unwrap(), Some(root));
    // All spans of a delivery at once, and one try: the next one would be a second after it.
    to.batch = SpanBatch {
        batch_max: 4,
        delay: Duration::from_secs(3600),
        send_within: Duration::from_millis(900),
        ..to.batch
    };
    let bed = Bed::with(|settings| settings.otlp = Some(to)).await;
    (bed, receiver)
}

#[tokio::test]
async fn a_receiver_whose_certificate_is_believed_gets_the_spans() {
    let ca = Certificates::new().unwrap();
    let good = ca
        .issue("receiver", "DNS:localhost", Validity::Now)
        .unwrap();
    for protocol in PROTOCOLS {
        let (bed, receiver) = traced_by_tls(protocol, &good, ca.root()).await;
        bed.task("1").await.is(200);
        assert_eq!(receiver.spans(4).await.len(), 4);
        bed.until_counted("semel_spans_sent_total 4").await;
    }
}

#[tokio::test]
async fn a_receiver_whose_certificate_is_wrong_gets_nothing_and_the_log_says_why() {
    log_lines::listen();
    let (ca, stranger) = (Certificates::new().unwrap(), Certificates::new().unwrap());
    let issue = |hosts, validity| ca.issue("receiver", hosts, validity).unwrap();
    let cases = [
        (issue("DNS:localhost", Validity::Now), stranger.root()),
        (issue("DNS:other.test", Validity::Now), ca.root()),
        (issue("DNS:localhost", Validity::Expired), ca.root()),
    ];
    for (certificate, root) in cases {
        for protocol in PROTOCOLS {
            let (bed, receiver) = traced_by_tls(protocol, &certificate, root.clone()).await;
            bed.task("1").await.is(200);
            bed.until_counted("semel_spans_dropped_total{reason=\"not_taken\"} 4")
                .await;
            bed.counts("semel_spans_sent_total 0").await;
            assert!(receiver.so_far().is_empty());
        }
    }
    let lines = log_lines::lines("reason", "not_taken");
    let reasons = log_lines::all(&lines, "why");
    for why in ["UnknownIssuer", "not valid for name", "certificate expired"] {
        let told = |it: &&Value| it.as_str().is_some_and(|it| it.contains(why));
        let count = reasons.iter().filter(told).count();
        assert_eq!(count, PROTOCOLS.len(), "{why}: {reasons:#?}");
    }
}
