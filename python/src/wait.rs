//! Waiting for the runtime: on the caller's thread without the interpreter's lock, or by a callback on an event loop.

use pyo3::prelude::*;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How soon a signal is heard while nothing comes.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Waits, and lets signal handlers run meanwhile: their exception ends the wait.
pub(crate) fn listening<T: Send>(
    py: Python<'_>,
    runtime: &Handle,
    mut receiver: oneshot::Receiver<T>,
) -> PyResult<Result<T, oneshot::error::RecvError>> {
    loop {
        let waited =
            py.detach(|| runtime.block_on(async { timeout(SIGNALS_EVERY, &mut receiver).await }));
        if let Ok(received) = waited {
            return Ok(received);
        }
        py.check_signals()?;
    }
}

/// Waits, and lets no signal handler run: an exception in between would say that nothing was recorded.
pub(crate) fn deaf<T: Send>(
    py: Python<'_>,
    runtime: &Handle,
    receiver: oneshot::Receiver<T>,
) -> Result<T, oneshot::error::RecvError> {
    py.detach(|| runtime.block_on(receiver))
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
        Python::try_attach(|py| {
            let value = match to_python(py, received) {
                Ok(value) => value,
                Err(error) => error.into_value(py).into_any(),
            };
            // Fails when the loop is closed: then nobody waits.
            drop(event_loop.call_method1(py, "call_soon_threadsafe", (&callback, value)));
            drop((event_loop, callback));
        });
    });
}
