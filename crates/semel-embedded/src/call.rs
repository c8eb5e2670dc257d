//! A call on its way to the writer: decided in a group, answered once that group is as durable as the answer needs.

use crate::group::{Decided, Group};
use semel::Error;
use tokio::sync::oneshot;

/// A call that waits for its answer.
pub(crate) trait Call: Send {
    /// Decides it on the rows as they are, the writes of this group included; says which group must be on disk
    /// before the caller is told.
    fn decide(&mut self, group: &mut Group<'_>) -> u64;

    /// Tells the caller what was decided; one that hung up is not missed.
    fn tell(self: Box<Self>);

    /// Tells the caller an error instead.
    fn refuse(self: Box<Self>, error: &Error);
}

/// A call by what is to be decided, with its answer once it is.
struct Asked<D, A> {
    decide: Option<D>,
    answer: Option<Result<A, Error>>,
    caller: oneshot::Sender<Result<A, Error>>,
}

/// A call, and where its answer will arrive.
pub(crate) fn call<D, A>(decide: D) -> (Box<dyn Call>, oneshot::Receiver<Result<A, Error>>)
where
    D: FnOnce(&mut Group<'_>) -> Result<Decided<A>, Error> + Send + 'static,
    A: Send + 'static,
{
    let (caller, answered) = oneshot::channel();
    let asked = Asked {
        decide: Some(decide),
        answer: None,
        caller,
    };
    (Box::new(asked), answered)
}

// === impl Asked ===

impl<D, A> Call for Asked<D, A>
where
    D: FnOnce(&mut Group<'_>) -> Result<Decided<A>, Error> + Send,
    A: Send,
{
    fn decide(&mut self, group: &mut Group<'_>) -> u64 {
        let Some(decide) = self.decide.take() else {
            return 0;
        };
        let (answer, after) = match decide(group) {
            Ok(Decided { answer, after }) => (Ok(answer), after),
            Err(error) => (Err(error), 0),
        };
        self.answer = Some(answer);
        after
    }

    fn tell(self: Box<Self>) {
        if let Some(answer) = self.answer {
            drop(self.caller.send(answer));
        }
    }

    fn refuse(self: Box<Self>, error: &Error) {
        drop(self.caller.send(Err(error.clone())));
    }
}
