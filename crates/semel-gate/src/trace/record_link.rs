//! The span that began a piece of work, as its record names it: in the label, for duplicates that hear no outcome of a run.

use super::context::TraceContext;
use crate::gate::Gate;
use crate::label::Label;
use semel::Key;
use semel::store::StoreExt;

/// The span that began the work of this key, if its record names one and somebody has received it. A store that does not
/// answer costs a link.
pub(super) async fn look(gate: &Gate, key: &Key) -> Option<TraceContext> {
    let record = gate.semel.store().look(key).await.ok()??;
    let label = Label::read(&record.label)?;
    let span = TraceContext::read(&label.traceparent, None)?;
    span.is_sampled().then_some(span)
}
