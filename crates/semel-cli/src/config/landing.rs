//! Routes whose deliveries land: `land`, `lands` and `version`.

use super::route_values::{self, word};
use super::section::Section;
use super::tree::Value;
use super::values::{Read, Wrong, duration, text};
use crate::landing_url::LandingUrl;
use crate::open_landings;
use semel::protocol::InDoubt;
use semel::work::Completes;
use semel_gate::settings::{LandRule, Lands};
use std::time::Duration;

/// Where a route's deliveries land, and what of them.
#[derive(Clone, Debug)]
pub(crate) struct RouteLanding {
    /// None where it could not be read.
    pub(crate) url: Option<LandingUrl>,
    pub(crate) rule: LandRule,
}

// === impl RouteLanding ===

impl RouteLanding {
    /// How long after its arrival an answer may land.
    pub(super) fn of_answers(&self) -> Option<Duration> {
        match self.rule.lands {
            Lands::Delivery => None,
            Lands::Answer => Some(self.rule.within),
        }
    }
}

/// Reads them; none when nothing lands.
pub(super) fn landing(section: &mut Section<'_>) -> Option<RouteLanding> {
    let url = section.take("land", landing_url);
    let lands = section.value("lands", lands);
    let version = section.take("version", route_values::pointer);
    let within = section.value("land_within", duration);
    let is_given = section.given("land");
    for name in ["lands", "version", "land_within"] {
        let says = format!(
            "`{name}` is for routes that `land`: write land = \"file:./landing\", or leave it out"
        );
        section.refuse_if(!is_given && section.given(name), name, says);
    }
    if let Some(Err(error)) = url.as_ref().map(open_landings::judge) {
        section.wrong("land", format!("`land`: {error}"));
    }
    is_given.then_some(RouteLanding {
        url,
        rule: LandRule {
            lands,
            version,
            within,
        },
    })
}

/// A record of success must not come before the row, and what has run for its row runs again if that is missing.
pub(super) fn judge(
    section: &mut Section<'_>,
    landing: Option<&RouteLanding>,
    in_doubt: InDoubt,
    completes: Completes,
) {
    let Some(landing) = landing else {
        return;
    };
    let says = "`completes` = \"handler\" records a success before its row has landed: leave it out, or let the handler \
                write the row in its own transaction";
    section.refuse_if(completes == Completes::Handler, "completes", says);
    let says = "`in_doubt`: a run whose row has not landed is repeated, so only \"retry\" fits a route that lands";
    section.refuse_if(in_doubt != InDoubt::Retry, "in_doubt", says);
    if landing.rule.lands == Lands::Delivery {
        for name in ["upstream", "upstream_ca", "upstream_h2c", "key_missing"] {
            let says = format!(
                "`{name}` is of no use here: deliveries land and no handler is called; write lands = \"answer\" to call it"
            );
            section.refuse_if(section.given(name), name, says);
        }
    }
}

fn lands(value: &Value) -> Read<Lands> {
    word(
        value,
        &[("delivery", Lands::Delivery), ("answer", Lands::Answer)],
    )
}

/// The place itself, or the variable that names it: it may hold a password, so nothing of it is repeated.
#[expect(
    clippy::disallowed_methods,
    reason = "only the command line reads the environment"
)]
fn landing_url(value: &Value) -> Read<LandingUrl> {
    let mut url = text(value)?;
    if let Some(name) = url.strip_prefix("env:") {
        let found = std::env::var(name).ok();
        url = Wrong::unless(value, found, || format!("the variable {name} is not set"))?;
    }
    url.parse().or_else(|says: String| Wrong::says(value, says))
}
