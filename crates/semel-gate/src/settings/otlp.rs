//! Where spans are sent, which of them, and what they say of this gate.

use http::{HeaderMap, Uri};
use semel_tls::IdentityFiles;
#[cfg(feature = "otlp")]
use semel_tls::{Roots, Verify};
use std::path::PathBuf;
use std::time::Duration;

/// A receiver of spans, by the OpenTelemetry protocol.
#[derive(Clone, Debug)]
pub struct Otlp {
    /// Where it listens: with `HttpProtobuf` the whole URL, with `Grpc` scheme and host.
    pub endpoint: Uri,
    /// How it is spoken to.
    pub protocol: OtlpProtocol,
    /// What every request carries; the values are sensitive.
    pub headers: HeaderMap,
    /// How long one request may take.
    pub timeout: Duration,
    /// The PEM file of the roots that are believed of it; without it, those that this machine believes.
    pub ca: Option<PathBuf>,
    /// What the gate shows it.
    pub identity: Option<IdentityFiles>,
    /// Which deliveries have spans.
    pub sampler: Sampler,
    /// What every span says of this gate: `service.name` and others.
    pub resource: Vec<(String, String)>,
    /// How spans wait to be sent.
    pub batch: SpanBatch,
}

/// How spans are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// gRPC.
    Grpc,
    /// Protobuf in the body of a POST.
    HttpProtobuf,
}

/// Which deliveries have spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Whether a sender that has decided is followed.
    pub parent_based: bool,
    /// The part of all traces that is sampled otherwise, from 0 to 1.
    pub ratio: f64,
}

/// How spans wait to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanBatch {
    /// How many may wait; what comes beyond is dropped and counted.
    pub queue_max: usize,
    /// How many are sent at once.
    pub batch_max: usize,
    /// How long one may wait for others.
    pub delay: Duration,
    /// How long sending them may take, tries included.
    pub send_within: Duration,
}

// === impl Otlp ===

impl Otlp {
    /// A receiver there, with the defaults of the OpenTelemetry specification.
    #[must_use]
    pub fn new(endpoint: Uri, protocol: OtlpProtocol) -> Self {
        Self {
            endpoint,
            protocol,
            headers: HeaderMap::new(),
            timeout: Duration::from_secs(10),
            ca: None,
            identity: None,
            sampler: Sampler::default(),
            resource: Vec::new(),
            batch: SpanBatch::default(),
        }
    }

    /// What is checked of the receiver's certificate.
    #[cfg(feature = "otlp")]
    pub(crate) fn verify(&self) -> Verify {
        Verify::Full(self.ca.clone().map_or(Roots::System, Roots::File))
    }
}

// === impl Sampler ===

impl Sampler {
    /// Whether a trace is sampled whose sender has decided so, or has not.
    #[must_use]
    pub fn samples(&self, trace_id: u128, parent: Option<bool>) -> bool {
        match parent {
            Some(sampled) if self.parent_based => sampled,
            Some(_) | None => self.is_within_ratio(trace_id),
        }
    }

    /// By the trace id alone, so that all who see a trace decide alike: its low 63 bits, as the OpenTelemetry
    /// libraries do it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a fraction needs no more than a double's 53 bits"
    )]
    fn is_within_ratio(&self, trace_id: u128) -> bool {
        const ALL: f64 = (1_u64 << 63) as f64;
        let point = (trace_id as u64) >> 1;
        self.ratio >= 1.0 || (point as f64) < self.ratio * ALL
    }
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            parent_based: true,
            ratio: 1.0,
        }
    }
}

// === impl SpanBatch ===

impl Default for SpanBatch {
    fn default() -> Self {
        Self {
            queue_max: 2048,
            batch_max: 512,
            delay: Duration::from_secs(5),
            send_within: Duration::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_decided_is_followed_only_where_the_sampler_says_so() {
        for (parent_based, ratio, parent, sampled) in [
            (true, 0.0, Some(true), true),
            (true, 1.0, Some(false), false),
            (true, 1.0, None, true),
            (true, 0.0, None, false),
            (false, 0.0, Some(true), false),
            (false, 1.0, Some(false), true),
        ] {
            let sampler = Sampler {
                parent_based,
                ratio,
            };
            assert_eq!(
                sampler.samples(7, parent),
                sampled,
                "{sampler:?} {parent:?}"
            );
        }
    }

    #[test]
    fn a_ratio_samples_about_that_part_of_all_traces() {
        let sampler = Sampler {
            parent_based: true,
            ratio: 0.25,
        };
        // Spread by the golden ratio: evenly, and the same in every run.
        let ids = (0..10_000_u128).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let sampled = ids.filter(|id| sampler.samples(*id, None)).count();
        assert!((2400..2600).contains(&sampled), "{sampled} of 10000");
    }
}
