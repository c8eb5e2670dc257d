//! How effects are seen: a count for each delivery, from each probe. And how a world is prepared for deliveries.

#[cfg(test)]
mod tests;

use super::World;
use super::command::with_timeout;
use super::connections::Rows;
use super::protocol::Protocol;
use super::sqlite::{self, Access};
use crate::error::Error;
use crate::scenario::endpoint::{find, path_and_query, resolve};
use crate::scenario::template::Variables;
use crate::scenario::{Before, Effect};
use http_body_util::Full;
use semel_rig::http;
use std::collections::BTreeMap;
use url::Url;

/// In place of a delivery's id: effects that name no delivery at all.
pub(crate) const UNNAMED: &str = "nobody";

/// What a missing id is written as.
const NULLS: [&str; 4] = ["", "NULL", "None", "null"];

/// How often each effect was seen, by delivery.
pub(crate) type Counts = BTreeMap<(String, String), u64>;

// === impl World ===

impl World<'_> {
    /// Looks at every effect of these deliveries.
    pub(crate) async fn count_effects(&mut self, ids: &[String]) -> Result<Counts, Error> {
        let mut counts = Counts::new();
        for effect in &self.scenario.effects {
            let name = &effect.name;
            let seen = self.count(effect, ids).await;
            let seen = seen.map_err(|why| Error::Probe {
                effect: name.clone(),
                why,
            })?;
            let keys = ids.iter().map(|id| (name.clone(), id.clone()));
            counts.extend(keys.zip(seen));
        }
        Ok(counts)
    }

    /// Makes the world ready: once, or for one delivery.
    pub(crate) async fn prepare(
        &mut self,
        before: &Before,
        variables: &Variables,
    ) -> Result<(), Error> {
        self.run(before, variables).await.map_err(Error::Before)
    }

    async fn run(&mut self, before: &Before, variables: &Variables) -> Result<(), String> {
        let on = before.on.as_deref();
        if let Some(sql) = &before.sql {
            let sql = variables.expand(sql);
            self.sql(on, &sql, variables, Access::Change).await?;
        }
        if let Some(line) = &before.redis {
            let line = variables.expand_command(line)?;
            let url = self.url(on, Protocol::Redis)?;
            let answered = self.connections.redis::<redis::Value>(&url, &line);
            answered.await?;
        }
        if let Some(line) = &before.command {
            let line = variables.expand_command(line)?;
            let ran = self.commands.output(&line).await;
            ran.map_err(|why| why.to_string())?;
        }
        Ok(())
    }

    async fn count(&mut self, effect: &Effect, ids: &[String]) -> Result<Vec<u64>, String> {
        let variables = self.variables.clone();
        let on = effect.on.as_deref();
        let rows = if let Some(sql) = &effect.sql {
            self.sql(on, sql, &variables, Access::Read).await?
        } else if let Some(url) = &effect.http {
            ask(&variables.expand(url)).await?
        } else if let Some(line) = &effect.command {
            let line = variables.expand_command(line)?;
            let printed = self.commands.output(&line).await;
            let printed = printed.map_err(|why| why.to_string())?;
            let lines = printed.lines().filter(|line| !line.trim().is_empty());
            lines
                .map(|line| line.split_whitespace().map(str::to_owned).collect())
                .collect()
        } else if let Some(pattern) = &effect.redis {
            let url = self.url(on, Protocol::Redis)?;
            self.keys(&url, pattern).await?
        } else {
            let found = find(effect.calls.as_deref(), Protocol::Http, &self.endpoints)?;
            let at = found.map_or(0, |(at, _)| at);
            return Ok(ids.iter().map(|id| self.recorder.calls(at, id)).collect());
        };
        count(&rows, ids)
    }

    async fn sql(
        &mut self,
        on: Option<&str>,
        sql: &str,
        variables: &Variables,
        access: Access,
    ) -> Result<Rows, String> {
        match find(on, Protocol::Postgres, &self.endpoints)? {
            Some((_, endpoint)) => self.connections.sql(&endpoint.url, sql).await,
            None => {
                let file = on.unwrap_or_default().trim_start_matches("sqlite:");
                sqlite::run(&variables.expand(file), sql, access, &self.commands).await
            }
        }
    }

    /// How much each key that fits holds.
    async fn keys(&mut self, url: &str, pattern: &str) -> Result<Rows, String> {
        let redis = &mut self.connections;
        let found: Vec<String> = redis.redis(url, &["KEYS", pattern]).await?;
        let mut rows = Rows::new();
        for key in found {
            let kind: String = redis.redis(url, &["TYPE", &key]).await?;
            let held: redis::Value = redis.redis(url, &[size_command(&kind), &key]).await?;
            rows.push(vec![key, how_many(&held)]);
        }
        Ok(rows)
    }

    fn url(&self, on: Option<&str>, protocol: Protocol) -> Result<String, String> {
        let found = find(on, protocol, &self.endpoints)?;
        Ok(found.map_or_else(String::new, |(_, endpoint)| endpoint.url.clone()))
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
    let address = resolve(&url).await;
    let address = address.ok_or_else(|| {
        let host = url.host_str().unwrap_or_default();
        format!("{host} is not known")
    })?;
    let request = ::http::Request::get(path_and_query(&url))
        .header("host", address.to_string())
        .body(Full::default());
    let request = request.map_err(|why| why.to_string())?;
    let no_answer = |why| format!("{url} did not answer: {why}");
    let head = http::send(address, request).await.map_err(no_answer)?;
    if head.status != 200 {
        return Err(format!("{url} answered {}", head.status));
    }
    let body = head.body().await.map_err(no_answer)?;
    let counts: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&body)
        .map_err(|_| format!("{url} did not answer with a JSON object of counts by id"))?;
    let counts = counts.into_iter();
    Ok(counts
        .map(|(id, count)| vec![id, count.to_string()])
        .collect())
}

/// The command that tells how much a key of some type holds.
fn size_command(kind: &str) -> &'static str {
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

/// A text that is not a number exists: once.
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
