//! What a run could not see: effects that have no probe, and dependencies that cannot be read.

use crate::attacks::baseline::Baseline;
use crate::scenario::Scenario;
use crate::scenario::endpoint::Endpoint;
use crate::world::protocol::Protocol;

/// One sentence for each blind spot.
pub(crate) fn unseen(
    scenario: &Scenario,
    endpoints: &[Endpoint],
    baseline: &Baseline,
) -> Vec<String> {
    let effects = scenario.effects.iter();
    let names: Vec<_> = effects.map(|it| format!("`{}`", it.name)).collect();
    let mut unseen = vec![format!(
        "what the handler does besides {}: an effect without a probe is invisible",
        names.join(", ")
    )];
    for (at, endpoint) in endpoints.iter().enumerate() {
        let env = &endpoint.env;
        let mut exchanges = baseline.exchanges.iter();
        let spoken_to = exchanges.any(|it| it.boundary.signature.dependency == at);
        let why = if endpoint.encrypted {
            " is encrypted: its connections are neither seen nor held"
        } else if !spoken_to {
            ": nothing was said to it while a delivery was handled"
        } else if endpoint.protocol == Protocol::Other {
            " speaks a language that cannot be read: only sizes are seen"
        } else {
            continue;
        };
        unseen.push(format!("{env}{why}"));
    }
    unseen
}
