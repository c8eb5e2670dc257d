//! The HTTP requests to a dependency that change something, as its proxy sees them.

use super::ProbeKind;
use crate::scenario::endpoint::find;
use crate::world::protocol::Protocol;
use crate::world::recorder::{KeyPolicy, count};

pub(super) const CALLS: ProbeKind = ProbeKind {
    name: "calls",
    given: |effect| effect.calls.as_ref(),
    on: None,
    check: |env, endpoints| {
        let found = find(Some(env), Protocol::Http, endpoints)?;
        if found.is_some_and(|(_, endpoint)| endpoint.encrypted) {
            return Err(format!(
                "`{env}` is encrypted: its calls cannot be counted; give the handler an http:// address"
            ));
        }
        Ok(())
    },
    rows: |world, asked| {
        Box::pin(async move {
            let found = find(Some(asked.text), Protocol::Http, &world.endpoints)?;
            let at = found.map_or(0, |(at, _)| at);
            let policy = match asked.honours_key {
                Some(true) => KeyPolicy::Honoured,
                Some(false) => KeyPolicy::Ignored,
                None => KeyPolicy::ByAnswers,
            };
            let calls = |id: &String| {
                let calls = world.recorder.calls(at, id);
                vec![id.clone(), count(&calls, policy).to_string()]
            };
            Ok(asked.ids.iter().map(calls).collect())
        })
    },
};
