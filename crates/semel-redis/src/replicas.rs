//! Writes that replicas confirm.
//!
//! `WAIT` holds up its whole connection, so each connection takes a group of calls at a time and one
//! `WAIT` for all of them. `WAIT` looks only at writes of its own connection; a call that finds its
//! work done already writes nothing. So each group ends with a small write of its own (`touch`), which
//! comes after everything the group has read or written.

use crate::command::Command;
use crate::connections::{Answers, Connections};
use crate::settings::WaitReplicas;
use redis::{Cmd, Value};
use semel::Error;
use semel::store::batch::{Batcher, Limits, Pending};
use std::sync::{Arc, Mutex, PoisonError};

/// How many calls share a `WAIT` at the most.
const GROUP_CALLS_MAX: usize = 256;

/// Takes calls and answers them when enough replicas have them.
#[derive(Debug)]
pub(crate) struct Replicas {
    batcher: Batcher<Command, Value>,
}

/// What the lanes share: as many pools of connections as there are lanes.
#[derive(Debug)]
struct Lanes {
    free: Mutex<Vec<Connections>>,
    wait: WaitReplicas,
    tail: [Cmd; 2],
}

// === impl Replicas ===

impl Replicas {
    /// Starts a lane on each pool. `touch` is the small write.
    pub(crate) fn start(pools: Vec<Connections>, wait: WaitReplicas, touch: Cmd) -> Self {
        let limits = Limits {
            lanes: pools.len(),
            items_max: GROUP_CALLS_MAX,
        };
        let lanes = Arc::new(Lanes {
            free: Mutex::new(pools),
            wait,
            tail: [touch, wait_command(wait)],
        });
        let write = move |group| {
            let lanes = Arc::clone(&lanes);
            async move { lanes.write(group).await }
        };
        Self {
            batcher: Batcher::start(limits, |command: &Command| command.about, write),
        }
    }

    /// Sends a call and waits until it is confirmed.
    pub(crate) async fn ask(&self, command: Command) -> Result<Value, Error> {
        self.batcher.submit(command).await
    }
}

fn wait_command(wait: WaitReplicas) -> Cmd {
    let mut command = redis::cmd("WAIT");
    let millis = u64::try_from(wait.timeout.as_millis()).unwrap_or(u64::MAX);
    command.arg(wait.count).arg(millis.max(1));
    command
}

// === impl Lanes ===

impl Lanes {
    /// Sends a group with its `WAIT` and answers every call of it.
    async fn write(&self, mut group: Vec<Pending<Command, Value>>) {
        let pool = self.take();
        let take = |pending: &mut Pending<Command, Value>| std::mem::take(&mut pending.item.sent);
        let calls: Vec<Cmd> = group.iter_mut().map(take).collect();
        let answers = pool.ask_all(&calls, &self.tail).await;
        match answers.and_then(|answers| self.confirmed(&pool, answers)) {
            Ok(answers) => group
                .into_iter()
                .zip(answers)
                .for_each(|(pending, answer)| pending.answer(pool.plain(answer))),
            Err(error) => group
                .into_iter()
                .for_each(|pending| pending.answer(Err(error.clone()))),
        }
        self.free().push(pool);
    }

    /// The answers, if enough replicas have what they stand for.
    fn confirmed(&self, pool: &Connections, answers: Answers) -> Result<Vec<Value>, Error> {
        let mut confirmed = 0;
        for answer in answers.tail {
            if let Value::Int(count) = pool.plain(answer)? {
                confirmed = count;
            }
        }
        if confirmed >= i64::from(self.wait.count) {
            return Ok(answers.calls);
        }
        Err(Error::unavailable(format!(
            "unknown: Redis has written it, but {confirmed} of {} replicas confirmed it within {:?} \
             (wait_replicas); a failover could lose it; a repeat is safe",
            self.wait.count, self.wait.timeout
        )))
    }

    fn take(&self) -> Connections {
        self.free().pop().expect("there are as many pools as lanes")
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Connections>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
