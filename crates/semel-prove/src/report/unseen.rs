//! What a run could not see: effects that have no probe, and dependencies that cannot be read.

use crate::attacks::baseline::Baseline;
use crate::scenario::Scenario;
use crate::scenario::endpoint::Endpoint;
use crate::world::protocol::Protocol;

/// What no attack does.
const NEVER_TRIED: &str = "faults that no attack tries: power cuts, full disks, clocks that jump, a network that is split";

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
    unseen.extend(by_key(scenario, baseline));
    unseen.push(NEVER_TRIED.to_owned());
    unseen
}

/// Where calls under one key are one effect, it is said by which header.
fn by_key(scenario: &Scenario, baseline: &Baseline) -> Vec<String> {
    let counted = scenario
        .effects
        .iter()
        .filter(|it| it.honours_key.is_none());
    let counted = counted.filter_map(|it| it.calls.as_ref());
    let header = |env: &String| {
        let mut requests = baseline.requests().filter(|it| it.lane == *env);
        let header = requests.find_map(|it| it.message.values.first())?;
        let name = header.split(':').next().unwrap_or_default();
        Some(format!(
            "whether {env} honours `{name}`: calls under one key count once as long as they are answered the same; \
             honours_key says it"
        ))
    };
    counted.filter_map(header).collect()
}
