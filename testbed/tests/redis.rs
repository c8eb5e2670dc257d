//! Redis starts, answers, comes back and ends; processes pause and resume.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use testbed::{Process, Redis};

fn redis_cli(url: &str, words: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(["-u", url])
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn data_survives_stop_and_kill_on_the_same_port() {
    let mut redis = Redis::start(&[("appendfsync", "always")]).unwrap();
    let url = redis.url();
    redis_cli(&url, &["set", "one", "1"]);

    let before = redis.pid().unwrap();
    redis.restart().unwrap();
    assert_ne!(redis.pid().unwrap(), before);
    redis_cli(&url, &["set", "two", "2"]);

    redis.kill().unwrap();
    assert_eq!(redis.pid(), None);
    redis.restart().unwrap();
    assert_eq!(redis_cli(&url, &["mget", "one", "two"]), "1\n2");
}

#[test]
fn settings_are_safe_and_can_be_replaced() {
    let redis = Redis::start(&[("appendonly", "no"), ("maxmemory", "10mb")]).unwrap();
    let setting = |name| redis_cli(&redis.url(), &["config", "get", name]);
    assert_eq!(setting("appendfsync"), "appendfsync\neverysec");
    assert_eq!(setting("maxmemory-policy"), "maxmemory-policy\nnoeviction");
    assert_eq!(setting("bind"), "bind\n127.0.0.1");
    assert_eq!(setting("save"), "save");
    assert_eq!(setting("appendonly"), "appendonly\nno");
    assert_eq!(setting("maxmemory"), "maxmemory\n10485760");
}

#[test]
fn wrong_setting_is_shown_from_the_log() {
    let error = Redis::start(&[("appendfsync", "sometimes")])
        .unwrap_err()
        .to_string();
    assert!(error.contains("appendfsync"), "{error}");
}

#[test]
fn drop_ends_the_server_and_removes_its_directory() {
    let redis = Redis::start(&[]).unwrap();
    let process = Process::new(redis.pid().unwrap()).unwrap();
    let dir = redis_cli(&redis.url(), &["config", "get", "dir"]);
    let dir = dir.strip_prefix("dir\n").unwrap().to_owned();
    assert!(process.is_alive());
    assert!(std::path::Path::new(&dir).exists());

    drop(redis);
    assert!(!process.is_alive());
    assert!(!std::path::Path::new(&dir).exists());
}

#[test]
fn one_redis_is_shared_by_the_tests_of_a_run() {
    let url = testbed::redis_url().unwrap();
    redis_cli(&url, &["set", "testbed:shared", "1"]);
    let again = testbed::redis_url().unwrap();
    assert_eq!(redis_cli(&again, &["get", "testbed:shared"]), "1");
}

#[test]
fn paused_process_says_nothing_until_it_is_resumed() {
    let mut child = Command::new("sh")
        .args(["-c", "read word; exit 7"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let process = Process::of(&child);
    assert_eq!(process, Process::new(child.id()).unwrap());

    process.pause().unwrap();
    drop(child.stdin.take());
    assert!(child.try_wait().unwrap().is_none());
    assert!(process.is_alive());
    process.resume().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert!(!process.is_alive());
    assert!(process.pause().is_err());
}

#[test]
fn process_ends_by_kill_and_by_stop_signal() {
    for (end, signal) in [
        (Process::kill as fn(&Process) -> std::io::Result<()>, 9),
        (Process::terminate, 15),
    ] {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = Process::of(&child);
        end(&process).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
        assert!(!process.is_alive());
    }
}
