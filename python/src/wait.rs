//! Waiting for the runtime: on the caller's thread without the interpreter's lock, or by a callback on an event loop.

use pyo3::prelude::*;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// How soon a signal is heard while nothing comes.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// How long an interpreter that goes down waits for a callback that it interrupted.
const CALLBACKS_END_WITHIN: Duration = Duration::from_secs(5);

/// A thread that is inside the interpreter when it goes down takes the process with it. So callbacks are counted, and
/// none is begun once the interpreter has said that it ends. Atomics and no locks: a fork copies them as they are.
static CALLBACKS: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicBool = AtomicBool::new(false);

/// The interpreter ends: no callback is begun any more, and those under way are waited for.
#[pyfunction]
#[allow(
    clippy::disallowed_methods,
    reason = "the process is going down: real time, and nothing else to wait for"
)]
pub(crate) fn close_callbacks(py: Python<'_>) {
    CLOSED.store(true, Ordering::SeqCst);
    py.detach(|| {
        let until = Instant::now() + CALLBACKS_END_WITHIN;
        while CALLBACKS.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::park_timeout(Duration::from_millis(1));
        }
    });
}

/// In a forked child: the callbacks under way were the parent's.
#[pyfunction]
pub(crate) fn forget_callbacks() {
    CALLBACKS.store(0, Ordering::SeqCst);
}

/// Wakes the thread that waits. The runtime has nothing to do with it: a timer of its own would wake its thread, too.
struct Unpark(Thread);

/// Waits, and lets signal handlers run meanwhile: their exception ends the wait.
pub(crate) fn listening<T: Send>(
    py: Python<'_>,
    mut receiver: oneshot::Receiver<T>,
) -> PyResult<Result<T, oneshot::error::RecvError>> {
    loop {
        if let Some(received) = py.detach(|| received_within(&mut receiver, SIGNALS_EVERY)) {
            return Ok(received);
        }
        py.check_signals()?;
    }
}

/// Waits, and lets no signal handler run: an exception in between would say that nothing was recorded.
pub(crate) fn deaf<T: Send>(
    py: Python<'_>,
    mut receiver: oneshot::Receiver<T>,
) -> Result<T, oneshot::error::RecvError> {
    py.detach(|| {
        loop {
            if let Some(received) = received_within(&mut receiver, Duration::MAX) {
                return received;
            }
        }
    })
}

/// What comes, if it comes about that soon; this thread sleeps until then.
fn received_within<T>(
    receiver: &mut oneshot::Receiver<T>,
    within: Duration,
) -> Option<Result<T, oneshot::error::RecvError>> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut poll = || Pin::new(&mut *receiver).poll(&mut context);
    if let Poll::Ready(received) = poll() {
        return Some(received);
    }
    thread::park_timeout(within);
    match poll() {
        Poll::Ready(received) => Some(received),
        Poll::Pending => None,
    }
}

/// Calls `loop.call_soon_threadsafe(callback, value)` once there is a value. A loop that is closed, or an interpreter
/// that is going down, hears nothing.
pub(crate) fn call_back<T, P>(
    runtime: &Handle,
    receiver: oneshot::Receiver<T>,
    event_loop: Py<PyAny>,
    callback: Py<PyAny>,
    to_python: P,
) where
    T: Send + 'static,
    P: FnOnce(Python<'_>, Option<T>) -> PyResult<Py<PyAny>> + Send + 'static,
{
    runtime.spawn(async move {
        let received = receiver.await.ok();
        CALLBACKS.fetch_add(1, Ordering::SeqCst);
        if CLOSED.load(Ordering::SeqCst) {
            // Their counts belong to an interpreter that is gone.
            std::mem::forget((event_loop, callback));
            CALLBACKS.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        Python::try_attach(|py| {
            let value = match to_python(py, received) {
                Ok(value) => value,
                Err(error) => error.into_value(py).into_any(),
            };
            // Fails when the loop is closed: then nobody waits.
            drop(event_loop.call_method1(py, "call_soon_threadsafe", (&callback, value)));
            drop((event_loop, callback));
        });
        CALLBACKS.fetch_sub(1, Ordering::SeqCst);
    });
}

// === impl Unpark ===

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
