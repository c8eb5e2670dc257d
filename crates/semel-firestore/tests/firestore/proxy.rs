//! A proxy between a store and the emulator, which does to calls what a test says.

use semel_firestore::FirestoreSettings;
use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use testbed::{GrpcAnswer, GrpcCall, GrpcForwarder, serve_grpc};
use tokio::net::TcpListener;

/// gRPC's number of what a client may try again without knowing what became of it.
const UNAVAILABLE: u32 = 14;

/// What becomes of a call.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    Carried,
    RequestLost,
    AnswerLost,
    /// It is made, and never answered.
    Unheard,
    /// The client hears that it is lost; it arrives right before the next one of its method.
    Late,
    /// It is made, and answered after a while.
    Slow(Duration),
    /// It is made after a while.
    SlowThere(Duration),
    /// It is never answered.
    Silent,
    /// Its answer begins, and never ends.
    Stalled,
    /// It hears this status, by its number, and these words.
    Refused(u32, &'static str),
}

/// The proxy; everything is carried unless it is said otherwise.
pub(crate) struct Proxy {
    emulator: GrpcForwarder,
    script: Mutex<Script>,
    connections: AtomicUsize,
}

#[derive(Default)]
struct Script {
    method: &'static str,
    fates: VecDeque<Fate>,
    /// What becomes of all the others of the method.
    then: Option<Fate>,
    late: Vec<GrpcCall>,
    made: Vec<String>,
}

// === impl Proxy ===

impl Proxy {
    /// Starts it before the emulator of these settings, and has them lead to it.
    pub(crate) async fn start(settings: &mut FirestoreSettings) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let emulator = settings.emulator_host.replace(address).unwrap();
        let proxy = Arc::new(Self {
            emulator: GrpcForwarder::to(&emulator),
            script: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&proxy);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serving.connections.fetch_add(1, Ordering::SeqCst);
                let proxy = Arc::clone(&serving);
                let answer = move |call| Arc::clone(&proxy).answer(call);
                tokio::spawn(serve_grpc(stream, answer));
            }
        });
        proxy
    }

    /// What becomes of the next calls of this method; those after them are carried.
    pub(crate) fn next<const N: usize>(&self, method: &'static str, fates: [Fate; N]) {
        let mut script = self.script();
        (script.method, script.then) = (method, None);
        script.fates = fates.into();
        script.made.clear();
    }

    /// What becomes of all of its calls.
    pub(crate) fn always(&self, method: &'static str, fate: Fate) {
        self.next(method, []);
        self.then(fate);
    }

    /// What becomes of those after the next ones.
    pub(crate) fn then(&self, fate: Fate) {
        self.script().then = Some(fate);
    }

    /// How many calls of this method were made since it was last told something.
    pub(crate) fn made(&self, method: &str) -> usize {
        let script = self.script();
        script.made.iter().filter(|it| it.ends_with(method)).count()
    }

    /// How many connections were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    async fn answer(self: Arc<Self>, call: GrpcCall) -> anyhow::Result<GrpcAnswer> {
        let (fate, late) = self.fate(&call);
        for call in late {
            self.emulator.forward(call).await?;
        }
        let lost = GrpcAnswer::status(UNAVAILABLE, "lost on the way");
        match fate {
            Fate::Carried => self.emulator.forward(call).await,
            Fate::RequestLost => lost,
            Fate::AnswerLost => {
                self.emulator.forward(call).await?;
                lost
            }
            Fate::Unheard => {
                self.emulator.forward(call).await?;
                pending().await
            }
            Fate::Late => {
                self.script().late.push(call);
                lost
            }
            Fate::Slow(by) => {
                let answer = self.emulator.forward(call).await;
                tokio::time::sleep(by).await;
                answer
            }
            Fate::SlowThere(by) => {
                tokio::time::sleep(by).await;
                self.emulator.forward(call).await
            }
            Fate::Silent => pending().await,
            Fate::Stalled => {
                let mut answer = self.emulator.forward(call).await?;
                answer.trailers = None;
                Ok(answer)
            }
            Fate::Refused(code, says) => GrpcAnswer::status(code, says),
        }
    }

    fn fate(&self, call: &GrpcCall) -> (Fate, Vec<GrpcCall>) {
        let mut script = self.script();
        script.made.push(call.path.clone());
        if script.method.is_empty() || !call.path.ends_with(script.method) {
            return (Fate::Carried, Vec::new());
        }
        let late = std::mem::take(&mut script.late);
        let next = script.fates.pop_front().or_else(|| script.then.clone());
        (next.unwrap_or(Fate::Carried), late)
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }
}
