//! Steps of a run, over the bridge: begun and recorded on the runtime, done by the Python thread.

use crate::error;
use crate::home::stopped;
use crate::wait;
use bytes::Bytes;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use semel::work::Failure;
use std::process;
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A step that was begun, or done before.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Step {
    /// The step's own key, the same in every run of the work; empty when it was done before.
    #[pyo3(get)]
    key: String,
    memo: Option<Bytes>,
    pid: u32,
    runtime: Handle,
    open: Mutex<Option<OpenStep>>,
}

#[derive(Debug)]
struct OpenStep {
    says: oneshot::Sender<Result<Bytes, Failure>>,
    done: oneshot::Receiver<Result<Bytes, Failure>>,
}

/// The first answer about a step.
pub(crate) enum StepBegun {
    /// It is to be done, with this key.
    Go { key: String, open: StepOpen },
    /// It was done before, or cannot be begun.
    Done(Result<Bytes, Failure>),
}

pub(crate) struct StepOpen(OpenStep);

/// Begins a step on the runtime.
pub(crate) fn begin_step(
    runtime: &Handle,
    run: Arc<semel::Run>,
    name: String,
) -> oneshot::Receiver<StepBegun> {
    let (answers, answer) = oneshot::channel();
    let answers = Arc::new(Mutex::new(Some(answers)));
    let begins = Arc::clone(&answers);
    let (tells, done) = oneshot::channel();
    runtime.spawn(async move {
        let result = run
            .step(&name, |step| async move {
                let (says, said) = oneshot::channel();
                let go = StepBegun::Go {
                    key: step.key.to_string(),
                    open: StepOpen(OpenStep { says, done }),
                };
                let heard = take(&begins).is_some_and(|begins| begins.send(go).is_ok());
                if !heard {
                    return Err(Failure::in_doubt("the caller has gone"));
                }
                let abandoned = |_| Err(Failure::in_doubt("the step was abandoned without a word"));
                said.await.unwrap_or_else(abandoned)
            })
            .await;
        match take(&answers) {
            // The caller may have gone.
            Some(answers) => drop(answers.send(StepBegun::Done(result))),
            None => drop(tells.send(result)),
        }
    });
    answer
}

fn take(answers: &Mutex<Option<oneshot::Sender<StepBegun>>>) -> Option<oneshot::Sender<StepBegun>> {
    answers
        .lock()
        .expect("no holder of this lock panics")
        .take()
}

// === impl Step ===

#[pymethods]
impl Step {
    /// The result of a step that was done before.
    #[getter]
    fn memo<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.memo.as_ref().map(|memo| PyBytes::new(py, memo))
    }

    /// Records the result; no signal is heard meanwhile.
    fn done(&self, py: Python<'_>, result: &[u8]) -> PyResult<()> {
        let done = self.say(Ok(Bytes::copy_from_slice(result)))?;
        let done = wait::deaf(py, done).map_err(|_| stopped())?;
        done.map(drop)
            .map_err(|failure| error::of_step(py, &failure))
    }

    /// The same for an event loop.
    fn done_async(
        &self,
        event_loop: Py<PyAny>,
        callback: Py<PyAny>,
        result: &[u8],
    ) -> PyResult<()> {
        let done = self.say(Ok(Bytes::copy_from_slice(result)))?;
        wait::call_back(&self.runtime, done, event_loop, callback, |py, done| {
            let done = done.ok_or_else(stopped)?;
            done.map_err(|failure| error::of_step(py, &failure))?;
            Ok(py.None())
        });
        Ok(())
    }

    /// Its function raised: nothing is recorded, and the run's own end says what that means.
    fn failed(&self) -> PyResult<()> {
        self.say(Err(Failure::retryable("the step's function failed")))
            .map(drop)
    }
}

impl Step {
    fn say(
        &self,
        said: Result<Bytes, Failure>,
    ) -> PyResult<oneshot::Receiver<Result<Bytes, Failure>>> {
        if self.pid != process::id() {
            return Err(PyRuntimeError::new_err(format!(
                "this step belongs to process {}, and only that process can end it",
                self.pid
            )));
        }
        let open = self
            .open
            .lock()
            .expect("no holder of this lock panics")
            .take();
        let Some(open) = open else {
            return Err(PyRuntimeError::new_err("this step has ended already"));
        };
        // Nobody listens when the runtime has stopped.
        drop(open.says.send(said));
        Ok(open.done)
    }
}

impl Drop for Step {
    /// A forked copy must not touch a runtime whose threads it does not have.
    fn drop(&mut self) {
        if self.pid != process::id() {
            let mut open = self.open.lock().expect("no holder of this lock panics");
            std::mem::forget(open.take());
            std::mem::forget(self.runtime.clone());
        }
    }
}

// === impl StepBegun ===

impl StepBegun {
    pub(crate) fn into_python(self, py: Python<'_>, runtime: &Handle) -> PyResult<Py<Step>> {
        let (key, memo, open) = match self {
            Self::Go { key, open } => (key, None, Some(open.0)),
            Self::Done(Ok(memo)) => (String::new(), Some(memo), None),
            Self::Done(Err(failure)) => return Err(error::of_step(py, &failure)),
        };
        let step = Step {
            key,
            memo,
            pid: process::id(),
            runtime: runtime.clone(),
            open: Mutex::new(open),
        };
        Py::new(py, step)
    }
}
