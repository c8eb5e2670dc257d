//! What all proxies of a world see together: the exchanges of a trial in order, and the one place where it is held.

mod attribution;
mod calls;
mod state;

pub(crate) use calls::{Call, KeyPolicy, count};

use crate::judge::timeline::{Event, What};
use crate::world::exchange::{Exchange, Hold, Signature, names};
use crate::world::protocol::{Message, MessageKind, shape};
use crate::world::proxy::ProxyConfig;
use attribution::Attribution;
use state::{Mode, Race, State};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// A question without an answer for this long is not work any more: it waits for something that does not come.
const UNANSWERED_TIMEOUT: Duration = Duration::from_secs(10);

/// Those that run at once and never ask the same, as under a lock, are not kept waiting for longer.
const RACE_TIMEOUT: Duration = Duration::from_millis(200);

/// Records what passes between the processes and their dependencies.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    state: Mutex<State>,
    changed: Notify,
}

/// What is to become of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    Forward,
    Drop,
    /// They never arrive, and the process hears this instead.
    Answer(&'static [u8]),
}

/// What the proxy does with a chunk.
#[derive(Debug)]
pub(crate) enum Permit {
    Forward,
    /// When all others have asked this, too.
    Meet(Signature),
    Wait(oneshot::Receiver<Release>),
}

/// Where the current exchange of a connection is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExchangeRef {
    began: Instant,
    index: usize,
}

// === impl Recorder ===

impl Recorder {
    /// A new trial begins; what the last one left is forgotten.
    pub(crate) fn begin(&self) {
        self.lock().begin();
    }

    /// What every id of this run begins with.
    pub(crate) fn set_id_prefix(&self, id_prefix: &str) {
        id_prefix.clone_into(&mut self.lock().ids.id_prefix);
    }

    /// The process that listens there.
    pub(crate) fn set_name(&self, address: SocketAddr, name: &str) {
        self.lock().names.insert(address, name.to_owned());
    }

    /// The name of the process that listens there, if it is one of this world.
    pub(crate) fn name_of(&self, address: SocketAddr) -> Option<String> {
        self.lock().names.get(&address).cloned()
    }

    /// This delivery belongs to the trial; what names only others was left behind by earlier ones.
    pub(crate) fn owns(&self, id: &str) {
        self.lock().ids.own.insert(id.to_owned());
    }

    /// How long ago something was still done for a delivery of an earlier trial.
    pub(crate) fn left_behind(&self) -> Option<Duration> {
        let state = self.lock();
        let exchanges = state.trial.exchanges.iter();
        let others = exchanges.filter(|it| state.ids.asked(it) == Attribution::EarlierTrial);
        let last = others.map(|exchange| exchange.at).max()?;
        Some(state.trial.began.elapsed().saturating_sub(last))
    }

    /// Nothing was delivered yet: what is seen now is background traffic for good.
    pub(crate) fn listen(&self) {
        self.lock().mode = Mode::Listening;
    }

    /// From now on everything that is said belongs to nothing that was delivered.
    pub(crate) fn idle(&self) {
        let mut state = self.lock();
        state.mode = Mode::Idle;
        state.trial.release = None;
        state.trial.plan = None;
    }

    /// Something else happened.
    pub(crate) fn note(&self, lane: &str, what: What) {
        let mut state = self.lock();
        let at = state.trial.began.elapsed();
        state.trial.active = Instant::now();
        state.trial.named = state.trial.active;
        state.trial.notes.push(Event {
            at,
            lane: lane.to_owned(),
            what,
        });
    }

    /// The trial is to be held at this boundary, once.
    pub(crate) fn hold(&self, hold: Hold) {
        self.lock().trial.plan = Some(hold);
    }

    /// Returns once the trial is held.
    pub(crate) async fn held(&self) -> Exchange {
        loop {
            let changed = self.changed.notified();
            if let Some(exchange) = self.lock().trial.held.take() {
                return exchange;
            }
            changed.await;
        }
    }

    /// The held bytes go on, or never arrive.
    pub(crate) fn release(&self, release: Release) {
        let mut state = self.lock();
        state.trial.plan = None;
        if let Some(held) = state.trial.release.take() {
            // Nobody listens when the connection broke meanwhile.
            held.send(release).ok();
        }
    }

    /// So many run at once: what they ask of dependencies, and what they are answered, waits until all have asked the
    /// same, for a while.
    pub(crate) fn race(&self, runners: usize) {
        self.lock().trial.race = Some(Race {
            runners: u32::try_from(runners).unwrap_or(u32::MAX),
            until: None,
        });
    }

    /// Whether all that run at once have asked this.
    pub(crate) fn met(&self, question: &Signature) -> bool {
        let mut state = self.lock();
        let Some(race) = &mut state.trial.race else {
            return true;
        };
        let now = Instant::now();
        let runners = race.runners;
        if now >= *race.until.get_or_insert(now + RACE_TIMEOUT) {
            return true;
        }
        let seen = state.trial.seen.iter();
        let same = seen.filter(|(signature, _)| signature.same_request(question));
        same.map(|(_, times)| *times).sum::<u32>() >= runners
    }

    /// For how long nothing was said; none while a question is open.
    pub(crate) fn quiet(&self) -> Option<Duration> {
        let state = self.lock();
        let mut asked = state.trial.open.values();
        let open = asked.any(|since| since.elapsed() < UNANSWERED_TIMEOUT);
        (!open).then(|| state.trial.active.elapsed())
    }

    /// For how long nothing happened to any delivery; a worker that only looks for one does nothing to it.
    pub(crate) fn undisturbed(&self) -> Duration {
        self.lock().trial.named.elapsed()
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        let state = self.lock();
        let ours = state.ids.ours(&state.trial.exchanges).into_iter();
        ours.cloned().collect()
    }

    /// Everything that happened in this trial, in order.
    pub(crate) fn events(&self) -> Vec<Event> {
        let state = self.lock();
        let exchanges = state.ids.ours(&state.trial.exchanges).into_iter();
        let notes = state.trial.notes.iter().cloned();
        let mut events: Vec<Event> = exchanges.map(Exchange::event).chain(notes).collect();
        events.sort_by_key(|event| event.at);
        events
    }

    /// The calls of a dependency that named this delivery and changed something.
    pub(crate) fn calls(&self, dependency: usize, id: &str) -> Vec<Call> {
        let state = self.lock();
        let calls = calls::of_trial(&state.trial.exchanges);
        let now = calls.filter(|(at, exchange, _)| *at == dependency && names(&exchange.bytes, id));
        let earlier = state.calls.get(&(dependency, id.to_owned()));
        let earlier = earlier.into_iter().flatten().cloned();
        earlier.chain(now.map(|(_, _, call)| call)).collect()
    }

    pub(crate) fn connected(&self) -> u64 {
        let mut state = self.lock();
        state.connections += 1;
        state.connections
    }

    pub(crate) fn disconnected(&self, connection: u64) {
        let mut state = self.lock();
        state.trial.open.remove(&connection);
        state.background_connections.remove(&connection);
        state.asked.remove(&connection);
    }

    /// A chunk that begins an exchange. `None`: it is not part of any delivery.
    pub(crate) fn exchange(
        &self,
        connection: u64,
        proxy: &ProxyConfig,
        outward: bool,
        message: Message,
        bytes: &[u8],
    ) -> (Permit, Option<ExchangeRef>) {
        let mut state = self.lock();
        let signature = Signature {
            process: proxy.process,
            dependency: proxy.dependency,
            outward,
            shape: shape(&message.text),
        };
        let background = state.is_background(connection, &signature, message.kind);
        if state.mode == Mode::Listening || message.kind == MessageKind::Housekeeping || background
        {
            state.trial.open.remove(&connection);
            return (Permit::Forward, None);
        }
        let current = state.add(connection, proxy, signature, message, bytes);
        let permit = state.permit(current);
        drop(state);
        self.changed.notify_waiters();
        (permit, Some(current))
    }

    /// More of an exchange that has begun.
    pub(crate) fn more(&self, current: ExchangeRef, bytes: &[u8]) {
        let mut state = self.lock();
        state.trial.active = Instant::now();
        if let Some(exchange) = state.current(current) {
            exchange.keep(bytes);
        }
    }

    /// The first bytes of an exchange were handed on.
    pub(crate) fn forwarded(&self, current: ExchangeRef) {
        if let Some(exchange) = self.lock().current(current) {
            exchange.forwarded = true;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }
}
