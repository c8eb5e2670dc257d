//! Work that the runtime's thread drives, and that its caller may drive on for a moment: what needs no waiting then
//! costs no change of threads.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that is polled by one thread at a time.
#[derive(Default)]
pub(crate) struct Driven(Mutex<State>);

#[derive(Default)]
struct State {
    /// Nothing once it has ended.
    work: Option<Work>,
    /// Wakes the runtime's task, whoever polls.
    waker: Option<Waker>,
}

/// The runtime's task.
struct Driver(Arc<Driven>);

// === impl Driven ===

impl Driven {
    /// Begins here, and says whether it has ended at once.
    pub(crate) fn begin(&self, runtime: &Handle, work: Work) -> bool {
        self.lock().work = Some(work);
        self.go_on(runtime)
    }

    /// Leaves what has to wait to the runtime.
    pub(crate) fn hand_over(self: Arc<Self>, runtime: &Handle) {
        runtime.spawn(Driver(self));
    }

    /// Goes on here as far as it can without waiting, and says whether it has ended.
    pub(crate) fn go_on(&self, runtime: &Handle) -> bool {
        let _inside = runtime.enter();
        let mut state = self.lock();
        // Without a waker the runtime's task has yet to come by for the first time.
        let waker = state.waker.clone();
        let waker = waker.as_ref().unwrap_or(Waker::noop());
        state.poll(&mut Context::from_waker(waker)).is_ready()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("the work never panics")
    }
}

impl fmt::Debug for Driven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driven")
    }
}

// === impl State ===

impl State {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(work) = &mut self.work else {
            return Poll::Ready(());
        };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

// === impl Driver ===

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        state.waker = Some(context.waker().clone());
        state.poll(context)
    }
}
