//! What the tests of this crate share: a store under a prefix of its own, and time that passes.

use async_trait::async_trait;
use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use semel::conformance::Subject;
use semel::protocol::{Claim, Held, Lease, State};
use semel::store::{Letters, StoreExt};
use semel::{Error, Fingerprint, Key, Store};
use semel_redis::{RedisSettings, RedisStore};
use std::sync::Arc;
use std::time::Duration;

/// How long outcomes are remembered.
pub(crate) const KEEP: Duration = Duration::from_secs(3_600);

/// A success was recorded just now.
pub(crate) const SUCCEEDED: Held = Held::Applied(State::Succeeded);

/// Ages every record, tombstone and entry of the index of a prefix, as time would; what is past its physical end goes at once.
const AGE: &str = r"
local by,cursor=tonumber(ARGV[2]),'0'
local function f(n) return string.format('%.0f',n) end
repeat
  local found=redis.call('SCAN',cursor,'MATCH',ARGV[1],'COUNT',1000)
  cursor=found[1]
  for _,k in ipairs(found[2]) do
    local v=redis.call('HMGET',k,'l','x','st','u','da')
    local x=v[2]-by
    redis.call('HSET',k,'l',f(v[1]-by),'x',f(x))
    if v[4] then redis.call('HSET',k,'u',f(v[4]-by)) end
    if v[5] then redis.call('HSET',k,'da',f(v[5]-by)) end
    if v[3]~='5' then
      local t=f(math.ceil(x/1000)+60000)
      redis.call('PEXPIREAT',k,t); redis.call('PEXPIREAT',k..':s',t)
    end
  end
until cursor=='0'
repeat
  local found=redis.call('SCAN',cursor,'MATCH',ARGV[3],'COUNT',1000)
  cursor=found[1]
  for _,k in ipairs(found[2]) do
    local fence,x=string.match(redis.call('GET',k),'^(%d+):(%d+)$')
    redis.call('SET',k,fence..':'..f(math.max(x-by,0)),'PXAT',f(math.max(math.ceil((x-by)/1000),1)+1))
  end
until cursor=='0'
repeat
  local found=redis.call('SCAN',cursor,'MATCH',ARGV[4],'COUNT',1000)
  cursor=found[1]
  for _,k in ipairs(found[2]) do
    for _,m in ipairs(redis.call('ZRANGE',k,0,-1)) do redis.call('ZINCRBY',k,f(-by),m) end
    local t=redis.call('PEXPIRETIME',k)
    redis.call('PEXPIREAT',k,f(math.max(t-math.floor(by/1000),1)))
  end
until cursor=='0'";

/// A store whose time can be let pass.
pub(crate) struct Aged {
    pub(crate) store: Arc<RedisStore>,
    pub(crate) prefix: String,
    raw: MultiplexedConnection,
}

impl Aged {
    pub(crate) async fn connect(settings: RedisSettings) -> Self {
        let url = settings.url.clone();
        Self::connect_beside(settings, &url).await
    }

    /// `url` is for letting time pass, by a user who may do everything.
    pub(crate) async fn connect_beside(settings: RedisSettings, url: &str) -> Self {
        Self {
            raw: raw(url).await,
            prefix: settings.prefix.clone(),
            store: Arc::new(RedisStore::connect(settings).await.unwrap()),
        }
    }
}

#[async_trait]
impl Subject for Aged {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn letters(&self) -> Option<Arc<dyn Letters>> {
        Some(Arc::clone(&self.store) as _)
    }

    async fn advance(&self, by: Duration) {
        let mut age = redis::cmd("EVAL");
        age.arg(AGE).arg(0).arg(format!("{}:{{*}}", self.prefix));
        age.arg(u64::try_from(by.as_micros()).unwrap());
        age.arg(format!("{}:{{letters}}:t:*", self.prefix));
        age.arg(format!("{}:i:{{*}}", self.prefix));
        age.exec_async(&mut self.raw.clone()).await.unwrap();
    }
}

/// Settings for a prefix that nobody else uses.
#[allow(
    clippy::disallowed_methods,
    reason = "a prefix of its own on a server that others use"
)]
pub(crate) fn settings(url: &str) -> RedisSettings {
    let mut settings = RedisSettings::new(url);
    settings.prefix = format!("test-{:016x}", rand::random::<u64>());
    settings
}

/// A server with these settings, and a store on it.
pub(crate) async fn started(config: &[(&str, &str)]) -> (testbed::Redis, RedisStore) {
    let redis = testbed::Redis::start(config).unwrap();
    let store = RedisStore::connect(settings(&redis.url())).await.unwrap();
    (redis, store)
}

/// A plain connection beside the store's.
pub(crate) async fn raw(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// A claim of new work by a new owner.
#[allow(
    clippy::disallowed_methods,
    reason = "a key of its own on a server that others use"
)]
pub(crate) fn claim() -> Claim {
    let key = Key::from_bytes(rand::random());
    Claim {
        lease: Duration::from_secs(30),
        retention: KEEP,
        ..Claim::new(key, Fingerprint::of(key.as_bytes()))
    }
}

/// The lease of a claim that must be granted.
pub(crate) async fn grant(store: &dyn Store, claim: &Claim) -> Lease {
    match store.claim(claim).await {
        Ok(semel::protocol::Claimed::Granted(lease)) => lease,
        other => panic!("not granted: {other:?}"),
    }
}

/// Completes a run as every test does.
pub(crate) async fn complete(store: &dyn Store, lease: &Lease) -> Result<Held, Error> {
    let result = Bytes::from_static(b"done");
    store.complete(lease, &result, KEEP).await
}

/// The text must contain each of these words.
#[track_caller]
pub(crate) fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// A replica of `master` that has caught up.
pub(crate) async fn replica_of(master: &testbed::Redis) -> testbed::Redis {
    let of = format!("127.0.0.1 {}", master.port());
    let replica =
        testbed::Redis::start(&[("replicaof", &of), ("repl-diskless-sync-delay", "0")]).unwrap();
    let mut master = raw(&master.url()).await;
    for _ in 0..300 {
        ask::<()>(&mut master, &["SET", "replica:ready", "1"]).await;
        if ask::<u32>(&mut master, &["WAIT", "1", "100"]).await == 1 {
            return replica;
        }
    }
    panic!("the replica has not caught up within 30 s");
}

/// A command for the server itself.
pub(crate) async fn run(redis: &testbed::Redis, words: &[&str]) {
    ask::<()>(&mut raw(&redis.url()).await, words).await;
}

/// What the server itself answers.
pub(crate) async fn ask<T: redis::FromRedisValue>(
    raw: &mut MultiplexedConnection,
    words: &[&str],
) -> T {
    let (name, rest) = words.split_first().unwrap();
    redis::cmd(name).arg(rest).query_async(raw).await.unwrap()
}
