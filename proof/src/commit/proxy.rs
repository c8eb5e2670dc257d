//! A proxy between a store and the emulator, which loses and delays commits.

use super::tamper::{Spoiled, frame, spoil, unframe, with_clock, with_history};
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use semel_firestore::proto::CommitRequest;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testbed::{GrpcAnswer, GrpcCall, GrpcForwarder, serve_grpc};
use tokio::net::TcpListener;
use tokio::time::sleep;

/// How many commits in a hundred meet each of the faults.
const FAULT_PERCENT: u32 = 4;

/// How late a commit may arrive, in ms: beyond the lease now and then.
const LATE_MS: std::ops::Range<u64> = 5..250;

/// By when every late commit has arrived, on a machine with other things to do.
pub(super) const LATE_MAX: Duration = Duration::from_secs(1);

/// gRPC's number of what a client may try again without knowing what became of it.
const UNAVAILABLE: u32 = 14;

/// A proxy with its own dice.
#[derive(Debug)]
pub(super) struct Proxy {
    emulator: GrpcForwarder,
    spoiled: Option<Spoiled>,
    rng: Mutex<StdRng>,
    pub(super) met: Arc<Met>,
}

/// How often each fault was met.
#[derive(Debug, Default)]
pub(super) struct Met {
    pub(super) requests_lost: AtomicUsize,
    pub(super) answers_lost: AtomicUsize,
    pub(super) late: AtomicUsize,
}

/// What becomes of one commit.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Carried,
    RequestLost,
    AnswerLost,
    Late(Duration),
}

// === impl Proxy ===

impl Proxy {
    /// Starts it, and says where it listens.
    pub(super) async fn start(
        emulator: &str,
        spoiled: Option<Spoiled>,
        seed: u64,
        met: Arc<Met>,
    ) -> anyhow::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let proxy = Arc::new(Self {
            emulator: GrpcForwarder::to(emulator),
            spoiled,
            rng: Mutex::new(StdRng::seed_from_u64(seed)),
            met,
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let proxy = Arc::clone(&proxy);
                let serve = move |call| Arc::clone(&proxy).serve(call);
                tokio::spawn(serve_grpc(stream, serve));
            }
        });
        Ok(address)
    }

    async fn serve(self: Arc<Self>, call: GrpcCall) -> anyhow::Result<GrpcAnswer> {
        if call.path.ends_with("/Commit") {
            return self.commit(call).await;
        }
        let is_read = call.path.ends_with("/BatchGetDocuments");
        let mut answer = self.emulator.forward(call).await?;
        if let (true, Some(Spoiled::ClientsClock(ms))) = (is_read, self.spoiled) {
            answer.body = with_clock(&answer.body, ms)?.into();
        }
        Ok(answer)
    }

    async fn commit(self: &Arc<Self>, call: GrpcCall) -> anyhow::Result<GrpcAnswer> {
        let (fate, id) = self.draw();
        let (commit, _) = unframe::<CommitRequest>(&call.body)?;
        let commit = with_history(commit, id);
        let with = |commit: CommitRequest| GrpcCall {
            body: Bytes::from(frame(&commit)),
            ..call.clone()
        };
        let sent = with(spoil(commit.clone(), self.spoiled));
        let lost = GrpcAnswer::status(UNAVAILABLE, "lost on the way");
        match fate {
            Fate::Carried => {
                let answer = self.emulator.forward(sent).await?;
                if answer.is_refused() && self.spoiled == Some(Spoiled::RepeatsBlindly) {
                    let blind = spoil(commit, Some(Spoiled::NoCondition));
                    return self.emulator.forward(with(blind)).await;
                }
                Ok(answer)
            }
            Fate::RequestLost => lost,
            Fate::AnswerLost => {
                self.emulator.forward(sent).await?;
                lost
            }
            Fate::Late(by) => {
                let proxy = Arc::clone(self);
                tokio::spawn(async move {
                    sleep(by).await;
                    proxy.emulator.forward(sent).await.map(drop)
                });
                lost
            }
        }
    }

    fn draw(&self) -> (Fate, u64) {
        let mut rng = self.rng.lock().expect("nobody panics with the dice");
        let fate = match rng.random_range(0..100) {
            n if n < FAULT_PERCENT => {
                self.met.requests_lost.fetch_add(1, Ordering::Relaxed);
                Fate::RequestLost
            }
            n if n < 2 * FAULT_PERCENT => {
                self.met.answers_lost.fetch_add(1, Ordering::Relaxed);
                Fate::AnswerLost
            }
            n if n < 3 * FAULT_PERCENT => {
                self.met.late.fetch_add(1, Ordering::Relaxed);
                Fate::Late(Duration::from_millis(rng.random_range(LATE_MS)))
            }
            _ => Fate::Carried,
        };
        (fate, rng.random())
    }
}
