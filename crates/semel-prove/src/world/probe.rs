//! How effects are seen: a count for each delivery, from each probe.

#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::scenario::check::find;
use crate::scenario::template::Variables;
use crate::scenario::{Before, Effect};
use crate::world::World;
use crate::world::command::with_timeout;
use crate::world::connections::{Connections, Rows};
use crate::world::http_client;
use crate::world::protocol::Protocol;
use crate::world::sqlite;
use http::Request;
use http_body_util::Full;
use std::collections::BTreeMap;
use url::Url;

/// In place of a delivery's id: effects that name no delivery at all.
pub(crate) const UNNAMED: &str = "nobody";

/// What a missing id is written as.
const NULLS: [&str; 4] = ["", "NULL", "None", "null"];

/// How often each effect was seen, by delivery.
pub(crate) type Counts = BTreeMap<(String, String), u64>;

/// Looks at every effect of these deliveries.
pub(crate) async fn look(
    effects: &[Effect],
    ids: &[String],
    world: &World,
    connections: &mut Connections,
) -> Result<Counts, Error> {
    let mut counts = Counts::new();
    for effect in effects {
        let failed = |why| Error::Probe {
            effect: effect.name.clone(),
            why,
        };
        let seen = one(effect, ids, world, connections).await.map_err(failed)?;
        for (id, count) in ids.iter().zip(seen) {
            counts.insert((effect.name.clone(), id.clone()), count);
        }
    }
    Ok(counts)
}

async fn one(
    effect: &Effect,
    ids: &[String],
    world: &World,
    connections: &mut Connections,
) -> Result<Vec<u64>, String> {
    let variables = world.variables();
    if let Some(sql) = &effect.sql {
        let rows = select(effect, sql, &variables, world, connections).await?;
        return count(&rows, ids);
    }
    if let Some(url) = &effect.http {
        return count(&ask(&variables.expand(url)).await?, ids);
    }
    if let Some(line) = &effect.command {
        let line = split(line, &variables)?;
        let printed = world.commands.ask(&line).await;
        let printed = printed.map_err(|why| why.to_string())?;
        let rows = printed.lines().filter(|line| !line.trim().is_empty());
        let rows: Rows = rows
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect();
        return count(&rows, ids);
    }
    if let Some(pattern) = &effect.redis {
        let rows = keys(effect, pattern, world, connections).await?;
        return count(&rows, ids);
    }
    let calls = effect.calls.as_deref();
    let at = find(calls, Protocol::Http, world.endpoints())?.unwrap_or_default();
    Ok(ids.iter().map(|id| world.recorder.calls(at, id)).collect())
}

async fn select(
    effect: &Effect,
    sql: &str,
    variables: &Variables,
    world: &World,
    connections: &mut Connections,
) -> Result<Rows, String> {
    match find(effect.on.as_deref(), Protocol::Postgres, world.endpoints())? {
        Some(at) => connections.sql(url(world, at), sql).await,
        None => {
            let path = effect.on.as_deref().unwrap_or_default();
            let path = variables.expand(path.trim_start_matches("sqlite:"));
            sqlite::rows(&path, sql, &world.commands).await
        }
    }
}

/// A JSON object of counts by id.
async fn ask(url: &str) -> Result<Rows, String> {
    with_timeout(answer(url))
        .await
        .map_err(|why| format!("{url}: {why}"))?
}

async fn answer(url: &str) -> Result<Rows, String> {
    let url = Url::parse(url).map_err(|why| format!("`{url}`: {why}"))?;
    let (host, port) = (
        url.host_str().unwrap_or_default(),
        url.port_or_known_default().unwrap_or(80),
    );
    let address = tokio::net::lookup_host((host, port))
        .await
        .ok()
        .and_then(|mut all| all.next());
    let address = address.ok_or_else(|| format!("{host} is not known"))?;
    let path = url.query().map_or_else(
        || url.path().to_owned(),
        |query| format!("{}?{query}", url.path()),
    );
    let request = Request::get(path)
        .header("host", address.to_string())
        .body(Full::default());
    let request = request.map_err(|why| why.to_string())?;
    let no_answer = |why| format!("{url} did not answer: {why:?}");
    let head = http_client::send(address, request)
        .await
        .map_err(no_answer)?;
    if head.status != 200 {
        return Err(format!("{url} answered {}", head.status));
    }
    let body = head.body().await.map_err(no_answer)?;
    let counts: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&body)
        .map_err(|_| format!("{url} did not answer with a JSON object of counts by id"))?;
    Ok(counts
        .into_iter()
        .map(|(id, count)| vec![id, count.to_string()])
        .collect())
}

async fn keys(
    effect: &Effect,
    pattern: &str,
    world: &World,
    connections: &mut Connections,
) -> Result<Rows, String> {
    let at = find(effect.on.as_deref(), Protocol::Redis, world.endpoints())?.unwrap_or_default();
    let url = url(world, at).to_owned();
    let ask = |variables: &[&str]| {
        variables
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let found = connections.redis(&url, &ask(&["KEYS", pattern])).await?;
    let found: Vec<String> = redis::from_redis_value(found).map_err(|why| why.to_string())?;
    let mut rows = Rows::new();
    for key in found {
        let kind = connections.redis(&url, &ask(&["TYPE", &key])).await?;
        let kind: String = redis::from_redis_value(kind).map_err(|why| why.to_string())?;
        let held = connections
            .redis(&url, &ask(&[counts(&kind), &key]))
            .await?;
        rows.push(vec![key, how_many(&held)]);
    }
    Ok(rows)
}

/// The command that tells how much a key of some type holds.
fn counts(kind: &str) -> &'static str {
    match kind {
        "string" => "GET",
        "list" => "LLEN",
        "set" => "SCARD",
        "zset" => "ZCARD",
        "hash" => "HLEN",
        "stream" => "XLEN",
        // A type of a module, or a key that has gone since.
        _ => "EXISTS",
    }
}

/// A text that is no number exists: once.
fn how_many(held: &redis::Value) -> String {
    match redis::from_redis_value::<Option<String>>(held.clone()) {
        Ok(None) => "0".to_owned(),
        Ok(Some(text)) if text.parse::<i64>().is_ok() => text,
        Ok(Some(_)) | Err(_) => "1".to_owned(),
    }
}

/// The counts of all rows that name a delivery.
fn count(rows: &Rows, ids: &[String]) -> Result<Vec<u64>, String> {
    let mut counts = vec![0; ids.len()];
    for row in rows {
        let [named, how_often, ..] = row.as_slice() else {
            return Err(format!(
                "a row needs an id and a count; this one is {row:?}"
            ));
        };
        for (id, count) in ids.iter().zip(&mut counts) {
            if names(named, id) {
                *count += number(how_often)?;
            }
        }
    }
    Ok(counts)
}

fn names(named: &str, id: &str) -> bool {
    if id == UNNAMED {
        return NULLS.contains(&named.trim());
    }
    named.contains(id)
}

/// Also `2.0` and `2.00`, as sums are printed; nothing at all is none.
fn number(text: &str) -> Result<u64, String> {
    let whole = text.trim().split('.').next().unwrap_or_default();
    if whole.is_empty() || whole == "null" {
        return Ok(0);
    }
    whole.parse().map_err(|_| format!("`{text}` is no count"))
}

/// Makes the world ready: once, or for one delivery.
pub(crate) async fn prepare(
    before: &Before,
    variables: &Variables,
    world: &World,
    connections: &mut Connections,
) -> Result<(), Error> {
    let failed = Error::Before;
    let on = before.on.as_deref();
    if let Some(sql) = &before.sql {
        let sql = variables.expand(sql);
        match find(on, Protocol::Postgres, world.endpoints()).map_err(failed)? {
            Some(at) => connections.sql(url(world, at), &sql).await.map(drop),
            None => {
                let path = variables.expand(on.unwrap_or_default().trim_start_matches("sqlite:"));
                sqlite::change(&path, &sql, &world.commands).await
            }
        }
        .map_err(failed)?;
    }
    if let Some(line) = &before.redis {
        let at = find(on, Protocol::Redis, world.endpoints())
            .map_err(failed)?
            .unwrap_or_default();
        let line = split(line, variables).map_err(failed)?;
        connections
            .redis(url(world, at), &line)
            .await
            .map_err(failed)?;
    }
    if let Some(line) = &before.command {
        let line = split(line, variables).map_err(failed)?;
        let ran = world.commands.ask(&line).await;
        ran.map_err(|why| failed(why.to_string()))?;
    }
    Ok(())
}

fn split(line: &str, variables: &Variables) -> Result<Vec<String>, String> {
    let line = shlex::split(line).ok_or_else(|| format!("`{line}` is not a command"))?;
    Ok(line.iter().map(|word| variables.expand(word)).collect())
}

fn url(world: &World, at: usize) -> &str {
    world.urls.get(at).map_or("", String::as_str)
}
