//! Writes that were seen on the wire and that no effect looks at, by name.

use crate::attacks::baseline::Baseline;
use crate::scenario::endpoint::Endpoint;
use crate::scenario::gate::{STORE, UPSTREAM};
use crate::scenario::{Effect, Scenario};
use crate::world::exchange::Exchange;
use crate::world::protocol::{Protocol, shape};

/// What stands before the name of a table that is written.
const BEFORE_TABLE: [&str; 5] = ["INSERT INTO", "UPDATE", "DELETE FROM", "MERGE INTO", "COPY"];

/// One name for each thing that is written, as `table outbox (DATABASE_URL)`.
pub(crate) fn unprobed(
    scenario: &Scenario,
    endpoints: &[Endpoint],
    baseline: &Baseline,
) -> Vec<String> {
    let mut names = Vec::new();
    let writes = baseline.requests().filter(|it| it.writes());
    for exchange in writes.filter(|it| !is_semels_own(&it.message.text)) {
        let endpoint = endpoints.get(exchange.boundary.signature.dependency);
        // What the gate says to its store and to the handler is its own.
        let Some(endpoint) = endpoint.filter(|it| ![UPSTREAM, STORE].contains(&&*it.env)) else {
            continue;
        };
        for name in written(
            exchange,
            endpoint.protocol,
            &scenario.effects,
            &endpoint.env,
        ) {
            let name = format!("{name} ({})", endpoint.env);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// What a gate, or the library, says to its store.
fn is_semels_own(said: &str) -> bool {
    let lower = said.to_lowercase();
    lower.contains("semel.") || lower.starts_with("fcall semel_")
}

/// What a request writes and no effect names.
fn written(exchange: &Exchange, protocol: Protocol, effects: &[Effect], env: &str) -> Vec<String> {
    let said = &exchange.message.text;
    match protocol {
        Protocol::Postgres => {
            let seen = |table: &String| effects.iter().any(|it| mentions(it.sql.as_ref(), table));
            let tables = tables(said).into_iter().filter(|table| !seen(table));
            tables.map(|table| format!("table {table}")).collect()
        }
        Protocol::Redis => {
            let words: Vec<&str> = said.split(' ').take(2).collect();
            let [command, key] = words[..] else {
                return Vec::new();
            };
            let seen = |it: &Effect| it.redis.as_ref().is_some_and(|it| matches(it, key));
            let unseen = !effects.iter().any(seen);
            unseen
                .then(|| format!("{command} {}", shape(key)))
                .into_iter()
                .collect()
        }
        Protocol::Http => {
            let seen = effects.iter().any(|it| it.calls.as_deref() == Some(env));
            let named = !seen && !said.is_empty();
            named.then(|| shape(said)).into_iter().collect()
        }
        Protocol::Firestore => {
            let seen = |collection: &str| {
                let texts = effects.iter().filter_map(|it| it.firestore.as_ref());
                texts.into_iter().any(|it| it.ends_with(collection))
            };
            let written = said.trim_start_matches("commit ").split(", ");
            let collections = written.filter_map(|path| Some(path.rsplit_once('/')?.0));
            let unseen = collections.filter(|it| !it.starts_with("semel_") && !seen(it));
            unseen.map(|it| format!("collection {it}")).collect()
        }
        Protocol::Other => Vec::new(),
    }
}

/// The tables that statements write, without schema and quotes.
fn tables(said: &str) -> Vec<String> {
    let upper = said.to_uppercase();
    let mut tables = Vec::new();
    for word in BEFORE_TABLE {
        for (at, _) in upper.match_indices(word) {
            let after = said.get(at + word.len()..).unwrap_or_default();
            let whole = after.starts_with(' ');
            let name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '"');
            let after = after.trim_start().trim_start_matches("ONLY ");
            let end = after.find(|c| !name(c)).unwrap_or(after.len());
            let table = after.get(..end).unwrap_or_default().replace('"', "");
            let table = table.rsplit('.').next().unwrap_or_default().to_lowercase();
            // `FOR UPDATE SKIP LOCKED`, `DO UPDATE SET`
            let keyword = ["", "set", "skip", "of", "nowait"].contains(&&*table);
            if whole && !keyword && !tables.contains(&table) {
                tables.push(table);
            }
        }
    }
    tables
}

fn mentions(sql: Option<&String>, table: &str) -> bool {
    let word = |c: char| !c.is_alphanumeric() && c != '_';
    sql.is_some_and(|sql| sql.to_lowercase().split(word).any(|word| word == table))
}

/// Whether a Redis pattern matches a key, as far as `*` goes.
fn matches(pattern: &str, key: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = key.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut rest = rest;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.is_empty() || pattern.ends_with('*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_without_schema_and_quotes() {
        let said = r#"INSERT INTO public."Outbox" (id) VALUES ($1) ON CONFLICT DO UPDATE SET n = 1; DELETE FROM ONLY claims"#;
        assert_eq!(tables(said), ["outbox", "claims"]);
        assert!(tables("SELECT * FROM t FOR UPDATE SKIP LOCKED").is_empty());
        assert!(tables("SELECT * FROM t FOR UPDATE").is_empty());
    }

    #[test]
    fn effects_cover_what_they_name() {
        let sql = "SELECT order_id, count(*) FROM shop.orders GROUP BY 1".to_owned();
        assert!(mentions(Some(&sql), "orders") && !mentions(Some(&sql), "order"));
        assert!(matches("sent:*", "sent:a1") && matches("*:a1", "sent:a1"));
        assert!(!matches("sent:*", "lock:a1") && !matches("sent", "sent:a1"));
    }
}
