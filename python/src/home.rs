//! Home: a runtime of one thread and a store, of one process. After a fork the child has a dead copy of it, so every
//! call compares the process id, and what was inherited is left alone for ever.

use crate::driven::Driven;
use crate::ended::Ended;
use crate::error;
use crate::letters::{self, Given, Kept};
use crate::run::{Granted, Run};
use crate::store;
use crate::terms::{Identity, Terms, seconds};
use crate::wait;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use semel::letter::LetterId;
use semel::store::Letters;
use semel::work::Failure;
use semel::{Error, Fingerprint, Key, Semel, Settings, Work};
use std::process;
use std::sync::{Arc, Mutex, Weak};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// The runtime and the store of one process.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Home {
    pid: u32,
    /// This process, as labels and histories name it.
    by: String,
    inner: Option<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) runtime: Runtime,
    pub(crate) semel: Semel,
    pub(crate) store: Arc<dyn Letters>,
}

/// The first answer to a call.
enum Begun {
    /// It may run.
    Granted(Granted),
    /// It ran elsewhere, or must not run now.
    Ended(Key, Result<semel::Ended, Error>),
}

/// What asking comes to at once.
enum Asked {
    /// The answer is in memory.
    Known(Begun),
    /// It comes here.
    Waiting(oneshot::Receiver<Begun>),
}

/// How much of a host's name is kept: with its process it fits into a label and a history.
const HOST_BYTES_MAX: usize = 40;

type BegunSender = Arc<Mutex<Option<oneshot::Sender<Begun>>>>;

// === impl Home ===

#[pymethods]
impl Home {
    /// Opens a store. Threads are started here, and not before.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        url: String,
        cache: f64,
        record_within: f64,
        host: &str,
    ) -> PyResult<Self> {
        let settings = Settings {
            shared_cache: seconds(py, "cache", cache)?,
            record_within: seconds(py, "record_within", record_within)?,
            ..Settings::default()
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("semel")
            .enable_all()
            .build()?;
        let (answers, answer) = oneshot::channel();
        runtime.spawn(async move { answers.send(store::open(&url).await) });
        let opened = wait::listening(py, answer)?.map_err(gone)?;
        let store = opened.map_err(|error| error::of_store(py, &error))?;
        let semel = Semel::with_settings(Arc::clone(&store) as _, settings);
        let inner = Inner {
            runtime,
            semel,
            store,
        };
        let pid = process::id();
        Ok(Self {
            pid,
            by: by(host, pid),
            inner: Some(inner),
        })
    }

    /// The process that it belongs to.
    #[getter]
    fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks to run a call: a `Run`, or the `Ended` of one that does not run. Signals are heard meanwhile.
    #[pyo3(signature = (terms, payload, own, *, timeout=None, wait=None, letter=None, id=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn begin(
        &self,
        py: Python<'_>,
        terms: &Bound<'_, Terms>,
        payload: &[u8],
        own: &[u8],
        timeout: Option<f64>,
        wait: Option<f64>,
        letter: Option<&str>,
        id: Option<&str>,
    ) -> PyResult<Py<PyAny>> {
        let inner = self.inner()?;
        let letter = letter.map(|id| letters::read_id(py, id)).transpose()?;
        let terms = terms.get();
        let identity = identify(py, terms, payload, own, letter)?;
        let work = self.work(py, terms, &identity, timeout, wait, id)?;
        let begun = inner.begin(work).wait(py)?;
        begun.into_python(py, inner.runtime.handle())
    }

    /// The same for an event loop: gives the `Ended` of what is known without waiting, or nothing; then `callback` gets
    /// the `Run`, the `Ended` or an exception.
    #[pyo3(signature = (event_loop, callback, terms, payload, own, *, timeout=None, wait=None))]
    #[allow(clippy::too_many_arguments, reason = "a call and where to answer it")]
    fn begin_async(
        &self,
        py: Python<'_>,
        event_loop: Py<PyAny>,
        callback: Py<PyAny>,
        terms: &Bound<'_, Terms>,
        payload: &[u8],
        own: &[u8],
        timeout: Option<f64>,
        wait: Option<f64>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let inner = self.inner()?;
        let terms = terms.get();
        let identity = identify(py, terms, payload, own, None)?;
        let work = self.work(py, terms, &identity, timeout, wait, None)?;
        let runtime = inner.runtime.handle().clone();
        let answer = match inner.begin(work) {
            Asked::Known(begun) => return begun.into_python(py, &runtime).map(Some),
            Asked::Waiting(answer) => answer,
        };
        wait::call_back(
            inner.runtime.handle(),
            answer,
            event_loop,
            callback,
            move |py, begun| match begun {
                Some(begun) => begun.into_python(py, &runtime),
                None => Err(stopped()),
            },
        );
        Ok(None)
    }

    /// Keeps a message that is given up: the letter's id; nothing when there is nothing to keep; `unsettled` when the
    /// message must come again.
    fn keep_letter(
        &self,
        py: Python<'_>,
        terms: &Bound<'_, Terms>,
        payloads: Option<(Vec<u8>, Vec<u8>)>,
        transport: String,
        reason: &str,
        delivery: Vec<u8>,
    ) -> PyResult<Option<String>> {
        let given = Given::new(py, terms.get(), payloads, transport, reason, delivery)?;
        Ok(match letters::keep(py, self.inner()?, given)? {
            Kept::Yes(id) => Some(id.to_string()),
            Kept::NothingToKeep => None,
            Kept::Unsettled => Some("unsettled".into()),
        })
    }

    /// The open letters, oldest first: id, reason, how its work stands, delivery.
    fn letters(&self, py: Python<'_>) -> PyResult<Vec<letters::Shown>> {
        letters::list(py, self.inner()?)
    }

    /// Makes the work of a letter claimable again.
    fn redrive_letter(&self, py: Python<'_>, id: &str, run_again: bool) -> PyResult<()> {
        letters::redrive(py, self.inner()?, id, run_again)
    }

    /// Closes a letter.
    fn close_letter(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        letters::close(py, self.inner()?, id)
    }

    /// How many outcomes the store does not have yet.
    fn pending_count(&self) -> PyResult<usize> {
        Ok(self.inner()?.semel.pending_count())
    }

    /// Waits until no outcome is in hand, that long at the most: what is left, as (key, fence, status).
    fn drain(&self, py: Python<'_>, within: f64) -> PyResult<Vec<(String, u64, u16)>> {
        let inner = self.inner()?;
        let within = seconds(py, "within", within)?;
        let semel = inner.semel.clone();
        py.detach(|| {
            inner.runtime.handle().block_on(async {
                // What is left is named below.
                drop(tokio::time::timeout(within, semel.pending_recorded()).await);
            });
        });
        let left = inner.semel.pending().into_iter();
        Ok(left
            .map(|it| (it.key.to_string(), it.fence.0, it.status))
            .collect())
    }
}

impl Home {
    /// What works only in the process that opened it.
    pub(crate) fn inner(&self) -> PyResult<&Inner> {
        match &self.inner {
            Some(inner) if self.pid == process::id() => Ok(inner),
            Some(_) | None => Err(PyRuntimeError::new_err(format!(
                "this store was opened by process {}, and a fork does not take it along: open it again in process {}",
                self.pid,
                process::id()
            ))),
        }
    }
}

impl Home {
    /// The work of a call, with what its record is about.
    fn work(
        &self,
        py: Python<'_>,
        terms: &Terms,
        identity: &Identity,
        timeout: Option<f64>,
        wait: Option<f64>,
        id: Option<&str>,
    ) -> PyResult<Work> {
        let timeout = timeout.map(|it| seconds(py, "timeout", it)).transpose()?;
        let wait = wait.map(|it| seconds(py, "wait", it)).transpose()?;
        let work = terms.work(identity, timeout, wait);
        let label = terms.label(identity, &self.by, id);
        Ok(work.label(label).by(self.by.clone()))
    }

    /// This process, as labels and histories name it.
    pub(crate) fn by(&self) -> &str {
        &self.by
    }

    /// Asks to run a work: a run, or what became of it.
    pub(crate) fn claim(
        &self,
        py: Python<'_>,
        work: Work,
    ) -> PyResult<Result<Run, Result<semel::Ended, Error>>> {
        let inner = self.inner()?;
        let runtime = inner.runtime.handle();
        Ok(match inner.begin(work).wait(py)? {
            Begun::Granted(granted) => Ok(Run::new(granted, runtime.clone())),
            Begun::Ended(_, ended) => Err(ended),
        })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else {
            return;
        };
        if self.pid == process::id() {
            let Inner {
                runtime,
                semel,
                store,
            } = inner;
            drop((semel, store));
            runtime.shutdown_background();
        } else {
            // The threads it would wait for are the parent's.
            std::mem::forget(inner);
        }
    }
}

/// Which work a call is.
fn identify(
    py: Python<'_>,
    terms: &Terms,
    payload: &[u8],
    own: &[u8],
    letter: Option<LetterId>,
) -> PyResult<Identity> {
    let identity = terms.identify(payload, own);
    // The key of a redriven letter is its own: its message has none, or one that stands for other work.
    match letter {
        None => identity.map_err(|error| error::of_key(py, &error)),
        Some(letter) => Ok(Identity {
            key: letter.redrive_key(),
            fingerprint: Fingerprint::of(own),
            description: identity.map(|it| it.description).unwrap_or_default(),
        }),
    }
}

/// The name of a process: `worker-1:4711`.
fn by(host: &str, pid: u32) -> String {
    let end = host.floor_char_boundary(HOST_BYTES_MAX);
    format!("{}:{pid}", host.get(..end).unwrap_or_default())
}

fn gone(_: oneshot::error::RecvError) -> PyErr {
    stopped()
}

pub(crate) fn stopped() -> PyErr {
    PyRuntimeError::new_err("semel's runtime has stopped: the process is going down")
}

// === impl Inner ===

impl Inner {
    /// Claims on the runtime. Whoever waits gets one answer; one who no longer waits gets no run.
    fn begin(&self, work: Work) -> Asked {
        let (answers, mut answer) = oneshot::channel();
        let answers: BegunSender = Arc::new(Mutex::new(Some(answers)));
        let (ends, ended) = oneshot::channel();
        let semel = self.semel.clone();
        let (key, granting) = (*work.key(), Arc::clone(&answers));
        let driven = Arc::new(Driven::default());
        let driver = Arc::downgrade(&driven);
        let asking = async move {
            let effect = |run| run_in_python(run, granting, ended, driver);
            let ended = semel.run(work, effect).await;
            match take(&answers) {
                // The caller may have gone; nothing was run for it.
                Some(answers) => drop(answers.send(Begun::Ended(key, ended))),
                None => drop(ends.send(ended)),
            }
        };
        let runtime = self.runtime.handle();
        if !driven.begin(runtime, Box::pin(asking)) {
            driven.hand_over(runtime);
            return Asked::Waiting(answer);
        }
        match answer.try_recv() {
            Ok(begun) => Asked::Known(begun),
            Err(_) => Asked::Waiting(answer),
        }
    }
}

/// The effect: hands the run to whoever asked, and waits for what it says.
async fn run_in_python(
    run: semel::Run,
    answers: BegunSender,
    ended: oneshot::Receiver<Result<semel::Ended, Error>>,
    driver: Weak<Driven>,
) -> Result<semel::Outcome, Failure> {
    let (says, said) = oneshot::channel();
    let granted = Granted {
        run: Arc::new(run),
        says,
        ended,
        driver,
    };
    let heard = take(&answers).is_some_and(|answers| answers.send(Begun::Granted(granted)).is_ok());
    if !heard {
        return Err(Failure::not_started("the caller has gone"));
    }
    said.await
        .unwrap_or_else(|_| Err(Failure::in_doubt("the run was abandoned without a word")))
}

fn take(answers: &BegunSender) -> Option<oneshot::Sender<Begun>> {
    answers
        .lock()
        .expect("no holder of this lock panics")
        .take()
}

// === impl Asked ===

impl Asked {
    /// The answer; signals are heard meanwhile.
    fn wait(self, py: Python<'_>) -> PyResult<Begun> {
        match self {
            Self::Known(begun) => Ok(begun),
            Self::Waiting(answer) => wait::listening(py, answer)?.map_err(gone),
        }
    }
}

// === impl Begun ===

impl Begun {
    fn into_python(self, py: Python<'_>, runtime: &Handle) -> PyResult<Py<PyAny>> {
        match self {
            Self::Granted(granted) => {
                let run = Run::new(granted, runtime.clone());
                Ok(Py::new(py, run)?.into_any())
            }
            Self::Ended(key, Ok(ended)) => Ok(Py::new(py, Ended::of(&key, &ended))?.into_any()),
            Self::Ended(_, Err(error)) => Err(error::of_store(py, &error)),
        }
    }
}
