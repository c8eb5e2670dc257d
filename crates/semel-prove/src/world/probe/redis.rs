//! Redis keys that contain the id, by how much each holds.

use super::{ProbeKind, Question};
use crate::world::World;
use crate::world::connections::Rows;
use crate::world::protocol::Protocol;

pub(super) const REDIS: ProbeKind = ProbeKind {
    name: "redis",
    given: |effect| effect.redis.as_ref(),
    on: Some(Protocol::Redis),
    check: |_, _| Ok(()),
    rows: |world, asked| Box::pin(keys(world, asked)),
};

async fn keys(world: &mut World<'_>, asked: Question<'_>) -> Result<Rows, String> {
    let url = world.redis_url(asked.on)?;
    let redis = &mut world.connections;
    let found: Vec<String> = redis.redis_read(&url, &["KEYS", asked.text]).await?;
    let mut rows = Rows::new();
    for key in found {
        let kind: String = redis.redis_read(&url, &["TYPE", &key]).await?;
        let held: redis::Value = redis.redis_read(&url, &[size_command(&kind), &key]).await?;
        rows.push(vec![key, how_many(&held)]);
    }
    Ok(rows)
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

#[cfg(test)]
mod tests {
    use super::*;
    use redis::Value::{BulkString, Int, Nil};

    #[test]
    fn redis_keys_hold_as_much_as_they_say() {
        let text = |text: &str| BulkString(text.as_bytes().to_vec());
        let held = [Int(3), text("2"), text("sent"), Nil, text("-1")];
        assert_eq!(held.each_ref().map(how_many), ["3", "2", "1", "0", "-1"]);
    }
}
