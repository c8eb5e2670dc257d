//! The span that began a piece of work, as its record names it: in the label, for duplicates that hear no outcome of a run.

use super::context::TraceContext;
use crate::gate::Gate;
use semel::Key;
use semel::store::StoreExt;
use serde_json::{Value, json};

const TRACEPARENT: &str = "traceparent";

/// The label of work that this span begins.
pub(crate) fn label(span: &TraceContext) -> String {
    json!({ TRACEPARENT: span.to_string() }).to_string()
}

/// The span that began the work of this key, if its record names one and somebody has received it. A store that does not
/// answer costs a link.
pub(super) async fn look(gate: &Gate, key: &Key) -> Option<TraceContext> {
    let record = gate.semel.store().look(key).await.ok()??;
    let label: Value = serde_json::from_slice(&record.label).ok()?;
    let span = TraceContext::read(label.get(TRACEPARENT)?.as_str()?, None)?;
    span.is_sampled().then_some(span)
}
