//! A run that was granted, as the Python thread holds it that runs the function.

use crate::driven::Driven;
use crate::ended::Ended;
use crate::error;
use crate::home::stopped;
use crate::step::{Step, begin_step};
use crate::terms::seconds;
use crate::wait;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use semel::protocol::Fence;
use semel::work::{Failure, FailureKind};
use semel::{Error, Outcome};
use std::process;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// What the runtime hands over with a grant.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) run: Arc<semel::Run>,
    pub(crate) says: oneshot::Sender<Result<Outcome, Failure>>,
    pub(crate) ended: oneshot::Receiver<Result<semel::Ended, Error>>,
    pub(crate) driver: Weak<Driven>,
}

/// One execution under a lease.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Run {
    pid: u32,
    runtime: Handle,
    run: Arc<semel::Run>,
    /// Taken when the run says how it ended.
    open: Mutex<Option<OpenRun>>,
    /// Nothing that has ended.
    driver: Weak<Driven>,
    ended: Arc<OnceLock<Py<Ended>>>,
}

#[derive(Debug)]
struct OpenRun {
    says: oneshot::Sender<Result<Outcome, Failure>>,
    ended: oneshot::Receiver<Result<semel::Ended, Error>>,
}

// === impl Run ===

#[pymethods]
impl Run {
    /// The work's key.
    #[getter]
    fn key(&self) -> String {
        self.run.lease().key.to_string()
    }

    /// The run's fence: a downstream can refuse a lower one than it has seen.
    #[getter]
    fn fence(&self) -> u64 {
        self.run.lease().fence.0
    }

    /// Which run of the work this is, from 1.
    #[getter]
    fn attempt(&self) -> u32 {
        self.run.lease().attempt
    }

    /// Whether this run was overtaken or timed out: nothing that it says counts any more.
    #[getter]
    fn stale(&self) -> bool {
        match &*self.lock() {
            Some(open) => open.says.is_closed(),
            None => false,
        }
    }

    /// What became of it, once it has ended.
    #[getter]
    fn ended(&self, py: Python<'_>) -> Option<Py<Ended>> {
        self.ended.get().map(|ended| ended.clone_ref(py))
    }

    /// Says how the run ended, and waits until that is recorded; no signal is heard meanwhile. When a signal's handler
    /// then raises, `ended` is set all the same.
    #[pyo3(signature = (kind, body=None, after=None))]
    fn end(
        &self,
        py: Python<'_>,
        kind: &str,
        body: Option<&[u8]>,
        after: Option<f64>,
    ) -> PyResult<()> {
        let ended = self.finish(py, said(py, kind, body, after)?)?;
        let ended = self.told(py, ended)?;
        // Nobody else sets it: the run was open, and is not any more.
        drop(self.ended.set(Py::new(py, ended)?));
        py.check_signals()
    }

    /// The same for an event loop: `callback` gets the `Ended` or an exception.
    #[pyo3(signature = (event_loop, callback, kind, body=None, after=None))]
    fn end_async(
        &self,
        py: Python<'_>,
        event_loop: Py<PyAny>,
        callback: Py<PyAny>,
        kind: &str,
        body: Option<&[u8]>,
        after: Option<f64>,
    ) -> PyResult<()> {
        let ended = self.say(said(py, kind, body, after)?)?;
        let lease = self.run.lease().clone();
        let slot = Arc::clone(&self.ended);
        wait::call_back(
            &self.runtime,
            ended,
            event_loop,
            callback,
            move |py, ended| {
                let ended = ended.ok_or_else(stopped)?;
                let ended = ended.map_err(|error| error::of_store(py, &error))?;
                let ended = Ended::of(&lease.key, &ended).with_run(lease.fence.0, lease.attempt);
                let ended = Py::new(py, ended)?;
                drop(slot.set(ended.clone_ref(py)));
                Ok(ended.into_any())
            },
        );
        Ok(())
    }

    /// Says that the function was never called, and does not wait.
    fn give_back(&self) {
        self.say_without_waiting(Failure::not_started("the caller has gone"));
    }

    /// Says that the run failed, and does not wait: whoever holds its record does not let go before the caller goes on.
    fn fail_without_waiting(&self, why: String) {
        self.say_without_waiting(Failure::retryable(why));
    }

    /// Begins a named part. Signals are heard meanwhile.
    fn step(&self, py: Python<'_>, name: String) -> PyResult<Py<Step>> {
        self.check_process()?;
        let begun = begin_step(&self.runtime, Arc::clone(&self.run), name);
        let begun = wait::listening(py, begun)?.map_err(|_| stopped())?;
        begun.into_python(py, &self.runtime)
    }

    /// The same for an event loop.
    fn step_async(&self, event_loop: Py<PyAny>, callback: Py<PyAny>, name: String) -> PyResult<()> {
        self.check_process()?;
        let begun = begin_step(&self.runtime, Arc::clone(&self.run), name);
        let runtime = self.runtime.clone();
        wait::call_back(
            &self.runtime,
            begun,
            event_loop,
            callback,
            move |py, begun| {
                let begun = begun.ok_or_else(stopped)?;
                Ok(begun.into_python(py, &runtime)?.into_any())
            },
        );
        Ok(())
    }
}

impl Run {
    pub(crate) fn new(granted: Granted, runtime: Handle) -> Self {
        let Granted {
            run,
            says,
            ended,
            driver,
        } = granted;
        Self {
            pid: process::id(),
            runtime,
            run,
            open: Mutex::new(Some(OpenRun { says, ended })),
            driver,
            ended: Arc::default(),
        }
    }

    /// The fence under which it runs.
    pub(crate) fn fence_of_lease(&self) -> Fence {
        self.run.lease().fence
    }

    /// Says how the run ended, in the library's words, and waits until that is recorded; no signal is heard meanwhile.
    pub(crate) fn finish(
        &self,
        py: Python<'_>,
        said: Result<Outcome, Failure>,
    ) -> PyResult<Result<semel::Ended, Error>> {
        let ended = self.say(said)?;
        if let Some(driven) = self.driver.upgrade() {
            py.detach(|| driven.go_on(&self.runtime));
        }
        wait::deaf(py, ended).map_err(|_| stopped())
    }

    fn say(
        &self,
        said: Result<Outcome, Failure>,
    ) -> PyResult<oneshot::Receiver<Result<semel::Ended, Error>>> {
        self.check_process()?;
        let Some(open) = self.lock().take() else {
            return Err(PyRuntimeError::new_err(
                "this run has said already how it ended",
            ));
        };
        // Nobody listens when it was overtaken or timed out; `ended` says which.
        drop(open.says.send(said));
        Ok(open.ended)
    }

    fn say_without_waiting(&self, failure: Failure) {
        if let Some(open) = self.lock().take() {
            // The runtime may have given it up itself.
            drop(open.says.send(Err(failure)));
        }
    }

    fn told(&self, py: Python<'_>, ended: Result<semel::Ended, Error>) -> PyResult<Ended> {
        let ended = ended.map_err(|error| error::of_store(py, &error))?;
        let lease = self.run.lease();
        Ok(Ended::of(&lease.key, &ended).with_run(lease.fence.0, lease.attempt))
    }

    fn check_process(&self) -> PyResult<()> {
        if self.pid == process::id() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(format!(
            "this run belongs to process {}, and only that process can end it or do its steps",
            self.pid
        )))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<OpenRun>> {
        self.open.lock().expect("no holder of this lock panics")
    }
}

impl Drop for Run {
    /// In the process that was granted it, a run that says nothing is in doubt. A forked copy must not touch a runtime
    /// whose threads it does not have.
    fn drop(&mut self) {
        if self.pid != process::id() {
            std::mem::forget(self.lock().take());
            std::mem::forget(Arc::clone(&self.run));
            std::mem::forget(self.runtime.clone());
        }
    }
}

fn said(
    py: Python<'_>,
    kind: &str,
    body: Option<&[u8]>,
    after: Option<f64>,
) -> PyResult<Result<Outcome, Failure>> {
    let outcome = |status| match body {
        Some(body) => {
            Outcome::new(status, body.to_vec()).with_header("content-type", "application/json")
        }
        None => Outcome {
            body: semel::outcome::Body::NotKept,
            ..Outcome::ok("")
        },
    };
    let kind = match kind {
        "ok" => return Ok(Ok(outcome(200))),
        "retryable" => FailureKind::Retryable,
        "final" => FailureKind::Final,
        "in_doubt" => FailureKind::InDoubt,
        "not_started" => FailureKind::NotStarted,
        other => {
            return Err(PyValueError::new_err(format!(
                "{other:?} is not how a run ends"
            )));
        }
    };
    Ok(Err(Failure {
        kind,
        outcome: outcome(500),
        after: after.map(|it| seconds(py, "after", it)).transpose()?,
    }))
}
