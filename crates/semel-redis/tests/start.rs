//! What is refused at start, and what is said about the server's settings.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use semel::Error;
use semel::conformance::suite;
use semel_redis::{RedisSettings, RedisStore, WaitReplicas, library};
use std::time::Duration;
use support::{Aged, claim, grant, replica_of, run, says, settings, started};
use testbed::Redis;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

async fn refused(settings: RedisSettings) -> String {
    match RedisStore::connect(settings).await {
        Err(Error::Invalid(why)) => why.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

/// A server that knows nothing but what it says about itself.
async fn server_that_says(info: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut bytes = [0; 4_096];
        loop {
            let read = socket.read(&mut bytes).await.unwrap();
            let text = String::from_utf8_lossy(bytes.get(..read).unwrap()).into_owned();
            for command in text.split('*').filter(|command| !command.is_empty()) {
                let answer = match command.contains("INFO\r\n") && !command.contains("CLIENT") {
                    true => format!("${}\r\n{info}\r\n", info.len()),
                    false => "+OK\r\n".to_owned(),
                };
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
            if read == 0 {
                return;
            }
        }
    });
    url
}

#[tokio::test]
async fn server_that_evicts_is_refused_unless_allowed() {
    let redis = Redis::start(&[("maxmemory-policy", "allkeys-lru")]).unwrap();
    let mut settings = settings(&redis.url());
    let why = refused(settings.clone()).await;
    let remedy = "CONFIG SET maxmemory-policy noeviction";
    says(
        &why,
        &["allkeys-lru", "runs again", remedy, "allow_eviction"],
    );
    settings.allow_eviction = true;
    let store = RedisStore::connect(settings).await.unwrap();
    let warnings = &store.start_notes().warnings;
    assert!(warnings[0].contains("allkeys-lru"), "{warnings:?}");
    grant(&store, &claim()).await;
}

#[tokio::test]
async fn policy_is_read_from_info_where_config_is_forbidden() {
    let forbidden = ("rename-command", "CONFIG \"\"");
    let evicting = Redis::start(&[forbidden, ("maxmemory-policy", "volatile-ttl")]).unwrap();
    let why = refused(settings(&evicting.url())).await;
    assert!(why.contains("volatile-ttl"), "{why}");

    let (_redis, store) = started(&[forbidden]).await;
    says(store.durability(), &["cannot be read"]);
}

#[tokio::test]
async fn server_without_functions_is_refused_by_its_version() {
    let url = server_that_says("redis_version:6.2.14\r\nmaxmemory_policy:noeviction\r\n").await;
    let why = refused(settings(&url)).await;
    assert!(why.contains("6.2.14") && why.contains("7.0"), "{why}");
    let url = server_that_says("what:ever\r\n").await;
    assert!(refused(settings(&url)).await.contains("version \"\""));
}

#[tokio::test]
async fn durability_is_said_for_each_setting() {
    let up_to = "appendfsync everysec: up to about two seconds";
    let on_disk = "appendfsync always: acknowledged records are on";
    for (appendonly, appendfsync, said) in [
        ("no", "always", "appendonly no: "),
        ("yes", "no", "appendfsync no: "),
        ("yes", "everysec", up_to),
        ("yes", "always", on_disk),
    ] {
        let config = [("appendonly", appendonly), ("appendfsync", appendfsync)];
        let (_redis, store) = started(&config).await;
        let durability = store.durability();
        assert!(durability.starts_with(said), "{durability}");
        let harmless = said.contains("always");
        assert_eq!(durability.contains("run twice"), !harmless, "{durability}");
        let notes = store.start_notes();
        assert_eq!(notes.lines().collect::<Vec<_>>(), [durability]);
        assert!(notes.version.starts_with(|c: char| c.is_ascii_digit()));
    }
}

#[tokio::test]
async fn replicas_are_said_to_lose_records() {
    let master = Redis::start(&[]).unwrap();
    let replica = replica_of(&master).await;
    let mut of_master = settings(&master.url());
    let store = RedisStore::connect(of_master.clone()).await.unwrap();
    let warning = store.start_notes().warnings[0].clone();
    assert!(warning.contains("1 replicas, asynchronous"), "{warning}");
    of_master.wait_replicas = Some(WaitReplicas {
        count: 1,
        timeout: Duration::from_secs(1),
    });
    let store = RedisStore::connect(of_master).await.unwrap();
    let warning = store.start_notes().warnings[0].clone();
    assert!(warning.contains("confirmed by 1 of 1"), "{warning}");

    let connected = RedisStore::connect(settings(&replica.url())).await;
    let error = connected.unwrap_err();
    assert!(
        matches!(&error, Error::Unavailable(why) if why.contains("is a replica")),
        "{error}"
    );
}

#[tokio::test]
async fn wrong_settings_are_named_and_passwords_are_not() {
    let secret = "hunter2";
    let url = |url: &str| RedisSettings::new(url);
    let with = |change: fn(&mut RedisSettings)| {
        let mut settings = url("redis://user:hunter2@127.0.0.1:1");
        change(&mut settings);
        settings
    };
    let of_none = |s: &mut RedisSettings| {
        let timeout = Duration::from_secs(1);
        s.wait_replicas = Some(WaitReplicas { count: 0, timeout });
    };
    for (settings, named) in [
        (url("http://user:hunter2@127.0.0.1"), "redis://"),
        (url("user:hunter2@127.0.0.1"), "redis://"),
        (
            url("rediss://user:hunter2@127.0.0.1?ssl_cert_reqs=none"),
            "certificates are always checked",
        ),
        (url("redis://user:hunter2@127.0.0.1:port"), "redis://"),
        (url("redis://user:hunter2@127.0.0.1/base"), "redis://"),
        (with(|s| s.prefix = "a{b}".into()), "prefix"),
        (with(|s| s.prefix = String::new()), "prefix"),
        (with(|s| s.connections = 0), "connections"),
        (
            with(|s| s.response_timeout = Duration::ZERO),
            "response_timeout",
        ),
        (with(of_none), "wait_replicas"),
    ] {
        let shown = format!("{settings:?}");
        let why = refused(settings).await;
        assert!(why.contains(named), "{why}");
        assert!(
            !why.contains(secret) && !shown.contains(secret),
            "{why} {shown}"
        );
    }
}

#[tokio::test]
async fn user_without_rights_is_told_so() {
    let redis = Redis::start(&[]).unwrap();
    let wrong = redis.url().replace("://", "://default:hunter2@");
    run(&redis, &["CONFIG", "SET", "requirepass", "correct"]).await;
    let why = refused(settings(&wrong)).await;
    assert!(
        why.contains("user or password") && !why.contains("hunter2"),
        "{why}"
    );
    let why = refused(settings(&redis.url())).await;
    assert!(why.contains("user or password"), "{why}");
    let right = redis.url().replace("://", "://:correct@");
    RedisStore::connect(settings(&right)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_that_are_documented_suffice_when_an_operator_has_loaded_the_library() {
    let redis = Redis::start(&[]).unwrap();
    let mut rights = vec![
        "ACL", "SETUSER", "app", "on", ">pw", "~test-*", "+info", "+scan", "+fcall",
    ];
    run(&redis, &rights).await;
    let url = redis.url().replace("://", "://app:pw@");
    let why = refused(settings(&url)).await;
    assert!(why.contains("NOPERM"), "{why}");
    run(&redis, &["FUNCTION", "LOAD", library()]).await;
    let why = refused(settings(&url)).await;
    assert!(why.contains("can't run this command"), "{why}");

    // What the crate's documentation lists, less the right to load.
    rights.extend("+config|get +cluster|info +time +hmget +hget +hkeys +hset +hsetnx +hdel +del +get +set +pexpireat +persist +zadd +zrange +zrem".split(' '));
    run(&redis, &rights).await;
    let subject = Aged::connect_beside(settings(&url), &redis.url()).await;
    suite(&subject).await.unwrap();
}
