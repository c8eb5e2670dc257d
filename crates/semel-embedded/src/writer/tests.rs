//! Who is answered before the sync, and who after: a writer whose syncer is the test.

use super::{Running, Writer};
use crate::EmbeddedSettings;
use crate::call::{Call, call};
use crate::engine::Engine;
use crate::open;
use bytes::Bytes;
use semel::protocol::{Answer, Claim, Claimed, Held, InDoubt, Lease, Operation, State};
use semel::{Error, Fingerprint, Key};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

const KEY: Key = Key::from_bytes([1; 32]);
const DAY: Duration = Duration::from_secs(24 * 3_600);

type Answered = oneshot::Receiver<Result<Answer, Error>>;

struct Stage {
    engine: Arc<Engine>,
    requests: Sender<Box<dyn Call>>,
    waiting: Receiver<Vec<Box<dyn Call>>>,
    _home: TempDir,
}

// === impl Stage ===

impl Stage {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("store");
        let opened = open::open(&directory, EmbeddedSettings::default()).unwrap();
        let (requests, queue) = tokio::sync::mpsc::channel(16);
        let (syncer, waiting) = std::sync::mpsc::channel();
        let writer = Writer {
            group: opened.group,
            letters: opened.letters,
            running: Running::default(),
            syncer,
        };
        let engine = Arc::new(opened.engine);
        let for_writer = Arc::clone(&engine);
        std::thread::spawn(move || writer.run(&for_writer, queue));
        Self {
            engine,
            requests,
            waiting,
            _home: home,
        }
    }

    async fn ask(&self, operation: Operation) -> Answered {
        let (call, answered) = call(move |group| group.apply(&operation));
        self.requests.send(call).await.unwrap();
        answered
    }

    /// A claim that is answered without a sync.
    async fn claimed(&self, in_doubt: InDoubt) -> Claimed {
        let answered = self.ask(claim(in_doubt)).await;
        answered.await.unwrap().unwrap().claimed().unwrap()
    }

    async fn grant(&self, in_doubt: InDoubt) -> Lease {
        let Claimed::Granted(lease) = self.claimed(in_doubt).await else {
            panic!("not granted");
        };
        lease
    }

    /// Those who came to the syncer; it waits for the first.
    fn at_the_syncer(&self) -> Vec<Box<dyn Call>> {
        self.waiting.recv().unwrap()
    }

    fn nobody_waits(&self) {
        assert!(matches!(self.waiting.try_recv(), Err(TryRecvError::Empty)));
    }

    fn sync(&self, waiting: Vec<Box<dyn Call>>) {
        self.engine
            .progress
            .sync_reached(self.engine.progress.written());
        waiting.into_iter().for_each(Call::tell);
    }
}

fn claim(in_doubt: InDoubt) -> Operation {
    Operation::Claim(Claim {
        lease: DAY,
        retention: DAY,
        in_doubt,
        ..Claim::new(KEY, Fingerprint::off())
    })
}

fn complete(lease: &Lease) -> Operation {
    Operation::Complete {
        lease: lease.clone(),
        result: Bytes::from_static(b"done"),
        retention: DAY,
    }
}

fn is_unanswered(answered: &mut Answered) {
    assert!(matches!(
        answered.try_recv(),
        Err(oneshot::error::TryRecvError::Empty)
    ));
}

#[tokio::test]
async fn a_grant_under_retry_does_not_wait_and_a_completion_does() {
    let stage = Stage::new();
    let lease = stage.grant(InDoubt::Retry).await;
    stage.nobody_waits();

    let mut completed = stage.ask(complete(&lease)).await;
    let waiting = stage.at_the_syncer();
    is_unanswered(&mut completed);
    stage.sync(waiting);
    let held = completed.await.unwrap().unwrap().held();
    assert_eq!(held, Ok(Held::Applied(State::Succeeded)));
}

#[tokio::test]
async fn a_replay_waits_for_the_sync_of_what_it_replays() {
    let stage = Stage::new();
    let lease = stage.grant(InDoubt::Retry).await;
    let _completed = stage.ask(complete(&lease)).await;
    let first = stage.at_the_syncer();

    let mut replayed = stage.ask(claim(InDoubt::Retry)).await;
    let second = stage.at_the_syncer();
    is_unanswered(&mut replayed);
    stage.sync(first.into_iter().chain(second).collect());
    let claimed = replayed.await.unwrap().unwrap().claimed();
    assert!(matches!(claimed, Ok(Claimed::Replayed(_))), "{claimed:?}");

    // Once it is on disk, nobody waits any more.
    let again = stage.claimed(InDoubt::Retry).await;
    assert!(matches!(again, Claimed::Replayed(_)), "{again:?}");
    stage.nobody_waits();
}

#[tokio::test]
async fn a_grant_under_park_waits() {
    let stage = Stage::new();
    let mut granted = stage.ask(claim(InDoubt::Park)).await;
    let waiting = stage.at_the_syncer();
    is_unanswered(&mut granted);
    stage.sync(waiting);
    let claimed = granted.await.unwrap().unwrap().claimed();
    assert!(matches!(claimed, Ok(Claimed::Granted(_))), "{claimed:?}");
}

#[tokio::test]
async fn whoever_only_hears_that_it_is_busy_does_not_wait() {
    let stage = Stage::new();
    let _lease = stage.grant(InDoubt::Retry).await;
    let busy = stage.claimed(InDoubt::Retry).await;
    assert!(matches!(busy, Claimed::Busy { .. }), "{busy:?}");
    stage.nobody_waits();
}

#[tokio::test]
async fn after_a_failed_write_nothing_is_decided_any_more() {
    let stage = Stage::new();
    let lease = stage.grant(InDoubt::Retry).await;
    let full = Error::unavailable("cannot sync /store: no room");
    stage.engine.give_up(&full);
    let answer = stage.ask(complete(&lease)).await.await.unwrap();
    assert_eq!(answer.map(drop), Err(full));
    stage.nobody_waits();
}
