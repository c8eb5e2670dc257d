//! A process that lands rows and is killed (SIGKILL) at a point of its work.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test may fail where it stands, and the process that ends says what it acknowledged"
)]

use semel_landing::failpoint::Point;
use semel_landing::{Landing, Row, Sink};
use semel_rig::{Process, Signal};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Where the process lands, and the point and its number where it ends.
const ENDS: &str = "SEMEL_TEST_ENDS";

/// How the test is called that is the process.
const PROCESS: &str = "the_process_that_ends";

/// In the process: lands rows, three at once, until it ends; each that is acknowledged is told in a line. Elsewhere: nothing.
pub(crate) fn land_until_the_end<S: Sink>(open: impl FnOnce(&str) -> S) {
    let Ok(ends) = std::env::var(ENDS) else {
        return;
    };
    let mut parts = ends.splitn(3, '|');
    let [place, point, nth] = std::array::from_fn(|_| parts.next().unwrap().to_owned());
    let (passed, nth) = (AtomicUsize::new(0), nth.parse::<usize>().unwrap());
    semel_rig::failpoint::listen(move |word| {
        if word == point && passed.fetch_add(1, Ordering::Relaxed) + 1 == nth {
            killed();
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let landing = Landing::begin(open(&place));
        for wave in 0..100 {
            let all = (0..3).map(|n| tokio::spawn(land(landing.clone(), format!("{wave}-{n}"))));
            for one in all.collect::<Vec<_>>() {
                one.await.unwrap();
            }
        }
    });
    panic!("it should have ended before");
}

/// Does what `kill -9` does, and never returns.
fn killed() {
    Process::new(std::process::id()).unwrap().kill().unwrap();
    loop {
        std::thread::park();
    }
}

async fn land(landing: Landing, id: String) {
    let mut row = Row::new("pubsub", "{}").named("v1_7", "f0");
    row.delivery_id.clone_from(&id);
    landing.land(row, Duration::from_secs(20)).await.unwrap();
    println!("acknowledged {id}");
}

/// What such a process acknowledged before it ended.
pub(crate) fn acknowledged(place: &str, point: Point, nth: usize) -> BTreeSet<String> {
    let ends = format!("{place}|{}|{nth}", point.word());
    let mut process = Command::new(std::env::current_exe().unwrap());
    let process = process.args([PROCESS, "--exact", "--nocapture"]);
    let output = process.env(ENDS, ends).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let was_killed = output.status.signal() == Some(Signal::KILL.as_raw());
    assert!(was_killed, "{point:?} was not passed {nth} times: {said}");
    let told = said
        .lines()
        .filter_map(|line| line.strip_prefix("acknowledged "));
    told.map(str::to_owned).collect()
}
