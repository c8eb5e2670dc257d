//! Proposes probes: one delivery is handled undisturbed, and what is written on the wire with its id in it is what a probe
//! can look at. Whether that is the effect that matters is for a person to say.

use crate::attacks::session::Session;
use crate::attacks::trial::Trial;
use crate::error::Error;
use crate::options::Options;
use crate::scenario::Scenario;
use crate::scenario::endpoint::Endpoint;
use crate::world::exchange::{Exchange, names};
use crate::world::protocol::Protocol;

/// A probe that would have seen what a delivery did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// What the effect may be called.
    pub name: String,
    /// The field of `[[effect]]`: `sql`, `redis` or `calls`.
    pub field: &'static str,
    /// Its text.
    pub text: String,
    /// What was seen on the wire.
    pub seen: String,
}

/// Starts a scenario, delivers once, and looks at what is written. The scenario's own effects do not matter.
///
/// # Errors
/// When the scenario is wrong, or a process does not start.
pub async fn propose(scenario: &Scenario, options: &Options) -> Result<Vec<Proposal>, Error> {
    let scenario = &scenario.with_gate(options)?;
    let progress = |_| {};
    let mut session = Box::pin(Session::open(scenario, options, &progress)).await?;
    let mut trial = Trial::begin(&mut session).await?;
    trial.until_accepted().await?;
    let id = trial.delivery.id.clone();
    session.quiet().await;
    let exchanges = session.world.recorder.exchanges();
    Ok(proposals(&exchanges, &id, &session.world.endpoints))
}

/// One for each thing that was written with this id in it.
fn proposals(exchanges: &[Exchange], id: &str, endpoints: &[Endpoint]) -> Vec<Proposal> {
    let mut proposals: Vec<Proposal> = Vec::new();
    let writes = exchanges.iter().filter(|it| it.is_request() && it.writes());
    for exchange in writes.filter(|it| names(&it.bytes, id)) {
        let endpoint = endpoints.get(exchange.boundary.signature.dependency);
        let proposal = endpoint.and_then(|endpoint| proposal(exchange, id, endpoint));
        if let Some(proposal) = proposal
            && !proposals.iter().any(|it| it.text == proposal.text)
        {
            proposals.push(proposal);
        }
    }
    proposals
}

fn proposal(exchange: &Exchange, id: &str, endpoint: &Endpoint) -> Option<Proposal> {
    let said = exchange.message.text.clone();
    let (name, field, text) = match endpoint.protocol {
        Protocol::Postgres => {
            let (table, column) = inserted(&said, &exchange.message.values, id)?;
            let query = format!("SELECT {column}, count(*) FROM {table} GROUP BY {column}");
            (table, "sql", query)
        }
        Protocol::Redis => {
            let key = said
                .split(' ')
                .nth(1)
                .filter(|key| names(key.as_bytes(), id))?;
            let pattern = key.replace(id, "*");
            (
                pattern.trim_matches(['*', ':']).to_owned(),
                "redis",
                pattern,
            )
        }
        Protocol::Http => (said.clone(), "calls", endpoint.env.clone()),
        Protocol::Firestore => {
            let mut written = said.trim_start_matches("commit ").split(", ");
            let path = written.find(|path| names(path.as_bytes(), id))?;
            let (collection, _) = path.rsplit_once('/')?;
            (collection.to_owned(), "firestore", collection.to_owned())
        }
        Protocol::Other => return None,
    };
    Some(Proposal {
        name,
        field,
        text,
        seen: said,
    })
}

/// The table of an INSERT and the column that gets the id, where the statement names its columns.
fn inserted(said: &str, values: &[String], id: &str) -> Option<(String, String)> {
    let start = said.to_uppercase().find("INSERT INTO ")?;
    let rest = said.get(start + "INSERT INTO ".len()..)?;
    let (table, rest) = rest.split_once('(')?;
    let (columns, rest) = rest.split_once(')')?;
    let (_, rest) = rest.split_once('(')?;
    let (given, _) = rest.split_once(')')?;
    let at = given.split(',').position(|given| {
        let given = given.trim();
        let bound = given
            .strip_prefix('$')
            .and_then(|number| number.parse::<usize>().ok());
        let value = bound.and_then(|number| values.get(number.checked_sub(1)?));
        names(value.map_or(given, String::as_str).as_bytes(), id)
    })?;
    let column = columns.split(',').nth(at)?.trim();
    Some((table.trim().to_owned(), column.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_that_gets_the_id_is_found() {
        let said = "INSERT INTO shop.orders (cents, order_id) VALUES ($1, $2) ON CONFLICT (order_id) DO NOTHING";
        let values = ["900".to_owned(), "a7".to_owned()];
        let found = Some(("shop.orders".to_owned(), "order_id".to_owned()));
        assert_eq!(inserted(said, &values, "a7"), found);
        let plain = "insert into shop.orders(cents, order_id) values (900, 'a7')";
        assert_eq!(inserted(plain, &[], "a7"), found);
        assert_eq!(inserted(said, &values, "a8"), None);
        assert_eq!(inserted("UPDATE orders SET n = 1", &values, "a7"), None);
    }
}
