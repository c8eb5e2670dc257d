//! Traces. A delivery has a span, and within it its claim, the call of its handler and its recording have theirs; what
//! the handler does in its turn is within that call. A duplicate's span links to the one that ran.
//!
//! Spans are made when they have ended, of times that are known by then: a delivery that is not sampled costs some
//! random numbers.

#![cfg_attr(
    not(feature = "otlp"),
    allow(dead_code, reason = "nobody receives spans in such a build")
)]

pub(crate) mod context;
mod span;
mod attributes;
mod delivery;
mod record_link;
mod tracer;
mod exporting;
#[cfg_attr(not(feature = "otlp"), path = "trace/no_otlp.rs")]
mod otlp;

pub(crate) use delivery::DeliveryTrace;
pub(crate) use exporting::Exporting;
pub(crate) use otlp::{Exporter, begin};
pub(crate) use tracer::Tracer;

/// The member of a stored outcome's headers that names the span of the run. It is the gate's own and never sent.
pub(crate) const RUN_TRACE: &str = "semel-traceparent";
